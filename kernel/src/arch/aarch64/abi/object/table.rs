//! Paging structures as the machine reads them, with typed entries: a table entry is written only
//! from a handle to a table, so that walking needs no trust.

#[cfg(not(target_os = "none"))]
mod inspect;
#[cfg(not(target_os = "none"))]
pub use inspect::named;

use crate::Kernel;
use core::cell::Cell;

use super::paging::PageTable;
use crate::arch::abi::pte::{self, Access, Entry, Level, Page};
use crate::arch::Platform;
use crate::mem::{Kind, Memory, Ref, Tagged};

/// A paging structure of any level: 512 entries.
#[repr(C, align(4096))]
pub struct Table {
    entries: [Cell<u64>; pte::ENTRIES],
}

impl Table {
    #[inline(always)]
    fn entry(&self, i: usize) -> &Cell<u64> {
        &self.entries[i & (pte::ENTRIES - 1)]
    }

    /// What entry `i` says.
    #[inline(always)]
    pub fn read(&self, i: usize) -> Entry {
        pte::decode(self.entry(i).get())
    }

    /// The page that entry `i` leads to.
    #[inline(always)]
    pub fn page(&self, i: usize) -> Option<Page> {
        match self.read(i) {
            Entry::Page(page) => Some(page),
            _ => None,
        }
    }

    /// The table that entry `i` leads to, at whatever level.
    #[inline(always)]
    pub fn table<'k>(&self, k: &'k Memory, i: usize) -> Option<&'k Table> {
        let address = pte::child_table(self.entry(i).get())?;
        let table = k.machine.base().wrapping_add(address as usize);
        // SAFETY: only `set_table` writes entries that decode as tables, at any level, from a
        // handle; they are removed before the last capability to that table goes. Users cannot
        // write them: typed memory is never handed out as a frame.
        Some(unsafe { &*table.cast::<Table>() })
    }

    /// Makes entry `i` lead to `table`.
    pub fn set_table(&self, _: &Kernel, i: usize, table: Ref<PageTable>) {
        self.entry(i).set(pte::table(table.address().get()));
    }

    /// Makes entry `i` of this table of `level`, which must be able to hold pages, lead to the
    /// memory that `frame` names; absent, if that is no frame.
    #[inline(always)]
    pub fn set_page(
        &self,
        _: &Kernel,
        level: Level,
        i: usize,
        frame: Tagged,
        access: Access,
        attributes: u64,
    ) {
        let address = frame.address().get();
        self.entry(i).set(if frame.is(Kind::Frame) {
            pte::page(level, address, access, attributes)
        } else {
            0
        });
    }

    /// Makes entry `i` absent.
    pub fn clear_entry(&self, _: &Kernel, i: usize) {
        self.entry(i).set(0);
    }

    /// Whether entry `i` leads to `table`.
    pub fn leads_to(&self, i: usize, table: Ref<PageTable>) -> bool {
        self.read(i) == Entry::Table(table.address().get())
    }

    /// Makes every entry absent: 512 steps.
    pub fn clear(&self, _: &Kernel) {
        for entry in &self.entries {
            entry.set(0);
        }
    }
}
