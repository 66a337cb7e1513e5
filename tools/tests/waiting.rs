//! Nobody waits for the kernel longer than a turn of each other core takes, whatever these do.

use std::process::Command;

#[test]
fn waiting_for_the_kernel_has_a_bound() {
    has_a_bound("x86_64");
}

#[test]
fn waiting_for_the_kernel_has_a_bound_on_aarch64() {
    has_a_bound("aarch64");
}

fn has_a_bound(arch: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["bounds", "--cores", "4", "--quick", "--arch", arch])
        .output()
        .expect("the command of this package starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
