//! Descriptions with mistakes, each in a file of `mistakes/` that ends with what is said about it: of every finding
//! its place, message, label and remedy, in order and complete. Files that warn have names that begin with `warns`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::system::findings::{position, Finding};
use crate::system::{check, Source};

/// What a line of expectations begins with.
const EXPECTED: &str = "#! ";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/system/check/tests/mistakes")
}

/// A finding as a file writes it.
fn written(source: &Source, finding: &Finding) -> String {
    let (line, column) = position(&source.text, finding.span.start);
    let kind = match finding.warning {
        None => "error".to_owned(),
        Some(warning) => format!("warning[{}]", warning.name()),
    };
    let text = format!(
        "{EXPECTED}{line}:{column} {kind}: {}\n{EXPECTED}label: {}\n{EXPECTED}help: {}\n",
        finding.message, finding.label, finding.help
    );
    text.replace(&format!("{}/", folder().display()), "")
}

/// What is found in a description, and what it says is found.
fn found_and_expected(path: &Path) -> (Vec<Finding>, String, String) {
    let content = fs::read_to_string(path).unwrap();
    let (expected, described): (Vec<&str>, Vec<&str>) = content
        .split_inclusive('\n')
        .partition(|line| line.starts_with(EXPECTED));
    let source = Source {
        arch: None,
        name: path.display().to_string(),
        text: described.concat(),
        folder: folder(),
    };
    let findings = match check(&source) {
        Ok(description) => description.outlook.warnings,
        Err(report) => report.findings,
    };
    let found: String = findings
        .iter()
        .map(|finding| written(&source, finding))
        .collect();
    (findings, found, expected.concat())
}

#[test]
fn every_mistake_is_told_with_place_and_remedy() {
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let (findings, found, expected) = found_and_expected(&path);
        assert_eq!(found, expected, "{}", path.display());
        assert!(!findings.is_empty(), "{} has no mistake", path.display());
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for finding in &findings {
            assert_eq!(
                finding.warning.is_some(),
                name.starts_with("warns"),
                "{name}"
            );
            let remedy = !finding.help.is_empty() || finding.label.starts_with("must ");
            let remedy = remedy || finding.label.starts_with("a name has ");
            assert!(remedy, "{name} has no remedy: {}", finding.message);
        }
        count += 1;
    }
    assert!(count >= 50, "only {count} descriptions");
}
