//! What happened in which order, noted by the threads it happened to.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const CAPACITY: usize = 64;

/// Events in the order of their being noted. Any thread of the program may note.
pub struct Trace {
    events: [AtomicU64; CAPACITY],
    count: AtomicUsize,
}

impl Trace {
    /// An empty trace, for good, so that threads can share it.
    pub fn leak() -> &'static Self {
        Box::leak(Box::new(Self {
            events: [const { AtomicU64::new(0) }; CAPACITY],
            count: AtomicUsize::new(0),
        }))
    }

    /// Appends an event. Events beyond the 64th are counted, but not kept.
    pub fn note(&self, event: u64) {
        let at = self.count.fetch_add(1, Relaxed);
        if let Some(slot) = self.events.get(at) {
            slot.store(event, Relaxed);
        }
    }

    /// Number of events so far.
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events so far, at most the first 64.
    pub fn events(&self) -> Vec<u64> {
        self.events[..self.len().min(CAPACITY)]
            .iter()
            .map(|event| event.load(Relaxed))
            .collect()
    }
}
