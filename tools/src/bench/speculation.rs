//! Kernels that act against speculation beside the one that ships: what each measure adds to an operation.
//!
//! Instructions are what is counted; what is slow about these is not how many they are.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::page::Page;
use super::{measure_on, release, Row};
use crate::arch::Arch;
use crate::cores::Cores;
use crate::speculation::{with, Measure};

/// Where the table is.
pub const PAGE: Page = Page {
    path: "docs/src/reference/speculation.md",
    command: "./sandglass bench --speculation --page",
};

/// The operations of the table: one of each kind of way through the kernel.
const OPERATIONS: [(&str, &str); 10] = [
    ("call of a passive server", "call-0-passive"),
    ("its reply", "reply-recv-0-passive"),
    ("call with ten words", "call-10-passive"),
    ("send that wakes a higher thread", "send-wake-higher"),
    ("wait that blocks", "wait-block"),
    ("fault to its handler", "fault-to-handler"),
    ("interrupt to its driver", "interrupt-to-driver"),
    ("timer to a timeout fault", "timer-to-timeout-fault"),
    ("signal without a switch", "signal-no-waiter"),
    ("map a page", "map-page"),
];

/// Most that an operation may take more with everything: a fill of the stack of returns is the largest part.
const MOST_ADDED: f64 = 80.0;

/// An operation on all kernels, mean instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    name: String,
    plain: f64,
    /// What measures add, in the order in which they were asked for; the last is all of them.
    added: Vec<f64>,
}

impl Cost {
    /// What is wrong, if it takes too much more.
    pub fn finding(&self) -> Option<String> {
        let all = *self.added.last()?;
        (all > MOST_ADDED).then(|| {
            format!(
                "{} takes {all:.1} instructions more with everything against speculation, but at most {MOST_ADDED} are allowed",
                self.name
            )
        })
    }
}

/// Of which measures kernels are built: all of them in one, and, with `each`, each in one by itself before that.
pub fn kernels(each: bool) -> Vec<Measure> {
    let each = Measure::EACH.into_iter().filter(|_| each);
    each.chain([Measure::All]).collect()
}

/// Measures the benchmark system on the kernel that ships and on those with one of `measures`, which is taken although the
/// emulator's processor says that it has none of them.
///
/// # Errors
/// Something does not build or run, or a row is missing.
pub fn measure(root_task: &Path, measures: &[Measure]) -> Result<Vec<Cost>> {
    let on = |asked: &[Measure]| {
        let kernel = with(release(Arch::X86_64, Cores::Single), asked)?;
        measure_on(&kernel, Cores::Single, root_task, &[])
    };
    let plain = on(&[])?;
    let others = measures.iter();
    let others = others.map(|&measure| on(&[measure, Measure::Assumed]));
    let others: Vec<Vec<Row>> = others.collect::<Result<_>>()?;
    compare(&plain, &others)
}

/// Puts the rows of the kernels side by side.
///
/// # Errors
/// A row of the table is missing on a kernel.
fn compare(plain: &[Row], others: &[Vec<Row>]) -> Result<Vec<Cost>> {
    let costs = OPERATIONS.iter().map(|&(_, name)| {
        let mean = |rows: &[Row]| {
            let row = rows.iter().find(|row| row.name == name);
            let row =
                row.with_context(|| format!("the benchmark system printed no row `{name}`"))?;
            anyhow::Ok(row.mean)
        };
        let plain = mean(plain)?;
        let added = others.iter().map(|rows| Ok(mean(rows)? - plain));
        Ok(Cost {
            name: name.to_owned(),
            plain,
            added: added.collect::<Result<_>>()?,
        })
    });
    costs.collect()
}

/// The table of what these measures add.
pub fn table(costs: &[Cost], measures: &[Measure]) -> String {
    let names: Vec<String> = measures
        .iter()
        .map(|measure| format!("`{}`", measure.name()))
        .collect();
    let mut text = format!(
        "| kernel-only instructions | without | {} |\n| --- |{}\n",
        names.join(" | "),
        " ---: |".repeat(names.len() + 1)
    );
    for ((title, _), cost) in OPERATIONS.iter().zip(costs) {
        let added = cost.added.iter().map(|added| format!("{added:+.0}"));
        let added: Vec<String> = added.collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {title} | {:.0} | {} |",
            cost.plain,
            added.join(" | ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn rows(mean: u32) -> Vec<Row> {
        let line = |&(_, name): &(&str, &str)| format!("bench {name} 0 {mean} 9999\n");
        let text: String = OPERATIONS.iter().map(line).collect();
        parse(Arch::X86_64, &text).unwrap()
    }

    #[test]
    fn what_each_adds_stands_beside_what_the_kernel_takes_without() {
        let others: Vec<Vec<Row>> = (0..8).map(|more| rows(200 + more)).collect();
        let costs = compare(&rows(200), &others).unwrap();
        let table = table(&costs, &kernels(true));
        let row = "| map a page | 200 | +0 | +1 | +2 | +3 | +4 | +5 | +6 | +7 |";
        assert!(table.contains(row), "{table}");
        assert_eq!(table.lines().count(), 2 + OPERATIONS.len());
        assert_eq!(costs[0].finding(), None);
    }

    #[test]
    fn what_costs_too_much_or_is_missing_is_found() {
        let costs = compare(&rows(200), &[rows(371)]).unwrap();
        assert!(costs[0].finding().unwrap().contains("171.0 instructions"));
        assert!(compare(&rows(200), &[rows(200)[1..].to_vec()]).is_err());
    }
}
