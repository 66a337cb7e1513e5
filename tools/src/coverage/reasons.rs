//! Why some lines of the kernel are executed by no test on the host: `kernel/unexecuted.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::lines::{Counts, Coverage};
use crate::workspace;

/// The list, in the repository.
const LIST: &str = "kernel/unexecuted.toml";

/// The whole list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasons {
    #[serde(default, rename = "unexecuted")]
    entries: Vec<Entry>,
    /// Source lines by file, to find the entries' texts in.
    #[serde(skip)]
    sources: BTreeMap<String, Vec<String>>,
}

/// Lines of one file that have one reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Path below `kernel/`.
    file: String,
    /// Why no test on the host can execute them.
    reason: String,
    /// The lines, as they stand in the file, without the space around them. An item of several
    /// lines means the last of them, where the others stand before it: `return;` says little.
    lines: Vec<String>,
}

impl Reasons {
    /// Reads the list and the files that it names.
    ///
    /// # Errors
    /// One of them cannot be read, or the list is malformed.
    pub fn load() -> Result<Self> {
        let path = workspace::root().join(LIST);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {LIST}"))?;
        let mut reasons: Reasons = toml::from_str(&text).with_context(|| format!("in {LIST}"))?;
        let files: BTreeSet<_> = reasons.entries.iter().map(|e| e.file.clone()).collect();
        for file in files {
            let source = fs::read_to_string(workspace::root().join("kernel").join(&file))
                .with_context(|| format!("{LIST} names kernel/{file}"))?;
            let lines = source.lines().map(|line| line.trim().to_owned()).collect();
            reasons.sources.insert(file, lines);
        }
        Ok(reasons)
    }

    /// The reasons for lines of `file` that were not executed, each with their number.
    pub fn of_file(&self, file: &str, counts: &Counts) -> Vec<(&str, usize)> {
        let entries = self.entries.iter().filter(|entry| entry.file == file);
        let number = |entry: &&Entry| {
            let unexecuted = counts.iter().filter(|(_, &count)| count == 0);
            let explained = |line: u32| {
                let mut wanted = entry.lines.iter();
                wanted.any(|wanted| self.is_at(file, line, wanted))
            };
            unexecuted.filter(|(&line, _)| explained(line)).count()
        };
        entries
            .map(|entry| (entry.reason.as_str(), number(&entry)))
            .collect()
    }

    /// What is wrong with the list: lines that were not executed and have no reason, and lines
    /// that have a reason and were executed or do not exist.
    pub fn findings(&self, coverage: &Coverage) -> Vec<String> {
        let mut findings = Vec::new();
        for (file, counts) in &coverage.files {
            for (&line, _) in counts.iter().filter(|(_, &count)| count == 0) {
                if !self.explains(file, line) {
                    findings.push(format!(
                        "kernel/{file}:{line}: no test executes this, and {LIST} has no reason"
                    ));
                }
            }
        }
        for entry in &self.entries {
            for wanted in &entry.lines {
                if !self.is_unexecuted(coverage, &entry.file, wanted) {
                    findings.push(format!(
                        "{LIST}: kernel/{}: no line `{wanted}` without execution: remove it",
                        entry.file
                    ));
                }
            }
        }
        findings
    }

    fn explains(&self, file: &str, line: u32) -> bool {
        let of_file = self.entries.iter().filter(|entry| entry.file == file);
        of_file
            .flat_map(|entry| &entry.lines)
            .any(|wanted| self.is_at(file, line, wanted))
    }

    fn is_unexecuted(&self, coverage: &Coverage, file: &str, wanted: &str) -> bool {
        let Some(counts) = coverage.files.get(file) else {
            return false;
        };
        counts
            .iter()
            .any(|(&line, &count)| count == 0 && self.is_at(file, line, wanted))
    }

    /// Whether the last line of `wanted` is line `line`, counted from 1, of `file`, and its others
    /// stand before that.
    fn is_at(&self, file: &str, line: u32, wanted: &str) -> bool {
        let Some(before) = self
            .sources
            .get(file)
            .and_then(|all| all.get(..line as usize))
        else {
            return false;
        };
        let wanted: Vec<String> = wanted.lines().map(|text| text.trim().to_owned()).collect();
        !wanted.is_empty() && before.ends_with(&wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::{Coverage, Reasons};

    fn reasons() -> Reasons {
        let list =
            "[[unexecuted]]\nfile = \"a.rs\"\nreason = \"none\"\nlines = [\"two\", \"gone\"]";
        let mut reasons: Reasons = toml::from_str(list).expect("well formed");
        let source = ["one", "two", "three"].map(str::to_owned).to_vec();
        reasons.sources.insert("a.rs".into(), source);
        reasons
    }

    fn coverage(lcov: &str) -> Coverage {
        Coverage::parse(lcov, |path| Some(path.into())).expect("well formed")
    }

    #[test]
    fn an_unexecuted_line_needs_a_reason_and_a_reason_an_unexecuted_line() {
        let findings = reasons().findings(&coverage("SF:a.rs\nDA:1,1\nDA:2,0\nDA:3,0\n"));
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("a.rs:3"), "{findings:?}");
        assert!(findings[1].contains("`gone`"), "{findings:?}");
    }

    #[test]
    fn an_item_of_several_lines_means_the_last_of_them() {
        let mut reasons = reasons();
        let source = ["return;", "else {", "return;"].map(str::to_owned).to_vec();
        reasons.sources.insert("a.rs".into(), source);
        reasons.entries[0].lines = vec!["else {\nreturn;".into()];
        let findings = reasons.findings(&coverage("SF:a.rs\nDA:1,0\nDA:3,0\n"));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("a.rs:1"), "{findings:?}");
    }

    #[test]
    fn reasons_are_counted() {
        let coverage = coverage("SF:a.rs\nDA:1,1\nDA:2,0\n");
        let reasons = reasons();
        assert_eq!(
            reasons.of_file("a.rs", &coverage.files["a.rs"]),
            [("none", 1)]
        );
    }
}
