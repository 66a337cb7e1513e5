//! A look into [`Table`].

use super::Table;
use crate::arch::abi::pte;

impl Table {
    /// The raw entries, as the machine reads them.
    pub fn inspect(&self) -> impl Iterator<Item = u64> + '_ {
        const { assert!(pte::ENTRIES == 512) };
        self.entries.iter().map(core::cell::Cell::get)
    }
}
