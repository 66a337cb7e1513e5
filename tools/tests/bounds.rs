//! No arrangement that is known lengthens a path of the kernel beyond its limits.

use std::process::Command;

use sandglass_tools::arch::Arch;
use sandglass_tools::program;
use sandglass_tools::visits;

#[test]
fn no_operation_exceeds_its_bounds() {
    bounds(&["--quick"]);
}

#[test]
fn no_operation_exceeds_its_bounds_on_aarch64() {
    bounds(&["--quick", "--arch", "aarch64"]);
}

/// The longest paths that programs drive are within what is computed of paths of their kind, and the book shows both.
#[test]
fn constructed_worst_cases_are_those_of_the_page() {
    bounds(&["--worst"]);
}

#[test]
fn constructed_worst_cases_on_aarch64_are_those_of_the_page() {
    bounds(&["--worst", "--arch", "aarch64"]);
}

/// The command must end well.
fn bounds(arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandglass"));
    command.arg("bounds").args(arguments);
    if arguments.contains(&"--worst") {
        // Where all visits are counted, processors are simulated for those, not between marks.
        command.env_remove(visits::VARIABLE);
    }
    let output = command
        .output()
        .expect("the command of this package starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Messages through deep capability spaces, on processors whose caches are simulated. What exceeds its bound
/// fails here, or in `wcet::visits` if that watches all machines.
#[test]
fn no_visit_takes_longer_than_computed() {
    visits_hold(Arch::X86_64);
}

#[test]
fn no_visit_takes_longer_than_computed_on_aarch64() {
    visits_hold(Arch::Aarch64);
}

fn visits_hold(arch: Arch) {
    let metadata = program::workspace_metadata().expect("cargo knows this workspace");
    let package = program::package_in(&metadata, "systems/bounds").expect("it is there");
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .env("SANDGLASS_VISITS_MODELS", "cortex-a8,cortex-a53")
        .arg("boot")
        .arg(package.name.as_str())
        .args([
            "--arch",
            arch.name(),
            "--kernel",
            "release",
            "--icount",
            "0",
            "--visits",
        ])
        .args(["--until", "bounds: invocations"])
        .output()
        .expect("the command of this package starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The arguments of the analyser are those of the command: a wrong one ends it as one of any other command.
#[test]
fn a_wrong_argument_of_wcet_has_the_status_of_wrong_arguments() {
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["wcet", "--bogus"])
        .output()
        .expect("the command of this package starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--bogus"), "{said}");
}
