//! A look into [`Table`].

use super::Table;
use crate::arch::abi::object::paging::{PageTable, VSpace};
use crate::arch::abi::pte;
use crate::mem::{Ref, Tagged};

impl Table {
    /// The raw entries, as the machine reads them.
    pub fn inspect(&self) -> impl Iterator<Item = u64> + '_ {
        const { assert!(pte::ENTRIES == 512) };
        self.entries.iter().map(core::cell::Cell::get)
    }
}

/// The table that `word` names, of whichever kind.
pub fn named(word: Tagged) -> Option<Ref<Table>> {
    let root = word.get::<VSpace>().map(|table| table.address());
    let address = root.or_else(|| word.get::<PageTable>().map(|table| table.address()))?;
    // SAFETY: the types of paging structures are transparent wrappers of `Table`.
    unsafe { Ref::mint(address.get()) }
}
