//! What the kernel does for a job, by a trace: a run that is not measured otherwise, as recording takes time.

use std::collections::BTreeSet;

use anyhow::{ensure, Context, Result};

use super::systems::{Policy, TaskSet, POLICIES};
use crate::arch::Arch;
use crate::qemu::End;
use crate::trace::history::History;
use crate::trace::record::{Event, Mark};
use crate::trace::{self, Options};

/// The note at both ends of the window that is measured.
const WINDOW: u64 = 0x7769_6e64;
/// MiB for the records.
const LOG_MIB: u32 = 8;

/// Of each job, on average.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// Times at which the kernel was entered and changed something that a trace shows: system calls, interrupts and
    /// timeouts.
    pub entries: f64,
    /// Of them, those after which another thread ran.
    pub switches: f64,
}

/// Traces each policy, while all are honest.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn count_all(arch: Arch, tasks: &TaskSet) -> Result<Vec<Switches>> {
    let switches = POLICIES.iter().map(|policy| count(arch, tasks, policy));
    switches.collect()
}

fn count(arch: Arch, tasks: &TaskSet, policy: &Policy) -> Result<Switches> {
    let options = Options {
        log_mib: LOG_MIB,
        ..Options::default()
    };
    let traced = trace::trace(&policy.path(), Some(arch), &options)
        .with_context(|| format!("the trace of `{}`", policy.file))?;
    ensure!(
        traced.end == End::Guest(0),
        "the traced run of `{}` ended with {:?}",
        policy.file,
        traced.end
    );
    of(tasks, &traced.history).with_context(|| format!("the trace of `{}`", policy.file))
}

fn of(tasks: &TaskSet, history: &History) -> Result<Switches> {
    let ends = history.records.iter().filter(|record| {
        let Event::Mark { mark, .. } = record.event else {
            return false;
        };
        matches!(mark, Mark::Note { what: WINDOW, .. })
    });
    let ends: Vec<u64> = ends.map(|record| record.time).collect();
    let [begin, end] = ends[..] else {
        anyhow::bail!("its window has {} ends", ends.len());
    };
    let inside = || {
        let records = history.records.iter();
        records.filter(move |record| (begin + 1..end).contains(&record.time))
    };
    let entries: BTreeSet<u64> = inside().map(|record| record.time).collect();
    let switches = inside().filter(|record| matches!(record.event, Event::Switch { .. }));
    let length_us = history.us(end - begin);
    let jobs: f64 = tasks
        .0
        .iter()
        .map(|task| (length_us / task.period as f64).round())
        .sum();
    Ok(Switches {
        entries: entries.len() as f64 / jobs,
        switches: switches.count() as f64 / jobs,
    })
}
