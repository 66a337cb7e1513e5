//! The kernel that records traces, with a log, beside the one that ships: what a trace point costs.
//!
//! An operation without any record shows what every entry takes more, since the compiler divides a
//! larger kernel into functions in another way; the rest is the points'.

use anyhow::{ensure, Context, Result};
use serde::Serialize;

use super::Row;

/// Most instructions of a trace point.
const MOST: f64 = 25.0;

/// Records of an operation, where they are known for sure (a host test of the kernel has their list):
/// the caller blocks, lends, the server wakes, and runs; and back.
const RECORDS: &[(&str, u32)] = &[("call-0-passive", 4), ("reply-recv-0-passive", 4)];

/// An operation that writes no record.
const WITHOUT: &str = "map-page";
/// Most instructions that an entry to the kernel takes more where nothing is recorded.
const MOST_AT_ENTRY: f64 = 40.0;

/// An operation on both kernels, mean instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    name: String,
    plain: f64,
    traced: f64,
    /// What an entry takes more without any record.
    entry: f64,
    /// Records that it writes, if that is known.
    records: Option<u32>,
}

impl Cost {
    /// Instructions that a record takes.
    fn per_record(&self) -> Option<f64> {
        let records = self.records?;
        Some((self.traced - self.plain - self.entry) / f64::from(records))
    }

    /// What is wrong, if a point takes too long.
    pub fn finding(&self) -> Option<String> {
        if self.entry > MOST_AT_ENTRY {
            return Some(format!(
                "an entry without any record takes {:.1} instructions more, at most {MOST_AT_ENTRY} \
                 are right",
                self.entry
            ));
        }
        let cost = self.per_record().filter(|&cost| cost > MOST)?;
        Some(format!(
            "{}: a trace point takes {cost:.1} instructions, but at most {MOST} are allowed",
            self.name
        ))
    }
}

/// Puts the rows of the two kernels side by side.
///
/// # Errors
/// A row of one kernel is missing on the other, or one whose records are known.
pub fn compare(plain: &[Row], traced: &[Row]) -> Result<Vec<Cost>> {
    let beside = |plain: &Row| {
        let beside = traced.iter().find(|traced| traced.name == plain.name);
        beside.with_context(|| format!("`{}` is not measured on the trace kernel", plain.name))
    };
    let without = plain.iter().find(|plain| plain.name == WITHOUT);
    let without = without.with_context(|| format!("`{WITHOUT}` is not measured"))?;
    let entry = beside(without)?.mean - without.mean;
    let costs: Vec<Cost> = plain
        .iter()
        .map(|plain| {
            let beside = beside(plain)?;
            let known = RECORDS.iter().find(|(name, _)| *name == plain.name);
            Ok(Cost {
                name: plain.name.clone(),
                plain: plain.mean,
                traced: beside.mean,
                entry,
                records: known.map(|&(_, records)| records),
            })
        })
        .collect::<Result<_>>()?;
    let known = costs.iter().filter(|cost| cost.records.is_some()).count();
    ensure!(
        known == RECORDS.len(),
        "an operation with a known number of records is not measured"
    );
    Ok(costs)
}

/// The costs as text.
pub fn table(costs: &[Cost]) -> String {
    let mut text = String::from("kernel-only instructions, mean\n\n");
    text += &format!(
        "{:<30}{:>10}{:>10}{:>10}{:>12}\n",
        "operation", "plain", "traced", "more", "a record"
    );
    for cost in costs {
        let a_record = cost
            .per_record()
            .map_or("-".to_owned(), |cost| format!("{cost:.1}"));
        text += &format!(
            "{:<30}{:>10.1}{:>10.1}{:>10.1}{a_record:>12}\n",
            cost.name,
            cost.plain,
            cost.traced,
            cost.traced - cost.plain
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::arch::Arch;

    #[test]
    fn a_point_that_takes_too_long_is_found() {
        let plain = "bench call-0-passive 1 200 1\nbench reply-recv-0-passive 1 200 1\nbench \
                     map-page 1 100 1\n";
        let rows = |text: &str| parse(Arch::X86_64, text).unwrap();
        for (mean, is_found) in [(330.0, false), (330.5, true)] {
            let traced = plain.replace("call-0-passive 1 200", &format!("call-0-passive 1 {mean}"));
            let traced = traced.replace("1 100 1", "1 130 1");
            let costs = compare(&rows(plain), &rows(&traced)).unwrap();
            assert_eq!(costs[0].finding().is_some(), is_found, "{costs:?}");
            assert!(table(&costs).contains("25."));
        }
        assert!(compare(&rows(plain), &rows("bench signal 1 2 3\n")).is_err());
    }
}
