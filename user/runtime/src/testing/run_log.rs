//! When a thread ran, as the thread itself sees it: it reads the clock in a loop, and a gap says
//! that others ran.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::time;

/// A time during which a thread ran, in ticks; the end is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub start: u64,
    pub end: u64,
}

/// A gap of more ticks than this was not the thread's own. A shorter one is a kernel entry that
/// returned to the thread, whose time is the thread's.
const LONGEST_ENTRY: u64 = 2_000;
const CAPACITY: usize = 4096;

/// The log of one scheduling context. Whoever runs on the context writes it; since these are
/// never two at once, plain loads and stores do.
pub struct RunLog {
    start: AtomicU64,
    last: AtomicU64,
    count: AtomicUsize,
    closed: Box<[(AtomicU64, AtomicU64)]>,
}

impl RunLog {
    /// An empty log, for good.
    pub fn leak() -> &'static Self {
        Self::leak_with(CAPACITY)
    }

    /// An empty log for `capacity` intervals, for good.
    pub fn leak_with(capacity: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            start: AtomicU64::new(0),
            last: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            closed: (0..capacity).map(|_| Default::default()).collect(),
        }))
    }

    /// Notes that the caller runs, and returns the time.
    #[inline(always)]
    pub fn tick(&self) -> u64 {
        let now = time::ticks();
        let last = self.last.load(Relaxed);
        if now - last > LONGEST_ENTRY {
            self.close(last);
            self.start.store(now, Relaxed);
        }
        self.last.store(now, Relaxed);
        now
    }

    #[cold]
    fn close(&self, end: u64) {
        if end == 0 {
            return;
        }
        let count = self.count.load(Relaxed);
        if let Some((from, to)) = self.closed.get(count) {
            from.store(self.start.load(Relaxed), Relaxed);
            to.store(end, Relaxed);
            self.count.store(count + 1, Relaxed);
        }
    }

    /// Runs until `end`.
    pub fn run_until(&self, end: u64) {
        while self.tick() < end {
            time::pass();
        }
    }

    /// All intervals, by time.
    ///
    /// # Panics
    /// If there were more than the log holds.
    pub fn intervals(&self) -> Vec<Interval> {
        let count = self.count.load(Relaxed);
        assert!(count < self.closed.len(), "the log is full");
        let closed = self.closed[..count].iter().map(|(start, end)| Interval {
            start: start.load(Relaxed),
            end: end.load(Relaxed),
        });
        let open = Interval {
            start: self.start.load(Relaxed),
            end: self.last.load(Relaxed),
        };
        closed.chain([open]).collect()
    }
}

/// The most time run in any window of `length` ticks. The busiest window starts where an
/// interval starts, or ends where one ends: all others can be moved to such without loss.
pub fn busiest_window(intervals: &[Interval], length: u64) -> u64 {
    let starts = intervals.iter().map(|interval| interval.start);
    let ends = intervals
        .iter()
        .map(|interval| interval.end.saturating_sub(length));
    starts
        .chain(ends)
        .map(|from| run_between(intervals, from, from + length))
        .max()
        .unwrap_or(0)
}

/// Time run from `from` to `to`.
pub fn run_between(intervals: &[Interval], from: u64, to: u64) -> u64 {
    intervals
        .iter()
        .map(|interval| {
            interval
                .end
                .min(to)
                .saturating_sub(interval.start.max(from))
        })
        .sum()
}
