//! The domain schedule (04, section 11): which domain's threads run, and until when.
//!
//! Only a kernel for one core has several domains. Where there is one, its time never decreases, and nothing of this is
//! more than a table; the schedule can be configured all the same.

#[cfg(not(target_os = "none"))]
mod inspect;

use crate::cores::CORES;
use crate::Kernel;
use core::cell::Cell;

pub use sandglass_abi::sched::domain::{DOMAINS, SCHEDULE_LENGTH as LENGTH};
use sandglass_abi::sched::domain::{MAX_DURATION, SCHEDULE_LENGTH};

const _: () = assert!(DOMAINS.is_power_of_two() && (DOMAINS == 1 || CORES == 1));

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

/// The schedule, and how far it is.
pub struct DomainSchedule {
    entries: [Cell<Entry>; LENGTH],
    start: Cell<u64>,
    index: Cell<u64>,
    end: Cell<u64>,
}

impl DomainSchedule {
    pub const fn new() -> Self {
        let mut entries = [const { Cell::new(Entry::END) }; SCHEDULE_LENGTH];
        entries[0] = Cell::new(Entry {
            domain: 0,
            duration: MAX_DURATION,
        });
        DomainSchedule {
            entries,
            start: Cell::new(0),
            index: Cell::new(0),
            end: Cell::new(u64::MAX),
        }
    }

    /// Entry `index`, if there is one that is no end marker.
    pub fn entry(&self, index: u64) -> Option<Entry> {
        let entry = self.entries.get(index as usize)?.get();
        (!entry.is_end()).then_some(entry)
    }

    /// Sets entry `index`, which is not the last. A turn that has begun goes on as it was.
    pub fn configure(&self, _: &Kernel, index: u64, entry: Entry) {
        if let Some(cell) = self.entries.get(index as usize) {
            cell.set(entry);
        }
    }

    /// From now on the schedule starts over from entry `index`; with several domains, it does so at once.
    pub fn set_start(&self, _: &Kernel, index: u64) {
        self.start.set(index);
        if DOMAINS > 1 {
            // The last entry always is an end marker.
            self.index.set(LENGTH as u64 - 2);
            self.end.set(0);
        }
    }

    /// The present turn is over, and the next one begins at `now`, in ticks. Returns the domain whose it is.
    pub fn advance(&self, _: &Kernel, now: u64) -> u8 {
        let next = self.index.get() + 1;
        let index = self.entry(next).map_or(self.start.get(), |_| next);
        let entry = self.entry(index).unwrap_or(Entry::END);
        self.index.set(index);
        self.end.set(now + entry.duration);
        entry.domain
    }

    cells! {
        /// The entry from which the schedule starts over.
        start: u64;
        /// When the turn of the domain that runs ends, in ticks; 0 if it is over.
        end, set_end: u64;
    }
}
