//! A batch of instructions: what a thread writes before it executes them, and its handler reads when
//! one faults. The handler takes nothing in it for granted: the storm can write it.

use core::sync::atomic::{AtomicU16, AtomicU64, AtomicU8, Ordering::Relaxed};

use crate::arch::instructions::class::Class;

/// Items of the longest batch.
pub const MOST_ITEMS: usize = 16;

/// A thread's batch. An item is one instruction under test, with what prepares it; its first
/// instruction counts it.
#[repr(C, align(4096))]
pub struct Batch {
    /// How often each item was begun.
    pub begun: [AtomicU8; MOST_ITEMS],
    /// [`Class`] of each.
    classes: [AtomicU8; MOST_ITEMS],
    /// Where each ends, bytes from the start of the code.
    ends: [AtomicU16; MOST_ITEMS],
    items: AtomicU64,
    /// Address of the code.
    code: AtomicU64,
    /// Items that were begun in the batches before, by class.
    attempts: [AtomicU64; Class::COUNT],
}

/// Memory for data: far pointers, images of the FPU's state. Around it is room for what instructions
/// write beyond it, so that counters are seldom overwritten.
#[repr(C, align(4096))]
pub struct Scratch {
    before: [u64; 384],
    pub words: [AtomicU64; SCRATCH_BYTES / 8],
    behind: [u64; 384],
}
pub const SCRATCH_BYTES: usize = 2048;

const _: () = assert!(size_of::<Scratch>() == 8192);
const _: () = assert!(size_of::<Batch>() == 4096);

impl Batch {
    /// Forgets everything.
    pub fn clear(&self) {
        self.begun.iter().for_each(|count| count.store(0, Relaxed));
        self.attempts
            .iter()
            .for_each(|count| count.store(0, Relaxed));
        self.items.store(0, Relaxed);
    }

    /// Adds what was begun to the sums; returns their sum. A thread that is started anew meanwhile
    /// loses what it has not added yet.
    pub fn settle(&self) -> u64 {
        for (begun, class) in self.begun.iter().zip(&self.classes) {
            let count = u64::from(begun.swap(0, Relaxed));
            if let Some(attempts) = self.attempts.get(usize::from(class.load(Relaxed))) {
                attempts.store(attempts.load(Relaxed).wrapping_add(count), Relaxed);
            }
        }
        self.attempts().into_iter().fold(0, u64::wrapping_add)
    }

    /// Sets what the items are of, and where they end; the code lies at `code`.
    pub fn describe(&self, code: u64, items: impl Iterator<Item = (Class, usize)>) {
        let mut count = 0;
        for ((class, end), slots) in items.zip(self.classes.iter().zip(&self.ends)) {
            slots.0.store(class as u8, Relaxed);
            slots.1.store(end as u16, Relaxed);
            count += 1;
        }
        self.items.store(count, Relaxed);
        self.code.store(code, Relaxed);
    }

    /// Items begun in all settled batches, by class.
    pub fn attempts(&self) -> [u64; Class::COUNT] {
        core::array::from_fn(|i| self.attempts[i].load(Relaxed))
    }

    /// Items begun since the batches were settled.
    pub fn unsettled(&self) -> u64 {
        let begun = self.begun.iter().map(|count| count.load(Relaxed));
        begun.map(u64::from).sum()
    }

    /// The item that an instruction at `ip` belongs to, if it is one of the batch, else the last that
    /// was begun.
    pub fn item_at(&self, ip: u64) -> Option<usize> {
        let count = (self.items.load(Relaxed) as usize).min(MOST_ITEMS);
        let offset = ip.wrapping_sub(self.code.load(Relaxed));
        let ends = self.ends[..count].iter();
        ends.map(|end| u64::from(end.load(Relaxed)))
            .position(|end| offset < end)
            .or_else(|| {
                let begun = self.begun[..count].iter();
                begun.map(|n| n.load(Relaxed)).rposition(|n| n > 0)
            })
    }

    /// Position of an item's class.
    pub fn class_of(&self, item: usize) -> usize {
        self.classes
            .get(item)
            .map_or(0, |class| class.load(Relaxed).into())
    }

    /// Where the thread goes on behind an item; behind the last one it starts anew.
    pub fn behind(&self, item: usize) -> Option<u64> {
        let last = self.items.load(Relaxed) as usize;
        let end = self.ends.get(item).filter(|_| item + 1 < last)?;
        Some(
            self.code
                .load(Relaxed)
                .wrapping_add(end.load(Relaxed).into()),
        )
    }
}
