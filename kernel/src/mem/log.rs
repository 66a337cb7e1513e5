//! Memory for the records of a trace: a ring in frames of RAM that user level gave.
//!
//! Invariant: unless `start` is 0, the bytes from `start` to `end` are frames of RAM, which hold no
//! kernel object until [`Log::forget`] is told that their memory is taken back; `next`, unless it is
//! 0, and `again` are places of records within, and `last` is the last such.

use core::cell::Cell;
use core::ptr;

use sandglass_abi::trace::{RECORD_BYTES, RECORD_WORDS};

use super::{Kind, Memory, PhysAddr, Tagged};
use crate::arch::Platform;

/// log2 of the bytes of a frame that a log is made of.
const FRAME_BITS: u8 = 21;

/// The log of one core.
pub struct Log {
    /// Where the next record goes; 0 if none is written.
    next: Cell<u64>,
    /// Where the last record goes that there is room for.
    last: Cell<u64>,
    /// Where the one behind it goes: to the first place; or to the last again, if what is recorded
    /// first is to stay.
    again: Cell<u64>,
    start: Cell<u64>,
    end: Cell<u64>,
}

impl Log {
    /// Without memory.
    pub const fn new() -> Self {
        Log {
            next: Cell::new(0),
            last: Cell::new(0),
            again: Cell::new(0),
            start: Cell::new(0),
            end: Cell::new(0),
        }
    }

    /// Takes the frame that `frame` names as memory, instead of what there was. The last record
    /// stays where it is written over if it `stops` when it is full. `false` if it is no frame of
    /// RAM of 2 MiB.
    pub fn give(&self, frame: Tagged, stops: bool) -> bool {
        let usable = is_usable(frame);
        if usable {
            self.start.set(frame.address().get());
            self.end.set(frame.address().offset(1 << FRAME_BITS).get());
            self.bound(stops);
        }
        usable
    }

    /// Takes the frame that `frame` names as more memory; `false` if it does not begin where there
    /// is none any more.
    pub fn extend(&self, frame: Tagged, stops: bool) -> bool {
        let follows = is_usable(frame) && self.end.get() == frame.address().get();
        if follows {
            self.end.set(frame.address().offset(1 << FRAME_BITS).get());
            self.bound(stops);
        }
        follows
    }

    /// Finds the last place anew.
    fn bound(&self, stops: bool) {
        let places = (self.end.get() - self.start.get()) / RECORD_BYTES;
        let last = self.start.get() + (places - 1) * RECORD_BYTES;
        self.last.set(last);
        self.again.set(if stops { last } else { self.start.get() });
    }

    /// The next record goes to the first place; `false` if there is none.
    pub fn reset(&self) -> bool {
        self.next.set(self.start.get());
        self.start.get() != 0
    }

    /// Nothing is written any more until a reset; `false` if nothing was.
    pub fn end(&self) -> bool {
        self.next.replace(0) != 0
    }

    /// The memory from `start` on is taken back: the log has none if it was there.
    pub fn forget(&self, start: PhysAddr, bytes: u64) {
        if start.get() < self.end.get() && self.start.get() < start.offset(bytes).get() {
            for place in [&self.next, &self.last, &self.again, &self.start, &self.end] {
                place.set(0);
            }
        }
    }

    /// Writes a record, if there is a place for it: what is [about](sandglass_abi::trace::Tag::about) it, the number after
    /// `last`, the last one, and the other words. Its number is 0 while the rest changes.
    #[inline(always)]
    pub fn write(&self, k: &Memory, last: &Cell<u32>, about: u32, time: u64, words: [u64; 3]) {
        let at = self.next.get();
        if at == 0 {
            return;
        }
        let number = last.get().wrapping_add(1);
        last.set(number);
        let record = k.machine.base().wrapping_add(at as usize).cast::<u64>();
        const { assert!(RECORD_WORDS == 5) };
        // The tag's halves, its number first.
        let halves = record.cast::<u32>();
        // SAFETY: the place is one of this log's, in frames of RAM, which hold no kernel object
        // (invariant); any bits are a word. Volatile: whoever reads the memory sees the words in
        // this order.
        unsafe {
            ptr::write_volatile(halves, 0);
            ptr::write_volatile(record.wrapping_add(1), time);
            ptr::write_volatile(record.wrapping_add(2), words[0]);
            ptr::write_volatile(record.wrapping_add(3), words[1]);
            ptr::write_volatile(record.wrapping_add(4), words[2]);
            ptr::write_volatile(halves.wrapping_add(1), about);
            ptr::write_volatile(halves, number);
        }
        let is_last = at == self.last.get();
        let behind = at.wrapping_add(RECORD_BYTES);
        self.next
            .set(if is_last { self.again.get() } else { behind });
    }
}

/// Whether `frame` names a frame of RAM of the size that a log is made of.
fn is_usable(frame: Tagged) -> bool {
    frame.is(Kind::Frame) && frame.extent() == (FRAME_BITS, false)
}
