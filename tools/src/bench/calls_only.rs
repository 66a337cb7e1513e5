//! What it costs that a client can call a passive server, and nothing else: the table of the book.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::page::Page;
use super::Row;

/// Where the table is.
pub const PAGE: Page = Page {
    path: "docs/src/decisions/calls-only.md",
    command: "./sandglass bench --page",
};

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
pub fn table(rows: &[Row]) -> Result<String> {
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
}
