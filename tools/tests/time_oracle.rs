//! The oracle for time, over the storm: it knows who executes on whose time, and finds a kernel that
//! gives away more than a budget.

use std::process::{Command, Output};

/// A mutant of each architecture (`assurance/mutants/`).
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

#[track_caller]
fn assert_nothing_is_found(arch: &str) {
    let (output, text) = storm(&["--kernel", "release", "--arch", arch]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("; no finding"), "{text}");
}

#[track_caller]
fn assert_half_is_found(arch: &str) {
    let (output, text) = storm(&["--wrong", HALF_IS_FREE, "--arch", arch]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("windows: the context at"), "{text}");
}

#[test]
fn over_the_storm_no_context_has_more_than_its_budget() {
    assert_nothing_is_found("x86_64");
}

#[test]
fn over_the_storm_of_aarch64_no_context_has_more_than_its_budget() {
    assert_nothing_is_found("aarch64");
}

#[test]
fn a_kernel_that_charges_half_is_found() {
    assert_half_is_found("x86_64");
}

#[test]
fn a_kernel_of_aarch64_that_charges_half_is_found() {
    assert_half_is_found("aarch64");
}
