//! The oracle for time, over the storm: it knows who executes on whose time, and finds a kernel that
//! gives away more than a budget.

use std::process::{Command, Output};

/// A mutant of `assurance/mutants/rules.toml`.
const HALF_IS_FREE: &str = "half_is_free";

fn storm(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["storm", "--oracle", "--calls", "30000"])
        .args(arguments)
        .output()
        .expect("the command of this package starts");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output, text)
}

#[test]
fn over_the_storm_no_context_has_more_than_its_budget() {
    let (output, text) = storm(&["--kernel", "release"]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("; no finding"), "{text}");
}

#[test]
fn a_kernel_that_charges_half_is_found() {
    let (output, text) = storm(&["--wrong", HALF_IS_FREE]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("windows: the context at"), "{text}");
}
