//! The SMP kernel on one core compared with the single-core kernel: the cost of supporting several cores.

use anyhow::{ensure, Result};
use serde::Serialize;

use super::Row;

/// What the names of the IPC rows begin with.
const IPC: [&str; 2] = ["call-", "reply-recv-"];
/// Most instructions of an IPC row on the SMP kernel, in percent of those on the single-core kernel.
const LIMIT: f64 = 115.0;

/// An operation on both kernels, mean instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    name: String,
    single: f64,
    smp: f64,
}

impl Comparison {
    /// Percent that the SMP kernel takes more.
    fn increase(&self) -> f64 {
        100.0 * (self.smp - self.single) / self.single
    }

    fn is_limited(&self) -> bool {
        IPC.iter().any(|prefix| self.name.starts_with(prefix))
    }

    /// What is wrong, if it is an IPC row beyond its limit.
    pub fn finding(&self) -> Option<String> {
        let exceeds = self.is_limited() && 100.0 * self.smp > LIMIT * self.single;
        exceeds.then(|| {
            format!(
                "{} takes {:.1} instructions on the SMP kernel and {:.1} on the single-core kernel: \
                 at most {:.1} are right",
                self.name,
                self.smp,
                self.single,
                LIMIT / 100.0 * self.single
            )
        })
    }
}

/// Puts the rows of the two kernels side by side.
///
/// # Errors
/// A row of one kernel is missing on the other.
pub fn compare(single: &[Row], smp: &[Row]) -> Result<Vec<Comparison>> {
    ensure!(
        single.len() == smp.len(),
        "the single-core kernel has {} rows, the SMP kernel {}",
        single.len(),
        smp.len()
    );
    let both = single.iter().zip(smp);
    both.map(|(single, smp)| {
        ensure!(
            single.name == smp.name,
            "`{}` of the single-core kernel is beside `{}` of the SMP kernel",
            single.name,
            smp.name
        );
        Ok(Comparison {
            name: single.name.clone(),
            single: single.mean,
            smp: smp.mean,
        })
    })
    .collect()
}

/// The comparison as text.
pub fn table(comparisons: &[Comparison]) -> String {
    let mut text = String::from("mean kernel-only instructions, on one core\n\n");
    text += &format!(
        "{:<30}{:>13}{:>10}{:>10}{:>9}\n",
        "operation", "single-core", "SMP", "increase", "at most"
    );
    for comparison in comparisons {
        let limit = match comparison.is_limited() {
            true => format!("{:.0} %", LIMIT - 100.0),
            false => "-".to_owned(),
        };
        text += &format!(
            "{:<30}{:>13.1}{:>10.1}{:>8.1} %{limit:>9}\n",
            comparison.name,
            comparison.single,
            comparison.smp,
            comparison.increase()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::arch::Arch;

    fn comparison(name: &str, single: u32, smp: u32) -> Comparison {
        let rows = |mean| parse(Arch::X86_64, &format!("bench {name} 0 {mean} 9999\n")).unwrap();
        let compared = compare(&rows(single), &rows(smp)).unwrap();
        compared.into_iter().next().unwrap()
    }

    #[test]
    fn a_message_may_take_15_percent_more() {
        assert_eq!(comparison("call-0-passive", 200, 230).finding(), None);
        let finding = comparison("call-0-passive", 200, 231).finding();
        assert!(finding.unwrap().contains("at most 230.0"));
        assert!(comparison("reply-recv-10-active", 200, 231)
            .finding()
            .is_some());
        assert_eq!(comparison("recv-block", 200, 400).finding(), None);
    }

    #[test]
    fn the_increase_is_in_percent_of_the_single_core_kernels() {
        let comparison = comparison("signal", 200, 210);
        assert_eq!(comparison.increase(), 5.0);
        let table = table(&[comparison]);
        assert!(table.contains("5.0 %        -"), "{table}");
    }

    #[test]
    fn rows_that_do_not_fit_together_are_refused() {
        let rows = |names: &[&str]| {
            let lines: String = names.iter().map(|n| format!("bench {n} 1 1 1\n")).collect();
            parse(Arch::X86_64, &lines).unwrap()
        };
        assert!(compare(&rows(&["a", "b"]), &rows(&["a"])).is_err());
        assert!(compare(&rows(&["a", "b"]), &rows(&["b", "a"])).is_err());
    }
}
