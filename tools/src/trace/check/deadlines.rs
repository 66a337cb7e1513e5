//! Deadlines are met: those that marks set, and those that are described.
//!
//! A job that has not ended at the end of the trace is late if its deadline is past.

use super::Findings;
use crate::trace::timeline::Timeline;

pub fn check(findings: &mut Findings<'_>) {
    let end = findings.history.end();
    let timeline = Timeline::of(findings.history);
    for job in &timeline.jobs {
        let Some(deadline) = job.deadline else {
            continue;
        };
        findings.looked().jobs += 1;
        let ended = job.ended.unwrap_or(end);
        if ended <= deadline {
            continue;
        }
        let history = findings.history;
        let released = job.released.unwrap_or_else(|| history.begin());
        let excused = findings
            .standstill
            .of_thread(&timeline, job.thread, released, ended);
        if ended - deadline <= excused {
            continue;
        }
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
