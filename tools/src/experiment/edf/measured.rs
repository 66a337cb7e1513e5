//! What the record of a set says.

use edf_record::{Decision, Outcome, Set};

use super::reference::{self, Tolerances, Verdict};
use super::{sets, Mode, SHIFT};

/// In virtual time the time-stamp counter counts ns.
const TICKS_PER_US: u64 = 1000;
/// Instructions, as ticks.
const fn instructions(count: u64) -> u64 {
    count << SHIFT
}

/// The ringing of an alarm may find the scheduler at work on another event. A budget ends up to 20 µs
/// early, since the kernel wants so much to be left; and the kernel's own time at both ends of every
/// interval is the task's.
const ALLOWED: Tolerances = Tolerances {
    alarm: instructions(12_000),
    job: 20 * TICKS_PER_US + instructions(3_000),
    dispatch: instructions(3_000),
};

/// A set in one mode.
pub struct Measured {
    pub mode: Mode,
    pub tasks: usize,
    pub utilisation: f64,
    /// Part of the time that neither tasks nor idle had.
    pub overhead: f64,
    /// Of each switch that was seen from both sides, in instructions.
    pub latencies: Vec<u64>,
    pub verdict: Verdict,
}

impl Measured {
    pub fn of(mode: Mode, set: &Set, outcome: &Outcome) -> Self {
        let mut overhead = 0;
        let mut latencies = Vec::new();
        let mut before: Option<(&Decision, u64)> = None;
        for decision in &outcome.decisions {
            let since = began(before, decision);
            match decision.noticed {
                Some(noticed) if noticed.at >= decision.at => {
                    overhead += noticed.at - since;
                    latencies.push((noticed.at - since) >> SHIFT);
                }
                // Nobody is there to notice.
                _ if decision.run.is_none() => overhead += decision.at - since,
                // The next decision followed before a task had looked: it counts from the same time.
                _ => {}
            }
            before = Some((decision, since));
        }
        let length = outcome.decisions.last().map_or(0, |last| last.at);
        Self {
            mode,
            tasks: set.tasks.len(),
            utilisation: sets::utilisation(set),
            overhead: overhead as f64 / length.max(1) as f64,
            latencies,
            verdict: reference::compare(set, outcome, TICKS_PER_US, ALLOWED),
        }
    }

    /// There is time for all jobs and for scheduling them.
    pub fn has_room(&self) -> bool {
        self.utilisation + self.overhead <= 1.0
    }
}

/// When the machine began to work on an event: when the task that ran looked at the clock last, or, if
/// none ran, when the alarm rang. If no task had looked since the decision before, which began at
/// `before.1`, it still is at work on that.
fn began(before: Option<(&Decision, u64)>, decision: &Decision) -> u64 {
    let since = match before {
        None => decision.at,
        Some((before, _)) if before.run.is_none() => before.wake_at.unwrap_or(decision.at),
        Some((before, since)) if before.noticed.is_none() => since,
        Some(_) => decision.last,
    };
    since.min(decision.at)
}
