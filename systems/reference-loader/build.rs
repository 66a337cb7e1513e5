//! Links the loader where it runs: away from where kernels go.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        for argument in [
            "--image-base=0x50000000",
            "-e_start",
            "-znoexecstack",
            "-zmax-page-size=4096",
        ] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}
