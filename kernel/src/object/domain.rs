//! The domain schedule (04, section 11).
//!
//! The profile has one domain, whose time never decreases; the schedule can be configured all the
//! same.

#[cfg(not(target_os = "none"))]
mod inspect;

use crate::Kernel;
use core::cell::Cell;

use sandglass_abi::sched::domain::{MAX_DURATION, SCHEDULE_LENGTH_ONE_DOMAIN};

/// Number of domains.
pub const DOMAINS: u64 = 1;

/// Number of entries of the schedule, the last of which is always an end marker.
pub const LENGTH: usize = SCHEDULE_LENGTH_ONE_DOMAIN;

/// An entry: a domain, and for how many ticks it runs. (0, 0) ends the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub domain: u8,
    pub duration: u64,
}

impl Entry {
    const END: Entry = Entry {
        domain: 0,
        duration: 0,
    };

    fn is_end(self) -> bool {
        self == Self::END
    }
}

/// The schedule, and where it stands.
pub struct DomainSchedule {
    entries: [Cell<Entry>; LENGTH],
    start: Cell<u64>,
    index: Cell<u64>,
    current: Cell<u8>,
    /// Ticks that the current domain has left.
    left: Cell<u64>,
}

impl DomainSchedule {
    pub const fn new() -> Self {
        DomainSchedule {
            entries: [
                Cell::new(Entry {
                    domain: 0,
                    duration: MAX_DURATION,
                }),
                Cell::new(Entry::END),
            ],
            start: Cell::new(0),
            index: Cell::new(0),
            current: Cell::new(0),
            left: Cell::new(MAX_DURATION),
        }
    }

    /// The domain that runs, which new threads belong to.
    pub fn current(&self) -> u8 {
        self.current.get()
    }

    #[inline(always)]
    pub fn is_current(&self, domain: u8) -> bool {
        DOMAINS == 1 || domain == self.current.get()
    }

    /// `passed` ticks have passed; a domain with less than `min_budget` left has none.
    #[inline(always)]
    pub fn pass(&self, _: &Kernel, passed: u64, min_budget: u64) {
        if DOMAINS > 1 {
            let left = self.left.get();
            let short = passed.saturating_add(min_budget) >= left;
            self.left.set(if short { 0 } else { left - passed });
        }
    }

    /// Whether the time of the current domain is over.
    #[inline(always)]
    pub fn expired(&self) -> bool {
        DOMAINS > 1 && self.left.get() == 0
    }

    /// When the time of the current domain is over, in ticks.
    #[inline(always)]
    pub fn end(&self, now: u64) -> u64 {
        if DOMAINS > 1 {
            now.saturating_add(self.left.get())
        } else {
            u64::MAX
        }
    }

    /// Entry `index`, if there is one that is no end marker.
    pub fn entry(&self, index: u64) -> Option<Entry> {
        let entry = self.entries.get(index as usize)?.get();
        (!entry.is_end()).then_some(entry)
    }

    /// The entry from which the schedule starts over.
    pub fn start(&self) -> u64 {
        self.start.get()
    }

    /// Sets entry `index`, which is not the last.
    pub fn configure(&self, _: &Kernel, index: u64, entry: Entry) {
        if let Some(cell) = self.entries.get(index as usize) {
            cell.set(entry);
        }
    }

    /// The schedule starts over at entry `index`, from the next decision on if there are several
    /// domains.
    pub fn set_start(&self, _: &Kernel, index: u64) {
        self.start.set(index);
        if DOMAINS > 1 {
            self.left.set(0);
            self.index.set(LENGTH as u64 - 2);
        }
    }
}
