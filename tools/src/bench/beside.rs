//! Another kernel beside the one that ships, row by row: what it costs to support several cores, or to isolate the kernel.

use anyhow::{ensure, Result};
use serde::Serialize;

use super::Row;

/// What the names of the IPC rows begin with.
const IPC: [&str; 2] = ["call-", "reply-recv-"];

/// A kernel that is compared with the one that ships, the single-core kernel with page-table isolation.
#[derive(Debug)]
pub struct Other {
    name: &'static str,
    /// Most instructions of a row, in percent of those on the kernel that ships.
    limit: f64,
    /// Whether the limit is one of the IPC rows only.
    limits_messages_only: bool,
}

impl Other {
    /// The SMP kernel on one core.
    pub const SMP: Self = Self {
        name: "SMP",
        limit: 115.0,
        limits_messages_only: false,
    };
    /// The kernel without page-table isolation.
    pub const NOT_ISOLATED: Self = Self {
        name: "not isolated",
        limit: 100.0,
        limits_messages_only: true,
    };

    /// Whether the limit is one of this row.
    fn limits(&self, row: &Comparison) -> bool {
        !self.limits_messages_only || row.is_message()
    }

    /// What is wrong with a row, if it is beyond its limit.
    pub fn finding(&self, row: &Comparison) -> Option<String> {
        let exceeds = self.limits(row) && 100.0 * row.other > self.limit * row.ships;
        exceeds.then(|| {
            format!(
                "{} takes {:.1} instructions on the kernel {}, and {:.1} on the one that ships: at most {:.1} are right",
                row.name,
                row.other,
                self.name,
                row.ships,
                self.limit / 100.0 * row.ships
            )
        })
    }
}

/// An operation on both kernels, mean instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    name: String,
    ships: f64,
    other: f64,
}

impl Comparison {
    /// Percent that the other kernel takes more.
    fn increase(&self) -> f64 {
        100.0 * (self.other - self.ships) / self.ships
    }

    fn is_message(&self) -> bool {
        IPC.iter().any(|prefix| self.name.starts_with(prefix))
    }
}

/// Puts the rows of the two kernels side by side.
///
/// # Errors
/// A row of one kernel is missing on the other.
pub fn compare(ships: &[Row], other: &[Row]) -> Result<Vec<Comparison>> {
    ensure!(
        ships.len() == other.len(),
        "the kernel that ships has {} rows, the other {}",
        ships.len(),
        other.len()
    );
    let both = ships.iter().zip(other);
    both.map(|(ships, other)| {
        ensure!(
            ships.name == other.name,
            "`{}` of the kernel that ships is beside `{}` of the other",
            ships.name,
            other.name
        );
        Ok(Comparison {
            name: ships.name.clone(),
            ships: ships.mean,
            other: other.mean,
        })
    })
    .collect()
}

/// The comparison as text.
pub fn table(other: &Other, comparisons: &[Comparison]) -> String {
    let mut text = String::from("mean kernel-only instructions, on one core\n\n");
    text += &format!(
        "{:<30}{:>10}{:>14}{:>10}{:>9}\n",
        "operation", "ships", other.name, "increase", "at most"
    );
    for comparison in comparisons {
        let limit = match other.limits(comparison) {
            true => format!("{:.0} %", other.limit - 100.0),
            false => "-".to_owned(),
        };
        text += &format!(
            "{:<30}{:>10.1}{:>14.1}{:>8.1} %{limit:>9}\n",
            comparison.name,
            comparison.ships,
            comparison.other,
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

    fn comparison(name: &str, ships: u32, other: u32) -> Comparison {
        let rows = |mean| parse(Arch::X86_64, &format!("bench {name} 0 {mean} 9999\n")).unwrap();
        let compared = compare(&rows(ships), &rows(other)).unwrap();
        compared.into_iter().next().unwrap()
    }

    #[test]
    fn an_operation_may_take_15_percent_more_on_the_smp_kernel() {
        let finding = |name, other| Other::SMP.finding(&comparison(name, 200, other));
        assert_eq!(finding("call-0-passive", 230), None);
        let text = finding("call-0-passive", 231).unwrap();
        assert!(text.contains("at most 230.0"), "{text}");
        assert!(finding("reply-recv-10-active", 231).is_some());
        assert_eq!(finding("recv-block", 230), None);
        assert!(finding("recv-block", 231).is_some());
    }

    #[test]
    fn a_message_takes_no_more_without_isolation() {
        let finding =
            |other| Other::NOT_ISOLATED.finding(&comparison("call-0-passive", 200, other));
        assert_eq!(finding(200), None);
        assert!(finding(201).is_some());
    }

    #[test]
    fn the_increase_is_in_percent_of_the_kernel_that_ships() {
        let comparison = comparison("signal", 200, 210);
        assert_eq!(comparison.increase(), 5.0);
        let table = table(&Other::SMP, &[comparison]);
        assert!(table.contains("5.0 %     15 %"), "{table}");
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
