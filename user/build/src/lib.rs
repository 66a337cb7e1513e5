//! How Sandglass user programs are linked and embedded: the one place that knows.
//!
//! A user program is an ordinary static, position-dependent ELF executable of the target
//! [`TARGET`] without the C start-up files and libraries: its `_start` comes from
//! `sandglass::entry!`. Its package calls [`user_program`] from its build script, so a plain
//! `cargo build --release -p <package> --target x86_64-unknown-linux-gnu` links it right.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target of user programs: the host's ABI, with SSE.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Arguments for the linker driver (`cc`).
///
/// Pages are 4 KiB and nothing else: larger segment alignment would cost the root task a frame
/// capability per page of padding (ABI 06, section 3). The image base keeps page 0 unmapped.
pub const LINK_ARGUMENTS: [&str; 7] = [
    "-nostartfiles",
    "-static",
    "-no-pie",
    "-fuse-ld=lld",
    "-Wl,-z,max-page-size=4096",
    "-Wl,-z,noexecstack",
    "-Wl,--image-base=0x400000",
];

/// What programs without cargo say to the same driver beside [`LINK_ARGUMENTS`], before their objects: there is no C library
/// to link, and what is not used is left out.
pub const C_LINK_ARGUMENTS: [&str; 2] = ["-nostdlib", "-Wl,--gc-sections"];

/// The target of user programs for aarch64, whose linker is `ld.lld` itself.
pub const AARCH64_TARGET: &str = "aarch64-unknown-none";

/// Arguments for that linker, to the same end.
pub const AARCH64_LINK_ARGUMENTS: [&str; 4] = [
    "-zmax-page-size=4096",
    "-znoexecstack",
    "--image-base=0x400000",
    "-e_start",
];

/// As [`C_LINK_ARGUMENTS`], for that linker.
pub const AARCH64_C_LINK_ARGUMENTS: [&str; 2] = ["-static", "--gc-sections"];

/// To be called from the build script of a package whose binaries are user programs.
pub fn user_program() {
    println!("cargo:rerun-if-changed=build.rs");
    let arguments: &[&str] = match env::var("TARGET").as_deref() {
        Ok(AARCH64_TARGET) => &AARCH64_LINK_ARGUMENTS,
        _ => &LINK_ARGUMENTS,
    };
    for argument in arguments {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}

/// To be called from a build script: builds the user program of `package`, whose folder is
/// `folder` relative to the caller's package, and gives its path to the caller's code as the
/// environment variable `variable`, for `include_bytes!(env!("..."))`.
///
/// Only release builds are ever booted. In others (lints, host tests), an empty file takes the
/// program's place, which keeps them fast. Where [`embedded_variable`] names a file, the program has been built already:
/// the `sandglass` command does so for what a package's `[package.metadata.sandglass] embeds` lists.
///
/// # Panics
/// If the program does not build; cargo's messages are in the output of the build script.
pub fn embed_program(package: &str, folder: &str, variable: &str) {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for watched in ["src", "Cargo.toml"] {
        println!("cargo:rerun-if-changed={folder}/{watched}");
    }
    let built = embedded_variable(package);
    println!("cargo:rerun-if-env-changed={built}");
    let program = if let Some(program) = env::var_os(built) {
        println!("cargo:rerun-if-changed={}", program.display());
        PathBuf::from(program)
    } else if env::var("PROFILE").as_deref() == Ok("release") {
        build_program(package, &out_dir.join("programs"))
    } else {
        let placeholder = out_dir.join(package);
        fs::write(&placeholder, []).expect("OUT_DIR is writable");
        placeholder
    };
    println!("cargo:rustc-env={variable}={}", program.display());
}

/// The environment variable that names the ELF file of a user program to the build script of a package that embeds it.
pub fn embedded_variable(package: &str) -> String {
    let name = package.to_uppercase().replace('-', "_");
    format!("SANDGLASS_EMBEDDED_{name}")
}

/// Builds a package below `target_dir`, away from the lock of the cargo that runs the script.
fn build_program(package: &str, target_dir: &Path) -> PathBuf {
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO");
    let status = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--locked",
            "--target",
            TARGET,
            "--package",
            package,
        ])
        .arg("--target-dir")
        .arg(target_dir)
        // Embedded bytes have nobody who would read it.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "none")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()
        .expect("cargo runs");
    assert!(
        status.success(),
        "the user program `{package}` does not build"
    );
    target_dir.join(TARGET).join("release").join(package)
}
