//! The table of the processor's state notices what is wrong.

use std::process::Command;

/// Pieces that are set wrong, one at a time, each of which must be noticed; and none.
const PIECES: usize = 21;

#[test]
fn each_piece_that_is_set_wrong_is_noticed_on_aarch64() {
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["machine", "spoiled", "--arch", "aarch64"])
        .output()
        .expect("the command of this package starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    let noticed = said.matches(": as expected").count();
    assert_eq!(noticed, PIECES + 1, "{said}");
}
