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
    /// There is time for all jobs and for scheduling them.
    pub has_room: bool,
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
        let length = outcome.decisions.last().map_or(0, |last| last.at).max(1);
        let tasks = set.tasks.iter();
        let shares = tasks.map(|task| (task.budget_us, task.period_us));
        Self {
            mode,
            tasks: set.tasks.len(),
            utilisation: sets::utilisation(set),
            overhead: overhead as f64 / length as f64,
            has_room: fit(shares.chain([(overhead, length)])),
            latencies,
            verdict: reference::compare(set, outcome, TICKS_PER_US, ALLOWED),
        }
    }
}

/// Whether parts of a whole, each given by its length and that of the whole, are at most all of it: counted in whole
/// numbers, each in 2^64ths and rounded up.
fn fit(parts: impl Iterator<Item = (u64, u64)>) -> bool {
    let part = |(length, whole): (u64, u64)| (u128::from(length) << 64).div_ceil(u128::from(whole));
    parts.map(part).fold(0, u128::saturating_add) <= 1 << 64
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fit_up_to_the_whole_and_not_beyond() {
        assert!(fit([(1, 2), (1, 4), (1, 4)].into_iter()));
        // One part in 2^63, which a sum of fractions would round away.
        assert!(!fit([(1, 2), (1, 2), (1, 1 << 63)].into_iter()));
        assert!(fit([].into_iter()) && !fit([(3, 2)].into_iter()));
    }
}
