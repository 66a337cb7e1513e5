//! Deadlines are met: those that marks set, and those that are described.
//!
//! Jobs are what marks say. A thread with a described deadline that marks nothing has a job from when
//! it wakes until it blocks; one that waits for the answer of a server is still at its job. A job
//! that has not ended at the end of the trace is late if its deadline is past.

use std::collections::{BTreeMap, BTreeSet};

use sandglass_abi::trace::Blocked;

use super::Findings;
use crate::trace::record::{Event, Object};
use crate::trace::timeline::{Job, Timeline};

pub fn check(findings: &mut Findings<'_>) {
    let mut jobs = Timeline::of(findings.history).jobs;
    let marking: BTreeSet<Object> = jobs.iter().map(|job| job.thread).collect();
    jobs.extend(unmarked(findings, &marking));
    let end = findings.history.end();
    for job in jobs {
        let Some(deadline) = job.deadline else {
            continue;
        };
        findings.looked().jobs += 1;
        let ended = job.ended.unwrap_or(end);
        if ended <= deadline {
            continue;
        }
        let history = findings.history;
        let late = history.us(ended - deadline);
        let name = findings.name(job.thread);
        let due = history.ns(deadline) as f64 / 1000.0;
        let how = match job.ended {
            Some(_) => format!("ended {late:.3} µs after its deadline, {due:.3} µs"),
            None => format!("has not ended, {late:.3} µs after its deadline, {due:.3} µs"),
        };
        let what = format!("job {} of `{name}` {how}", job.number);
        findings.found(job.sequence, ended, what);
    }
}

/// The jobs of threads with a described deadline that mark nothing: from waking to blocking.
fn unmarked(findings: &Findings<'_>, marking: &BTreeSet<Object>) -> Vec<Job> {
    let history = findings.history;
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
