//! The demo from outside: what it promises to whoever runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A path for this test's own files.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs `sandglass demo --quick` over a file with this content.
fn demo(name: &str, input: &[u8]) -> (Output, PathBuf) {
    let path = scratch(&format!("{name}.input"));
    fs::write(&path, input).unwrap();
    let report = scratch(&format!("{name}.report"));
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["demo", "--quick", "--input"])
        .arg(&path)
        .arg("--report")
        .arg(&report)
        .output()
        .unwrap();
    (output, report)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const FILES: [&str; 5] = [
    "ciphertext.bin",
    "index.html",
    "responses.csv",
    "throughput.csv",
    "timeline.csv",
];

/// Its claims hold, its report is complete and needs nothing else, and all figures are the same on
/// every run.
#[test]
fn the_demo_succeeds_and_repeats_to_the_last_figure() {
    // Neither whole blocks of the cipher nor whole words.
    let input: Vec<u8> = (0..10_003u32).map(|i| ((i * i) >> 3) as u8).collect();
    let (first, first_report) = demo("first", &input);
    assert!(
        first.status.success(),
        "{}{}",
        text(&first.stdout),
        text(&first.stderr)
    );
    let (second, second_report) = demo("second", &input);
    assert!(second.status.success());

    for file in FILES {
        let found = fs::read(first_report.join(file)).unwrap();
        let again = fs::read(second_report.join(file)).unwrap();
        // The page names the input, and the inputs have different names.
        let same = text(&found).replace("first.input", "second.input") == text(&again);
        assert!(same, "{file} differs from run to run");
    }
    let ciphertext = fs::read(first_report.join("ciphertext.bin")).unwrap();
    assert_eq!(ciphertext.len(), input.len());
    let page = fs::read_to_string(first_report.join("index.html")).unwrap();
    for reference in ["src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(reference), "the page refers to other files");
    }
    assert!(page.contains("<svg") && page.contains("HIGH met all"));
}

/// Nothing is built or written for an input that cannot be encrypted.
#[test]
fn inputs_of_a_wrong_size_are_refused_with_what_would_be_right() {
    for (name, input, said) in [
        ("empty", vec![], "1 to 4194304 bytes are right"),
        ("large", vec![0; (4 << 20) + 1], "4194304 bytes (4 MiB)"),
    ] {
        let (output, report) = demo(name, &input);
        assert!(!output.status.success(), "{name}");
        assert!(text(&output.stderr).contains(said), "{name}");
        assert!(!report.exists(), "{name}");
    }
}
