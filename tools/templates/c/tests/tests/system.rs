//! The system as a whole, and its logic in C on the host.

use std::path::Path;
use std::process::Command;

use system_tests::trace;

#[test]
fn no_deadline_is_missed_and_the_oven_gets_hot() {
    let run = trace(env!("CARGO_TARGET_TMPDIR"));
    run.assert_printed(&[
        "control: 60 jobs, 0 late; the oven has 180 degrees",
        "trace check: 0 violations",
    ]);
}

#[test]
fn the_control_law_in_c_is_right() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("law");
    let status = Command::new("cc")
        .current_dir(project)
        .args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "tests/law.c",
            "control/law.c",
            "-o",
        ])
        .arg(&program)
        .status()
        .expect("a C compiler is there");
    assert!(status.success());
    assert!(Command::new(&program).status().unwrap().success());
}
