//! Which checks a run leaves out. The suite is one file that runs on any kernel of the ABI, and a root
//! task is given no arguments: so they are written into its file, into a section for them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use object::{Object, ObjectSection};

use super::checks::Check;
use crate::cli::SelectionArgs;
use crate::qemu::Outcome;
use crate::test::lines::{self, Verdict};
use crate::workspace;

/// The section, and the line that it begins with, as the suite has them
/// (`systems/conformance/kit/src/harness/options.rs`).
const SECTION: &str = ".conformance.options";
const HEADER: &[u8] = b"options of the conformance suite, 1\n";

/// The root task with these options: `root_task` itself if there are none.
///
/// # Errors
/// Those of [`write`].
pub fn apply(selection: &SelectionArgs, checks: &[Check], root_task: PathBuf) -> Result<PathBuf> {
    if options(selection).is_empty() {
        return Ok(root_task);
    }
    let file = workspace::target_dir().join("conformance-selection.elf");
    write(selection, checks, &root_task, &file)?;
    Ok(file)
}

/// Writes the root task with these options to `file`.
///
/// # Errors
/// A pattern is like no check's name; the options are too long; or a file cannot be read or written.
pub fn write(
    selection: &SelectionArgs,
    checks: &[Check],
    root_task: &Path,
    file: &Path,
) -> Result<()> {
    for pattern in selection.skip.iter().chain(&selection.only) {
        if !checks.iter().any(|check| matches(pattern, &check.name)) {
            bail!(
                "no check's name is like `{pattern}`: `*` stands for any text, and without it a \
                 pattern is a whole name, as in `01/7/set-tls-base-sets-the-fs-base` or `04/15/*`"
            );
        }
    }
    let mut image =
        fs::read(root_task).with_context(|| format!("cannot read {}", root_task.display()))?;
    patch(&mut image, &options(selection))
        .with_context(|| format!("in {}", root_task.display()))?;
    fs::write(file, image).with_context(|| format!("cannot write {}", file.display()))
}

/// What is wrong with a run of the selection that skips `01/7/set-*`, `03/*` and wrong debug calls,
/// and has only `01/7/*` and `08/3/*`.
pub fn misjudged(checks: &[Check], outcome: &Outcome) -> Vec<String> {
    let results = || outcome.console.lines().filter_map(lines::result);
    let mut findings = Vec::new();
    for (name, verdict) in results() {
        let skipped = ["01/7/set-", "03/"]
            .iter()
            .any(|skip| name.starts_with(skip));
        let wanted = ["01/7/", "08/3/"].iter().any(|only| name.starts_with(only));
        let as_expected = match &verdict {
            Verdict::Skipped(reason) if reason.contains("pattern") => skipped,
            Verdict::Skipped(reason) if reason.contains("debug call") => wanted && !skipped,
            Verdict::Skipped(reason) if reason.contains("only ones") => !wanted && !skipped,
            // For a reason of its own.
            Verdict::Skipped(_) | Verdict::Passed => wanted && !skipped,
            Verdict::Failed(_) => false,
        };
        if !as_expected {
            findings.push(format!("{name} is {verdict:?}"));
        }
    }
    let number = |is: fn(&Verdict) -> bool| results().filter(|(_, verdict)| is(verdict)).count();
    let wrong_calls = number(
        |verdict| matches!(verdict, Verdict::Skipped(reason) if reason.contains("debug call")),
    );
    let passed = number(|verdict| *verdict == Verdict::Passed);
    if results().count() != checks.len() || wrong_calls == 0 || passed < 10 {
        findings.push(format!(
            "of {} checks, {} were named, {passed} passed, {wrong_calls} made wrong debug calls",
            checks.len(),
            results().count(),
        ));
    }
    if outcome.console.lines().rev().find_map(lines::closing) != Some((passed, 0)) {
        findings.push(format!("the run does not close with {passed} passed"));
    }
    findings
}

/// A line for each option.
fn options(selection: &SelectionArgs) -> String {
    let mut lines = String::new();
    for (option, patterns) in [("skip", &selection.skip), ("only", &selection.only)] {
        for pattern in patterns {
            lines += &format!("{option} {pattern}\n");
        }
    }
    if selection.skip_wrong_debug_calls {
        lines += "skip-wrong-debug-calls\n";
    }
    lines
}

/// Puts the options into the section of the program `image`.
fn patch(image: &mut [u8], options: &str) -> Result<()> {
    let file = object::File::parse(&*image)?;
    let section = file
        .section_by_name(SECTION)
        .with_context(|| format!("there is no section `{SECTION}`: is it the suite?"))?;
    let (start, size) = section.file_range().context("the section is empty")?;
    let section = usize::try_from(start)
        .ok()
        .zip(usize::try_from(size).ok())
        .and_then(|(start, size)| image.get_mut(start..start + size))
        .context("the section is not in the file")?;
    ensure!(
        section.starts_with(HEADER),
        "its options are of another kind"
    );
    let place = &mut section[HEADER.len()..];
    // A zero byte is the end.
    ensure!(
        options.len() < place.len(),
        "the options have {} bytes of at most {}: say it with fewer patterns",
        options.len(),
        place.len() - 1
    );
    place.fill(0);
    place[..options.len()].copy_from_slice(options.as_bytes());
    Ok(())
}

/// Whether the pattern is all of the name: each `*` of it stands for any text. The suite has the
/// same rule.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, mut rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    while let Some((piece, after)) = rest.split_once('*') {
        let Some(place) = name.find(piece) else {
            return false;
        };
        name = &name[place + piece.len()..];
        rest = after;
    }
    name.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name) in [
            ("04/15/*", "04/15/a-b"),
            ("*", "04/15/a-b"),
            ("*a-b", "04/15/a-b"),
            ("0*/15*b", "04/15/a-b"),
            ("*-*-*", "01/7/a-b-c"),
            ("01/7/a", "01/7/a"),
            ("01/7/a*", "01/7/a"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("04/15", "04/15/a-b"),
            ("4/15/*", "04/15/a-b"),
            ("*a", "04/15/a-b"),
            ("*b*a", "04/15/a-b"),
            ("a*a", "a"),
            ("", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_must_be_like_a_name() {
        let selection = SelectionArgs {
            skip: vec!["01/7/nothing*".to_owned()],
            ..SelectionArgs::default()
        };
        let checks = [Check::new("01/7/something", Path::new("page01/a.rs"))];
        let error = write(&selection, &checks, Path::new("/no"), Path::new("/no")).unwrap_err();
        assert!(error.to_string().contains("`01/7/nothing*`"), "{error}");
    }

    #[test]
    fn each_option_has_a_line() {
        let selection = SelectionArgs {
            skip: vec!["a".to_owned(), "b*".to_owned()],
            only: vec!["c".to_owned()],
            skip_wrong_debug_calls: true,
        };
        let expected = "skip a\nskip b*\nonly c\nskip-wrong-debug-calls\n";
        assert_eq!(options(&selection), expected);
        assert_eq!(options(&SelectionArgs::default()), "");
    }
}
