//! Who ran when: each component notes the intervals in which it runs, by looking at the clock
//! often enough. What stopped it in between (a thread of higher priority, or the end of its
//! budget) shows as a gap.

use core::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// A component that was not touched for this long did not run, ns. Above the time between two
/// looks at the clock of any component; below the shortest time that anybody else runs.
pub const GAP_NS: u64 = 60_000;

/// Intervals that a trace keeps; older ones are overwritten.
pub const CAPACITY: usize = 512;

/// Words of an interval.
pub const INTERVAL_WORDS: usize = 3;

/// A stretch of time in which a component ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Ticks of the time-stamp counter.
    pub start: u64,
    pub end: u64,
    /// On whose time it ran: the badge of the client, or [`Interval::OWN`].
    pub payer: u64,
}

impl Interval {
    /// On its own scheduling context.
    pub const OWN: u64 = 0;

    pub const fn words(self) -> [u64; INTERVAL_WORDS] {
        [self.start, self.end, self.payer]
    }

    pub const fn from_words([start, end, payer]: [u64; INTERVAL_WORDS]) -> Self {
        Self { start, end, payer }
    }
}

/// A ring of intervals in shared memory.
#[derive(Debug)]
#[repr(C)]
pub struct Trace {
    /// Intervals that were ever begun.
    begun: AtomicU64,
    ring: [[AtomicU64; INTERVAL_WORDS]; CAPACITY],
}

impl Trace {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            ring: [const { [const { AtomicU64::new(0) }; INTERVAL_WORDS] }; CAPACITY],
        }
    }

    /// The intervals that are still there, oldest first.
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + Clone + '_ {
        let begun = self.begun.load(Ordering::Acquire);
        (begun.saturating_sub(CAPACITY as u64)..begun).map(|number| {
            let cells = &self.ring[number as usize % CAPACITY];
            Interval::from_words(core::array::from_fn(|i| cells[i].load(Ordering::Relaxed)))
        })
    }

    fn store(&self, number: u64, interval: Interval) {
        let cells = &self.ring[number as usize % CAPACITY];
        for (cell, word) in cells.iter().zip(interval.words()) {
            cell.store(word, Ordering::Relaxed);
        }
    }
}

/// Writes a [`Trace`]: the only one that does.
#[derive(Debug)]
pub struct Tracer<'t> {
    trace: &'t Trace,
    /// Ticks.
    gap: u64,
    last: Interval,
    begun: u64,
}

impl<'t> Tracer<'t> {
    /// `khz`: ticks per ms.
    pub fn new(trace: &'t Trace, khz: u64) -> Self {
        Self {
            trace,
            gap: GAP_NS * khz / 1_000_000,
            last: Interval::from_words([0; INTERVAL_WORDS]),
            begun: 0,
        }
    }

    /// "I run at `now` on `payer`'s time": prolongs the last interval, or begins another.
    #[inline]
    pub fn touch(&mut self, now: u64, payer: u64) {
        let goes_on = self.begun > 0
            && payer == self.last.payer
            && now.saturating_sub(self.last.end) <= self.gap;
        if goes_on {
            self.last.end = now;
            let cells = &self.trace.ring[(self.begun - 1) as usize % CAPACITY];
            cells[1].store(now, Ordering::Relaxed);
        } else {
            self.begin(now, payer);
        }
    }

    /// Begins an interval, even right after the last one.
    pub fn begin(&mut self, now: u64, payer: u64) {
        self.last = Interval {
            start: now,
            end: now,
            payer,
        };
        self.trace.store(self.begun, self.last);
        self.begun += 1;
        self.trace.begun.store(self.begun, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u64 = GAP_NS;

    fn intervals(trace: &Trace) -> Vec<(u64, u64, u64)> {
        trace
            .intervals()
            .map(|interval| (interval.start, interval.end, interval.payer))
            .collect()
    }

    #[test]
    fn gaps_and_payers_divide_intervals() {
        let trace = Trace::new();
        let mut tracer = Tracer::new(&trace, 1_000_000);
        tracer.touch(10, 1);
        tracer.touch(10 + GAP, 1);
        tracer.touch(11 + 2 * GAP, 1);
        tracer.touch(12 + 2 * GAP, 2);
        tracer.begin(13 + 2 * GAP, 2);
        tracer.touch(14 + 2 * GAP, 2);
        assert_eq!(
            intervals(&trace),
            [
                (10, 10 + GAP, 1),
                (11 + 2 * GAP, 11 + 2 * GAP, 1),
                (12 + 2 * GAP, 12 + 2 * GAP, 2),
                (13 + 2 * GAP, 14 + 2 * GAP, 2),
            ]
        );
    }

    #[test]
    fn the_newest_intervals_are_kept_in_order() {
        let trace = Trace::new();
        let mut tracer = Tracer::new(&trace, 1_000_000);
        let last = CAPACITY as u64 + 9;
        for number in 0..=last {
            tracer.touch(number * 2 * GAP, 0);
        }
        let kept = intervals(&trace);
        assert_eq!(kept.len(), CAPACITY);
        assert_eq!(kept[0].0, 10 * 2 * GAP);
        assert_eq!(kept[CAPACITY - 1].0, last * 2 * GAP);
    }
}
