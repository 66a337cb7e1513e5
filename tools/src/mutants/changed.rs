//! Which files of the kernel are changed: against what the main branch and this one have in common, or, on
//! the main branch, against the last commit.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::workspace;

/// Names of the main branch, here and in a clone of another branch.
const MAIN: &[&str] = &["main", "origin/main"];

/// The files below `folder` of the repository that are changed, or that git does not know; none where there
/// is no repository of git.
///
/// # Errors
/// git does not do as it is told.
pub fn files(folder: &str) -> Result<BTreeSet<String>> {
    if git(&["rev-parse", "HEAD"]).is_err() {
        return Ok(BTreeSet::new());
    }
    let mut bases = MAIN.iter().map(|main| git(&["merge-base", "HEAD", main]));
    let base = bases.find_map(Result::ok);
    let base = base.as_deref().map_or("HEAD", str::trim);
    let tracked = git(&["diff", "--name-only", "--no-renames", base, "--", folder])?;
    let unknown = git(&["ls-files", "--others", "--exclude-standard", "--", folder])?;
    Ok(tracked
        .lines()
        .chain(unknown.lines())
        .map(str::to_owned)
        .collect())
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .current_dir(workspace::root())
        .args(arguments)
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        bail!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).context("a file's name is no text")
}
