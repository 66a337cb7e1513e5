//! Every command that boots something does so on both architectures, or says in words what it does not do.

use std::collections::BTreeSet;
use std::process::{Command, Output};

/// Commands that boot something, or build what is booted, and take `--arch`.
const ON_BOTH: &[&str] = &[
    "beside",
    "boot",
    "bench",
    "bounds",
    "build",
    "c-flags",
    "conformance",
    "debug",
    "demo",
    "experiment",
    "image",
    "kernel",
    "machine",
    "new",
    "run",
    "storm",
    "trace",
    "validate",
    "wcet",
];

/// The others, each with the reason.
const OTHERS: &[(&str, &str)] = &[
    (
        "assure",
        "the hosted kernel: `--features aarch64` of its packages",
    ),
    ("check", "looks at the kernels for both"),
    ("coverage", "the hosted kernel"),
    ("fuzz", "the hosted kernel"),
    ("help", "boots nothing"),
    ("mutants", "the hosted kernel"),
    ("profiles", "a list of all"),
    ("sdk", "profiles of others are those of x86_64"),
    ("test", "tests both: `--only` selects"),
];

fn sandglass(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(arguments)
        .output()
        .expect("the command of this package starts")
}

fn said(out: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&out.stdout) + &text(&out.stderr)
}

/// The names in the list of commands.
fn listed() -> BTreeSet<String> {
    let help = said(&sandglass(&["help"]));
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_command_is_for_both_architectures_or_says_why_not() {
    let known = ON_BOTH.iter().chain(OTHERS.iter().map(|(name, _)| name));
    let known: BTreeSet<String> = known.map(|name| (*name).to_owned()).collect();
    assert_eq!(
        listed(),
        known,
        "a command that is in none of the two lists here, or not there"
    );
    for command in ON_BOTH {
        let help = said(&sandglass(&[command, "--help"]));
        assert!(help.contains("--arch <ARCH>"), "{command}: {help}");
        assert!(help.contains("aarch64"), "{command}: {help}");
    }
}

/// Before anything is built.
#[test]
fn what_is_not_for_aarch64_is_refused_in_words() {
    for (arguments, words) in [
        (&["bench", "--trace"][..], "on x86_64 only"),
        (&["bench", "--page"], "on x86_64 only"),
        (&["bounds", "--search"], "structures are those of both"),
    ] {
        let mut all = arguments.to_vec();
        all.extend(["--arch", "aarch64"]);
        let out = sandglass(&all);
        assert!(!out.status.success(), "{arguments:?}");
        let said = said(&out);
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(!said.contains("building"), "{arguments:?}: {said}");
    }
}

/// The release kernel for aarch64 is analysed for a platform as that for x86_64 is, and records its bounds.
#[test]
fn a_kernel_for_aarch64_records_its_bounds_on_a_platform() {
    let platform = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../assurance/wcet/platforms/pc.toml"
    );
    let arguments = ["kernel", "--arch", "aarch64", "--platform", platform];
    let out = sandglass(&arguments);
    assert!(out.status.success(), "{}", said(&out));
    let path = String::from_utf8_lossy(&out.stdout);
    let path = path.lines().last().unwrap_or_default();
    assert!(path.ends_with("aarch64.analysed.elf"), "{path}");
}
