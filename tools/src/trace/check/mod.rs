//! Does a trace keep what the kernel and the system's description promise?
//!
//! * [`budgets`]: no context is charged more than its budget, and the longest kernel path, in any
//!   window of its period;
//! * [`priorities`]: no thread runs while one of higher priority is ready on the same core;
//! * [`deadlines`]: no job ends after its deadline;
//! * [`counts`]: no release is missed of a thread that is described to have a job in every interval;
//! * [`windows`]: partitions have the processor in their windows and nowhere else, by the described plan, and whoever
//!   overran is charged;
//! * [`turns`]: turns of a time manager are those of reservations, and take no more than these have;
//! * [`gates`]: by the protocol of a server with clients on several cores, the right request is served, the right client pays,
//!   and pays no more than its bound;
//! * [`donations`]: every lent context returns to its lender, and no thread runs on one that it does not have.
//!
//! All is reconstructed from the records alone, so a trace that does not hang together is found too.
//!
//! The emulator executes several cores in turns, on one virtual time: a core stands still while its
//! clock continues. So on more than one core everything may be late for as long as other cores were busy
//! meanwhile ([`standstill`]), and not longer.

mod budgets;
mod counts;
mod deadlines;
mod donations;
pub mod gates;
mod priorities;
mod standstill;
#[cfg(test)]
mod tests;
mod turns;
mod windows;

use std::fmt;

pub use self::counts::Expected;
use self::standstill::Standstill;
pub use self::windows::Plan;
use super::history::History;
use super::record::Object;
use super::timeline::Execution;

/// Something that must not be in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The record at which it shows.
    pub sequence: u32,
    /// µs since the beginning of the trace, thousandths included.
    pub ns: u64,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.ns as f64 / 1000.0;
        write!(f, "record #{} at {us:.3} µs: {}", self.sequence, self.what)
    }
}

/// What a check looked at: a trace in which nothing was looked at proves nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// Windows of contexts' periods.
    pub windows: u64,
    /// Decisions of the scheduler.
    pub decisions: u64,
    pub jobs: u64,
    /// Jobs that there should have been at least, of threads that are described to have one in every interval.
    pub expected: u64,
    /// Releases that marks leave out.
    pub skipped: u64,
    /// Contexts that were lent with a call.
    pub donations: u64,
    pub partition_windows: u64,
    /// Of clients of a time manager.
    pub turns: u64,
    /// To servers behind gates.
    pub requests: u64,
}

/// What a system's description lets one expect of its trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Promises {
    pub jobs: Vec<Expected>,
    /// Of the scheduler of partitions, if there is one.
    pub windows: Option<Plan>,
    /// Of servers with clients on several cores.
    pub gates: Vec<gates::Plan>,
}

/// The result of all checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether cores may stand still, so that others excuse what is late.
    pub several_cores: bool,
    /// In the order of the records.
    pub violations: Vec<Violation>,
    pub looked: Looked,
}

/// Makes all checks that need no description.
pub fn check(history: &History) -> Verdict {
    check_with(history, &Promises::default())
}

/// Makes all checks; `expected` says what is described.
pub fn check_with(history: &History, expected: &Promises) -> Verdict {
    let mut findings = Findings {
        history,
        standstill: Standstill::default(),
        verdict: Verdict {
            several_cores: history.cores().len() > 1,
            ..Verdict::default()
        },
    };
    findings.standstill = Standstill::of(history, findings.longest_path());
    budgets::check(&mut findings);
    deadlines::check(&mut findings);
    counts::check(&mut findings, &expected.jobs);
    priorities::check(&mut findings);
    donations::check(&mut findings);
    turns::check(&mut findings);
    if let Some(plan) = &expected.windows {
        windows::check(&mut findings, plan);
    }
    for plan in &expected.gates {
        gates::check(&mut findings, plan);
    }
    let mut verdict = findings.verdict;
    verdict.violations.sort_by_key(|found| found.sequence);
    verdict
}

/// The trace, and what was found in it.
struct Findings<'h> {
    history: &'h History,
    standstill: Standstill,
    verdict: Verdict,
}

impl Findings<'_> {
    /// Notes a violation at the record `sequence`, at `time` in ticks.
    fn found(&mut self, sequence: u32, time: u64, what: String) {
        self.verdict.violations.push(Violation {
            sequence,
            ns: self.history.ns(time),
            what,
        });
    }

    /// Notes something about an execution, at a record of its time.
    fn found_in(&mut self, run: &Execution, time: u64, what: String) {
        let records = &self.history.records;
        let record = records
            .iter()
            .find(|record| record.core == run.core && record.time >= time);
        let sequence = record.map_or(0, |record| record.sequence);
        self.found(sequence, time, what);
    }

    fn looked(&mut self) -> &mut Looked {
        &mut self.verdict.looked
    }

    fn name(&self, object: Object) -> String {
        self.history.name(object)
    }

    /// Ticks of the longest kernel path: the ABI's 10 µs, half of the least budget (04, section 1).
    /// The kernel's own worst cases are far below, see the measured bounds.
    fn longest_path(&self) -> u64 {
        self.history.least_budget / 2
    }
}
