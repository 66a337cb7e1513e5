//! No arrangement that is known lengthens a path of the kernel beyond its limits.

use std::process::Command;

#[test]
fn no_operation_exceeds_its_bounds() {
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["bounds", "--quick"])
        .output()
        .expect("the command of this package starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
