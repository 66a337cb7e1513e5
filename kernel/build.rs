//! Hands the linker script to the linker of the bare-metal kernel.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target_os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let target_arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if target_os == "none" {
        let root = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        let script = format!("{root}/src/arch/{target_arch}/entry/kernel.ld");
        println!("cargo::rerun-if-changed={script}");
        println!("cargo::rustc-link-arg-bins=-T{script}");
        // Segments at page boundaries of the file cost a few KiB; the script already aligns what
        // must be aligned in memory.
        println!("cargo::rustc-link-arg-bins=-zmax-page-size=4096");
    }
}
