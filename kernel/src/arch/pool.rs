//! The entries of a pool of address-space identifiers: which root table each names, and which name none.

use core::cell::Cell;

use crate::arch::bounds::turns;
use crate::mem::{Packed, Ref};

/// Entries of a pool.
const ENTRIES: usize = 512;
/// Entries whose state is kept together, as flags of one of them.
const TOGETHER: usize = 8;
const ALL_TAKEN: u64 = (1 << TOGETHER) - 1;

/// For each identifier of a pool the root table that it names. Zeroed memory names none.
///
/// Invariant: flag j of entry i says whether entry 8 i + j names a table, so that a free one is found in a step for each
/// eight.
#[repr(C, align(4096))]
pub struct Entries<T> {
    entries: [Cell<Packed<T>>; ENTRIES],
}

impl<T> Entries<T> {
    fn entry(&self, index: usize) -> &Cell<Packed<T>> {
        const { assert!(1 << Packed::<T>::FLAG_BITS > ALL_TAKEN) };
        &self.entries[index & (ENTRIES - 1)]
    }

    /// What entry `index`, cut to the size of the pool, names.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<Ref<T>> {
        self.entry(index).get().get()
    }

    /// Whether entry `index`, cut to the size of the pool, names `root`.
    #[inline(always)]
    pub fn names(&self, index: usize, root: Ref<T>) -> bool {
        self.entry(index).get().names(root)
    }

    /// Lets entry `index` name `root`.
    pub fn set(&self, index: usize, root: Option<Ref<T>>) {
        let entry = self.entry(index);
        entry.set(Packed::new(root, entry.get().flags()));
        let flags = self.entry((index & (ENTRIES - 1)) / TOGETHER);
        let taken = flags.get().flags();
        let this = 1 << (index % TOGETHER);
        let taken = if root.is_some() {
            taken | this
        } else {
            taken & !this
        };
        flags.set(Packed::new(flags.get().get(), taken));
    }

    /// The lowest entry that names nothing, the first one excepted if that is `reserved`.
    pub fn lowest_free(&self, reserved: bool) -> Option<usize> {
        let mut more = u64::from(reserved);
        for (i, entry) in turns::<{ (ENTRIES / TOGETHER) as u64 }, _>(
            self.entries.iter().take(ENTRIES / TOGETHER).enumerate(),
        ) {
            let free = !(entry.get().flags() | more) & ALL_TAKEN;
            more = 0;
            if free != 0 {
                return Some(i * TOGETHER + free.trailing_zeros() as usize);
            }
        }
        None
    }
}
