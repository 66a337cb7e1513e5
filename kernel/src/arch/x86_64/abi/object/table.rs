//! Paging structures as the machine reads them, with typed entries: a table entry is written only
//! from a handle to a table, so that walking needs no trust.

#[cfg(not(target_os = "none"))]
mod inspect;

use crate::Kernel;
use core::cell::Cell;

use super::paging::{PageDirectory, PageTable, Pdpt, Pml4};
use crate::arch::abi::pte::{self, Access, Entry, Level};
use crate::arch::Platform;
use crate::mem::{Kind, Memory, Object, PhysAddr, Ref, Tagged};

/// A paging structure of any level: 512 entries. The upper half of a root table belongs to the
/// kernel.
#[repr(C, align(4096))]
pub struct Table {
    entries: [Cell<u64>; pte::ENTRIES],
}

/// What an entry of a table leads to.
#[derive(Clone, Copy)]
pub enum Child<'k> {
    Absent,
    Table(&'k Table),
    /// A page at this physical address.
    Page(PhysAddr),
}

impl Table {
    #[inline(always)]
    fn entry(&self, i: usize) -> &Cell<u64> {
        &self.entries[i & (pte::ENTRIES - 1)]
    }

    /// Entry `i` of this table of `level`, followed.
    #[inline(always)]
    pub fn child<'k>(&self, k: &'k Memory, level: Level, i: usize) -> Child<'k> {
        match pte::decode(level, self.entry(i).get()) {
            Entry::Absent => Child::Absent,
            Entry::Page(address) => Child::Page(PhysAddr::new(address)),
            Entry::Table(_) => self.table(k, i).map_or(Child::Absent, Child::Table),
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
    pub fn set_table(&self, _: &Kernel, i: usize, table: Ref<Table>, attributes: u64) {
        self.entry(i)
            .set(pte::table(table.address().get(), attributes));
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

    /// Sets the entry in which a root table holds the kernel.
    pub(in crate::arch) fn set_kernel_entry(&self, _: &Kernel, entry: u64) {
        self.entry(pte::ENTRIES - 1).set(entry);
    }

    /// Whether entry `i` of this table of `level` leads to `table`.
    pub fn leads_to(&self, level: Level, i: usize, table: Ref<Table>) -> bool {
        pte::decode(level, self.entry(i).get()) == Entry::Table(table.address().get())
    }

    /// Makes every entry absent: 512 steps.
    pub fn clear(&self, _: &Kernel) {
        for entry in &self.entries {
            entry.set(0);
        }
    }
}

/// The table that `word` names, of whichever level.
pub fn named(word: Tagged) -> Option<Ref<Table>> {
    fn of<T: Object + AsRef<Table>>(word: Tagged) -> Option<u64> {
        word.get::<T>().map(|table| table.address().get())
    }
    let address = of::<Pml4>(word)
        .or_else(|| of::<Pdpt>(word))
        .or_else(|| of::<PageDirectory>(word))
        .or_else(|| of::<PageTable>(word))?;
    // SAFETY: the types of paging structures are transparent wrappers of `Table`.
    unsafe { Ref::mint(address) }
}
