//! How a Sandglass user program is linked: the one place that knows.
//!
//! A user program is an ordinary static, position-dependent ELF executable of the target
//! `x86_64-unknown-linux-gnu` without the C start-up files and libraries: its `_start` comes from
//! `sandglass::entry!`. Its package calls [`user_program`] from its build script, so a plain
//! `cargo build --release -p <package> --target x86_64-unknown-linux-gnu` links it right.

/// Arguments for the linker driver (`cc`).
///
/// Pages are 4 KiB and nothing else: larger segment alignment would cost the root task a frame
/// capability per page of padding (ABI 06 §3). The image base keeps page 0 unmapped.
pub const LINK_ARGUMENTS: [&str; 7] = [
    "-nostartfiles",
    "-static",
    "-no-pie",
    "-fuse-ld=lld",
    "-Wl,-z,max-page-size=4096",
    "-Wl,-z,noexecstack",
    "-Wl,--image-base=0x400000",
];

/// To be called from the build script of a package whose binaries are user programs.
pub fn user_program() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in LINK_ARGUMENTS {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
