//! [cargo-mutants](https://mutants.rs), which generates the mutants: it is asked for a list, and judges
//! none.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{bail, Context, Result};
use serde::Deserialize;

use crate::{toolchain, workspace};

/// The release that generates them: another one may name them otherwise.
const VERSION: &str = "27.1.0";

/// A mutant as cargo-mutants lists it.
#[derive(Debug, Clone, Deserialize)]
pub struct Listed {
    /// Of the repository.
    pub file: String,
    /// File, line and column, and what is changed: `FILE:LINE:COLUMN: CHANGE`.
    pub name: String,
    /// None if it is in a constant.
    pub function: Option<Function>,
    /// What is replaced.
    pub span: Span,
    pub replacement: String,
    pub genre: Genre,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Function {
    /// With the arrow; empty if it returns nothing.
    pub return_type: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Span {
    pub start: Position,
    /// Behind it.
    pub end: Position,
}

/// Line and column, both from 1 on; a column is a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Kinds of mutants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

impl Listed {
    /// The name without line and column: it stays when other lines change.
    pub fn stable_name(&self) -> String {
        let Position { line, column } = self.span.start;
        let head = format!("{}:{line}:{column}", self.file);
        match self.name.strip_prefix(&head) {
            Some(change) => format!("{}{change}", self.file),
            None => self.name.clone(),
        }
    }
}

#[cfg(test)]
impl Listed {
    /// A mutant of `text`, one line in a function, that replaces `original` where it first stands.
    pub fn in_line(text: &str, genre: Genre, original: &str, by: &str) -> Self {
        let start = text.find(original).expect("it stands there");
        let position = |byte: usize| Position {
            line: 1,
            column: 1 + byte,
        };
        let return_type = match text.split_once("->") {
            Some((_, rest)) => format!("-> {}", rest.split('{').next().unwrap_or("").trim()),
            None => String::new(),
        };
        Self {
            file: "a.rs".to_owned(),
            name: format!("a.rs:1:{}: replace {original} with {by}", 1 + start),
            function: Some(Function { return_type }),
            span: Span {
                start: position(start),
                end: position(start + original.len()),
            },
            replacement: by.to_owned(),
            genre,
        }
    }
}

/// Lists the mutants of the files of `package` that are like one of the patterns `files`.
///
/// # Errors
/// cargo-mutants cannot be installed, or says something else.
pub fn list(package: &str, files: &[String]) -> Result<Vec<Listed>> {
    let mut command = Command::new(installed()?);
    command
        .current_dir(workspace::root())
        .args([
            "mutants",
            "--list",
            "--json",
            "--no-config",
            "--package",
            package,
        ])
        .args(files.iter().flat_map(|file| ["--file", file]));
    let output = command.output().context("cannot run cargo-mutants")?;
    if !output.status.success() {
        bail!(
            "cargo-mutants: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("in the list of cargo-mutants")
}

/// cargo-mutants, below the target directory; installed if it is not there.
fn installed() -> Result<PathBuf> {
    let root = workspace::target_dir().join(format!("cargo-mutants-{VERSION}"));
    let path = root.join("bin/cargo-mutants");
    if path.is_file() {
        return Ok(path);
    }
    let building = root.join("build");
    let mut cargo = toolchain::host_cargo();
    // It runs for seconds: a quick build matters more than a quick program.
    cargo
        .args(["install", "cargo-mutants", "--version", VERSION])
        .args(["--locked", "--debug", "--no-track", "--root"])
        .arg(&root)
        .arg("--target-dir")
        .arg(&building)
        .env("CARGO_PROFILE_DEV_DEBUG", "false");
    eprintln!(
        "installing cargo-mutants {VERSION} below {}",
        root.display()
    );
    toolchain::build_now(&mut cargo, &format!("cargo-mutants {VERSION}"))?;
    // It is as large as a kernel's tests, and of no use any more.
    std::fs::remove_dir_all(&building)
        .with_context(|| format!("cannot remove {}", building.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stays_when_lines_change() {
        let listed: Listed = serde_json::from_str(
            r#"{"package": "p", "file": "a/b.rs", "name": "a/b.rs:47:26: replace & with | in f",
                "function": {"function_name": "f", "return_type": "-> u8",
                             "span": {"start": {"line": 1, "column": 1}, "end": {"line": 9, "column": 2}}},
                "span": {"start": {"line": 47, "column": 26}, "end": {"line": 47, "column": 27}},
                "replacement": "|", "genre": "BinaryOperator", "diff": "..."}"#,
        )
        .unwrap();
        assert_eq!(listed.stable_name(), "a/b.rs: replace & with | in f");
    }
}
