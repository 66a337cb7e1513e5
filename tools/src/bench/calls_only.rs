//! What it costs that a client can call a passive server, and nothing else: the table of the book.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{bail, Context, Result};

use super::Row;
use crate::workspace;

/// The page with the table, in the repository.
const PAGE: &str = "docs/src/decisions/calls-only.md";
/// The table stands between these lines.
const BEGIN: &str = "<!-- `./sandglass bench --page` makes this table. -->\n\n";
const END: &str = "\n<!-- The end of the table. -->\n";

/// An operation with both kinds of capabilities.
struct Operation {
    title: &'static str,
    /// The row with a plain capability; that of the other has the same name and [`SUFFIX`].
    row: &'static str,
    /// What it took before there was the other kind, at commit 3c3d55b, measured in the same way.
    before: u32,
}

const SUFFIX: &str = "-calls-only";

const OPERATIONS: &[Operation] = &[
    Operation {
        title: "call of a passive server",
        row: "call-0-passive",
        before: 459,
    },
    Operation {
        title: "its reply",
        row: "reply-recv-0-passive",
        before: 583,
    },
    Operation {
        title: "call with ten words",
        row: "call-10-passive",
        before: 546,
    },
    Operation {
        title: "its reply, with ten words",
        row: "reply-recv-10-passive",
        before: 665,
    },
];

/// The table.
///
/// # Errors
/// A row was not measured.
fn table(rows: &[Row]) -> Result<String> {
    let most = |name: &str| {
        let row = rows.iter().find(|row| row.name == name);
        let row = row.with_context(|| format!("the benchmark system printed no row `{name}`"))?;
        anyhow::Ok(row.max)
    };
    let mut text = "| kernel-only instructions | before | a plain capability | calls only | added to before |\n\
                    | --- | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for operation in OPERATIONS {
        let plain = most(operation.row)?;
        let calls_only = most(&format!("{}{SUFFIX}", operation.row))?;
        let (title, before) = (operation.title, operation.before);
        let added = calls_only - f64::from(before);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {title} | {before} | {plain} | {calls_only} | {added} |"
        );
    }
    Ok(text)
}

fn path() -> PathBuf {
    workspace::root().join(PAGE)
}

/// Where the table stands in the text of the page.
///
/// # Errors
/// It has no place there.
fn place(page: &str) -> Result<std::ops::Range<usize>> {
    let begin = page.find(BEGIN).map(|at| at + BEGIN.len());
    let place = begin.and_then(|begin| Some(begin..begin + page[begin..].find(END)?));
    match place {
        Some(place) => Ok(place),
        None => bail!("{PAGE} has no place for the table: the lines\n{BEGIN}{END}"),
    }
}

/// Writes it into the page, and returns where that is.
pub fn write(rows: &[Row]) -> Result<PathBuf> {
    let path = path();
    let mut page =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    page.replace_range(place(&page)?, &table(rows)?);
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// What is wrong with the page, if it shows something else than `rows`.
///
/// # Errors
/// The page cannot be read or has no place for a table, or a row was not measured.
pub fn finding(rows: &[Row]) -> Result<Option<String>> {
    let path = path();
    let page =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let right = table(rows)?;
    let is_right = page[place(&page)?] == right;
    Ok((!is_right)
        .then(|| format!("{PAGE} shows other figures: run `./sandglass bench --page`\n{right}")))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::arch::Arch;

    fn rows(of: impl Fn(&Operation) -> [u32; 2]) -> Vec<Row> {
        let line = |operation: &Operation| {
            let [plain, calls_only] = of(operation);
            let name = operation.row;
            format!("bench {name} 1 2 {plain}\nbench {name}{SUFFIX} 1 2 {calls_only}\n")
        };
        let text: String = OPERATIONS.iter().map(line).collect();
        parse(Arch::X86_64, &text).unwrap()
    }

    #[test]
    fn what_is_added_is_the_slowest_sample_beyond_what_it_was() {
        let table = table(&rows(|operation| [operation.before, operation.before + 7])).unwrap();
        assert!(table.contains("| call of a passive server | 459 | 459 | 466 | 7 |"));
        assert_eq!(table.lines().count(), 2 + OPERATIONS.len());
    }

    #[test]
    fn a_row_that_is_not_measured_is_missed() {
        let rows = parse(Arch::X86_64, "bench call-0-passive 1 2 3\n").unwrap();
        let error = table(&rows).unwrap_err().to_string();
        assert!(error.contains("call-0-passive-calls-only"), "{error}");
    }

    #[test]
    fn the_page_has_a_place_and_other_figures_are_found() {
        let page = fs::read_to_string(path()).unwrap();
        assert!(page[place(&page).unwrap()].starts_with("| kernel-only instructions |"));
        assert!(place("nothing").is_err());
        let finding = finding(&rows(|_| [1, 2])).unwrap().unwrap();
        assert!(finding.contains("./sandglass bench --page"), "{finding}");
    }
}
