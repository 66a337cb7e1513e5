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

/// The domain that runs, which new threads belong to.
pub const CURRENT: u8 = 0;

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

/// The schedule. There is nothing that it decides: the one domain is always the current one.
pub struct DomainSchedule {
    entries: [Cell<Entry>; LENGTH],
    start: Cell<u64>,
}

impl DomainSchedule {
    pub const fn new() -> Self {
        DomainSchedule {
            entries: [
                Cell::new(Entry {
                    domain: CURRENT,
                    duration: MAX_DURATION,
                }),
                Cell::new(Entry::END),
            ],
            start: Cell::new(0),
        }
    }

    /// Entry `index`, if there is one that is no end marker.
    pub fn entry(&self, index: u64) -> Option<Entry> {
        let entry = self.entries.get(index as usize)?.get();
        (!entry.is_end()).then_some(entry)
    }

    /// Sets entry `index`, which is not the last.
    pub fn configure(&self, _: &Kernel, index: u64, entry: Entry) {
        if let Some(cell) = self.entries.get(index as usize) {
            cell.set(entry);
        }
    }

    cells! {
        /// The entry from which the schedule starts over.
        start, set_start: u64;
    }
}
