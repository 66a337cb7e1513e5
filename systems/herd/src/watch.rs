//! The thread of the highest priority: it spins and notes every stretch in which it executed
//! nothing.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use sandglass::time::ticks;

/// Between two readings of the counter the loop takes some 20 instructions; more than this, and
/// somebody else ran.
const LOOP: u64 = 64;

/// Most stretches that are noted.
const MOST: usize = 32;

/// A stretch in which the thread executed nothing: the last tick before and the first after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
}

impl Gap {
    /// Ticks.
    pub fn length(self) -> u64 {
        self.to - self.from
    }
}

/// What the thread notes.
pub struct Log {
    first: AtomicU64,
    last: AtomicU64,
    gaps: [(AtomicU64, AtomicU64); MOST],
    count: AtomicUsize,
}

impl Log {
    pub const fn new() -> Self {
        Log {
            first: AtomicU64::new(0),
            last: AtomicU64::new(0),
            gaps: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; MOST],
            count: AtomicUsize::new(0),
        }
    }

    /// Spins for ever.
    pub fn watch(&self) -> ! {
        self.count.store(0, Relaxed);
        let mut last = ticks();
        self.first.store(last, Relaxed);
        loop {
            let now = ticks();
            if now - last > LOOP {
                self.note(Gap {
                    from: last,
                    to: now,
                });
            }
            self.last.store(now, Relaxed);
            last = now;
        }
    }

    fn note(&self, gap: Gap) {
        let i = self.count.fetch_add(1, Relaxed);
        if let Some((from, to)) = self.gaps.get(i) {
            from.store(gap.from, Relaxed);
            to.store(gap.to, Relaxed);
        }
    }

    /// Tick at which it first ran.
    pub fn first(&self) -> u64 {
        self.first.load(Relaxed)
    }

    /// Tick at which it last ran.
    pub fn last(&self) -> u64 {
        self.last.load(Relaxed)
    }

    /// The stretches, in order.
    ///
    /// # Panics
    /// If there were more than could be noted.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        let count = self.count.load(Relaxed);
        assert!(
            count <= MOST,
            "the high thread was interrupted {count} times"
        );
        let noted = self.gaps.iter().take(count);
        noted.map(|(from, to)| Gap {
            from: from.load(Relaxed),
            to: to.load(Relaxed),
        })
    }
}
