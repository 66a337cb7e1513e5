//! As many jobs are released as there should be: a task that misses its releases has no late job to show for it.
//!
//! Of a thread that is described to have a job in every interval, the releases are counted from the first one until
//! the thread waits for good (for a signal or a message, or because it has ended), or until the end of the trace. One
//! may be missing, at the end. Numbers that marks leave out are skipped releases; they are counted for all threads.

use std::collections::BTreeMap;

use sandglass_abi::trace::Blocked;

use super::Findings;
use crate::trace::jobs::Job;
use crate::trace::record::{Event, Object};
use crate::trace::timeline::Timeline;

/// A thread that is described to have a job in every interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its path, as traces name it.
    pub thread: String,
    /// Not 0.
    pub interval_us: u64,
}

pub fn check(findings: &mut Findings<'_>, expected: &[Expected]) {
    let timeline = Timeline::of(findings.history);
    let mut jobs: BTreeMap<Object, Vec<Job>> = BTreeMap::new();
    for job in &timeline.jobs {
        jobs.entry(job.thread).or_default().push(*job);
    }
    for jobs in jobs.values() {
        findings.looked().skipped += skipped(jobs);
    }
    // Where the emulator executes cores in turns, all of them fall behind.
    if findings.verdict.several_cores {
        return;
    }
    let waiting = waiting_since(findings);
    for expected in expected {
        let named = jobs
            .iter()
            .find(|(thread, _)| findings.name(**thread) == expected.thread);
        let Some((thread, jobs)) = named else {
            continue;
        };
        let until = waiting
            .get(thread)
            .copied()
            .unwrap_or(findings.history.end());
        count(findings, expected, jobs, until);
    }
}

/// Compares the releases of a thread's jobs until a time with those that there should be.
fn count(findings: &mut Findings<'_>, expected: &Expected, jobs: &[Job], until: u64) {
    let history = findings.history;
    let released: Vec<u64> = jobs.iter().filter_map(|job| job.released).collect();
    let (Some(&first), Some(last)) = (
        released.iter().min(),
        jobs.iter().map(|job| job.sequence).max(),
    ) else {
        return;
    };
    let interval = expected.interval_us.saturating_mul(history.per_us).max(1);
    let due = until.saturating_sub(first) / interval;
    let seen = released.iter().filter(|&&at| at <= until).count() as u64;
    findings.looked().expected += due;
    if seen < due {
        let what = format!(
            "`{}` has {seen} jobs in {:.3} µs, but with one every {} µs there should be at least {due}: releases were \
             missed",
            expected.thread,
            history.us(until - first),
            expected.interval_us,
        );
        findings.found(last, until, what);
    }
}

/// Numbers between the first and the last that no job has.
fn skipped(jobs: &[Job]) -> u64 {
    let numbers = jobs.iter().map(|job| job.number);
    let (Some(first), Some(last)) = (numbers.clone().min(), numbers.max()) else {
        return 0;
    };
    (last - first + 1).saturating_sub(jobs.len() as u64)
}

/// The threads that wait at the end of the trace for something else than the processor or an answer, and since when.
fn waiting_since(findings: &Findings<'_>) -> BTreeMap<Object, u64> {
    let mut waiting = BTreeMap::new();
    for record in &findings.history.records {
        match record.event {
            Event::Block { thread, why } => match why {
                Blocked::Inactive | Blocked::Receive | Blocked::Notification => {
                    waiting.insert(thread, record.time);
                }
                Blocked::Send | Blocked::Reply => {
                    waiting.remove(&thread);
                }
            },
            Event::Wake { thread, .. } => {
                waiting.remove(&thread);
            }
            _ => {}
        }
    }
    waiting
}
