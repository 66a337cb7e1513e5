//! The jobs of threads.
//!
//! Jobs are what marks say. A thread with a described deadline that marks nothing has a job from when
//! it wakes until it blocks; one that waits for the answer of a server is still at its job.

use std::collections::{BTreeMap, BTreeSet};

use sandglass_abi::trace::Blocked;

use super::history::History;
use super::record::{Event, Mark, Object};
use super::timeline::threads_of_contexts;

/// A job of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Job {
    pub thread: Object,
    pub number: u64,
    /// Ticks; `None` if nothing says it.
    pub released: Option<u64>,
    pub deadline: Option<u64>,
    pub ended: Option<u64>,
    /// The record that said so last.
    pub sequence: u32,
}

/// The jobs of all threads.
pub fn of(history: &History) -> Vec<Job> {
    let mut jobs = marked(history);
    let marking: BTreeSet<Object> = jobs.iter().map(|job| job.thread).collect();
    jobs.extend(unmarked(history, &marking));
    jobs
}

/// The jobs that marks tell of. Without a mark of its deadline, a job has the described one.
fn marked(history: &History) -> Vec<Job> {
    let mut jobs: BTreeMap<(Object, u64), Job> = BTreeMap::new();
    let threads = threads_of_contexts(history);
    for record in &history.records {
        let Event::Mark { subject, mark } = record.event else {
            continue;
        };
        let (Mark::Release { job, .. } | Mark::Deadline { job, .. } | Mark::End { job }) = mark
        else {
            continue;
        };
        let thread = threads.get(&subject).copied().unwrap_or(subject);
        let entry = jobs.entry((thread, job)).or_insert(Job {
            thread,
            number: job,
            ..Job::default()
        });
        entry.sequence = record.sequence;
        match mark {
            Mark::Release { at, .. } => entry.released = Some(at),
            Mark::Deadline { at, .. } => entry.deadline = Some(at),
            _ => entry.ended = Some(record.time),
        }
    }
    for job in jobs.values_mut() {
        if let (Some(released), None, Some(us)) = (
            job.released,
            job.deadline,
            history.facts(job.thread).deadline_us,
        ) {
            job.deadline = Some(released + us * history.per_us);
        }
    }
    jobs.into_values().collect()
}

/// The jobs of threads with a described deadline that mark nothing: from waking to blocking.
fn unmarked(history: &History, marking: &BTreeSet<Object>) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut current: BTreeMap<Object, Job> = BTreeMap::new();
    let mut numbers: BTreeMap<Object, u64> = BTreeMap::new();
    for record in &history.records {
        match record.event {
            Event::Wake { thread, .. } if !marking.contains(&thread) => {
                let Some(us) = history.facts(thread).deadline_us else {
                    continue;
                };
                if current.contains_key(&thread) {
                    continue;
                }
                let number = numbers.entry(thread).or_insert(0);
                let job = Job {
                    thread,
                    number: *number,
                    released: Some(record.time),
                    deadline: Some(record.time + us * history.per_us),
                    ended: None,
                    sequence: record.sequence,
                };
                *number += 1;
                current.insert(thread, job);
            }
            Event::Block { thread, why } if why != Blocked::Reply && why != Blocked::Send => {
                if let Some(job) = current.remove(&thread) {
                    jobs.push(Job {
                        ended: Some(record.time),
                        sequence: record.sequence,
                        ..job
                    });
                }
            }
            _ => {}
        }
    }
    jobs.extend(current.into_values());
    jobs
}
