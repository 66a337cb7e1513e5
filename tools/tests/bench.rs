//! The kernel's general path stays lean.

use std::process::Command;

#[test]
fn no_operation_exceeds_its_limit() {
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .arg("bench")
        .output()
        .expect("the command of this package starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
