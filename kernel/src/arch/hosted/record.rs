//! What a hosted machine sees of an event, and the time that passes in it.
//!
//! Each time that the kernel reads the clock, or waits for another core, some ticks pass first: as many as a list says, which
//! begins anew with every event, and when it is used up. So a run can be repeated, with time inside
//! its events.

use std::cell::{Cell, RefCell};
use std::vec::Vec;

use crate::cores::CoreId;

/// Something that the machine saw in an event, at a tick of the core in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// The kernel read the clock.
    Reading(u64),
    /// The kernel asked at a preemption point whether an interrupt is pending: it will go on if not.
    Look(u64),
    /// Another core left user code because this one wanted it to, if it was there.
    Stall(CoreId, u64),
}

/// The record of a machine.
#[derive(Default)]
pub(super) struct Recorder {
    is_on: Cell<bool>,
    seen: RefCell<Vec<Seen>>,
    delays: RefCell<Vec<u64>>,
    next: Cell<usize>,
}

impl Recorder {
    pub fn see(&self, what: Seen) {
        if self.is_on.get() {
            self.seen.borrow_mut().push(what);
        }
    }

    pub fn take(&self) -> Vec<Seen> {
        self.is_on.set(true);
        self.next.set(0);
        self.seen.take()
    }

    pub fn set_delays(&self, delays: Vec<u64>) {
        self.delays.replace(delays);
        self.next.set(0);
    }

    /// The ticks that pass next.
    pub fn delay(&self) -> u64 {
        let delays = self.delays.borrow();
        let next = self.next.get();
        self.next.set((next + 1) % delays.len().max(1));
        delays.get(next).copied().unwrap_or(0)
    }
}
