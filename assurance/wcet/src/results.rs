//! All bounds of a kernel that are asked for.

use anyhow::Result;

use crate::flow::Longest;
use crate::kernel::{Case, Entry, Kernel, System};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub systems: Vec<System>,
    /// Levels of capability spaces.
    pub levels: Vec<u64>,
}

/// The bounds of a system.
#[derive(Debug)]
pub struct Results {
    pub case: Case,
    /// Of each entry that leads to user level at all.
    pub entries: Vec<(Entry, Longest)>,
}

impl Results {
    /// The longest time without a check for interrupts, and then the delivery to a thread that waits for one: what an
    /// interrupt may have to wait, in instructions.
    pub fn interrupt_latency(&self) -> i64 {
        let costs = self.entries.iter().map(|(_, longest)| longest.cost);
        costs.max().unwrap_or(0) + self.of(Entry::Vector).unwrap_or(0)
    }

    /// The bound of an entry.
    pub fn of(&self, entry: Entry) -> Option<i64> {
        let found = self.entries.iter().find(|(each, _)| *each == entry);
        found.map(|(_, longest)| longest.cost)
    }

    /// Names and numbers, as in tables and files.
    pub fn figures(&self) -> Vec<(&'static str, i64)> {
        let entries = self.entries.iter();
        let mut figures: Vec<_> = entries
            .map(|(entry, found)| (entry.name(), found.cost))
            .collect();
        figures.push((INTERRUPT_LATENCY, self.interrupt_latency()));
        figures
    }
}

/// The name of that figure.
pub const INTERRUPT_LATENCY: &str = "interrupt_latency";

impl Wanted {
    /// The cases, in the order of tables.
    pub fn cases(&self) -> impl Iterator<Item = Case> + '_ {
        self.systems.iter().flat_map(move |&system| {
            self.levels
                .iter()
                .map(move |&levels| Case { system, levels })
        })
    }

    /// The bounds of a kernel, of paths through `through` if that is given.
    ///
    /// # Errors
    /// Code that cannot be analysed: it says where, and what would be right.
    pub fn of(&self, kernel: &Kernel, through: Option<usize>) -> Result<Vec<Results>> {
        self.cases()
            .map(|case| {
                let mut entries = Vec::new();
                for entry in Entry::ALL {
                    let longest = kernel.longest(entry, case, through)?;
                    entries.extend(longest.map(|longest| (entry, longest)));
                }
                Ok(Results { case, entries })
            })
            .collect()
    }
}
