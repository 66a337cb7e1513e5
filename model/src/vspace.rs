//! Address spaces: their identifiers, and walks of their tables (07, sections 7 and 8).

use crate::error::Error;
use crate::isa::{self, ASIDS_PER_POOL};
use crate::state::{Address, Cap, Entry, Level, LookupFailure, Mapping, State, TableId};
use crate::time::cores;
use sandglass_abi::vspace::x86_64::{
    PAGE_DIRECTORY_COVERAGE_BITS, PAGE_TABLE_COVERAGE_BITS, PDPT_COVERAGE_BITS, TABLE_INDEX_BITS,
};

/// log2 of the bytes of addresses that a table of `level` covers: the same on all architectures (07, section 7), whatever
/// they call the levels.
pub fn coverage_bits(level: Level) -> u32 {
    match level {
        Level::PageTable => PAGE_TABLE_COVERAGE_BITS,
        Level::PageDirectory => PAGE_DIRECTORY_COVERAGE_BITS,
        Level::Pdpt => PDPT_COVERAGE_BITS,
        Level::Pml4 => PDPT_COVERAGE_BITS + TABLE_INDEX_BITS,
    }
}

/// The level whose entries refer to tables of `level`.
///
/// # Panics
/// `level` is that of roots.
pub fn parent(level: Level) -> Level {
    match level {
        Level::PageTable => Level::PageDirectory,
        Level::PageDirectory => Level::Pdpt,
        Level::Pdpt => Level::Pml4,
        Level::Pml4 => panic!("a root has no parent"),
    }
}

/// The level whose entries refer to frames of 2^`bits` bytes.
///
/// # Panics
/// There are no frames of that size.
pub fn level_of_frame(bits: u8) -> Level {
    [Level::PageTable, Level::PageDirectory, Level::Pdpt]
        .into_iter()
        .find(|level| coverage_bits(*level) - TABLE_INDEX_BITS == u32::from(bits))
        .expect("frames are as large as what an entry covers")
}

/// The identifier of the place `index` of the pool with `number`.
pub fn asid(number: u8, index: u16) -> u16 {
    u16::from(number) * ASIDS_PER_POOL as u16 + index
}

/// The pool and the place in it that `asid` stands for.
fn place_of(asid: u16) -> (u8, u16) {
    let size = ASIDS_PER_POOL as u16;
    ((asid / size) as u8, asid % size)
}

/// The root that `asid` stands for; `None` if that, or its pool, is gone.
pub fn root_of(s: &State, asid: u16) -> Option<TableId> {
    let (number, index) = place_of(asid);
    s.pools[s.asids.get(&number)?].get(&index).copied()
}

/// `asid` stands for nothing any more, if it stood for `root` (02, section 7.1).
pub fn free_asid(s: &mut State, asid: u16, root: TableId) {
    if root_of(s, asid) == Some(root) {
        let (number, index) = place_of(asid);
        let pool = s.asids[&number];
        s.pools
            .get_mut(&pool)
            .expect("pools in use exist")
            .remove(&index);
        cores::stall_homeless(s);
    }
}

/// The root and the identifier that an address-space argument names, which is extra capability 0
/// (03, sections 8.2 and 8.3: "assigned root").
///
/// # Errors
/// InvalidCapability(1): it is no root, or was not assigned an identifier.
pub fn assigned_root(cap: Option<Cap>) -> Result<(TableId, u16), Error> {
    match cap {
        Some(Cap::Root {
            object,
            asid: Some(asid),
        }) => Ok((object, asid)),
        _ => Err(Error::InvalidCapability(1)),
    }
}

/// # Errors
/// `asid` does not stand for `root` (any more): FailedLookup if for nothing, InvalidCapability(1) if
/// for another (03, sections 8.2 and 8.3).
pub fn require_current(s: &State, root: TableId, asid: u16) -> Result<(), Error> {
    match root_of(s, asid) {
        None => Err(Error::FailedLookup {
            is_source: false,
            failure: LookupFailure::InvalidRoot,
        }),
        Some(current) if current == root => Ok(()),
        Some(_) => Err(Error::InvalidCapability(1)),
    }
}

/// The table of `level` that translates `vaddr` below `root`.
///
/// # Errors
/// FailedLookup with MissingCapability: the bits are those that the first missing table would cover
/// (03, sections 8.2 and 8.3).
pub fn table_at(s: &State, root: TableId, level: Level, vaddr: u64) -> Result<TableId, Error> {
    let mut at = (root, Level::Pml4);
    for below in [Level::Pdpt, Level::PageDirectory, Level::PageTable] {
        if at.1 == level {
            break;
        }
        let Some(Entry::Table { table, .. }) = entry(s, at.0, at.1, vaddr) else {
            let bits_left = coverage_bits(below).into();
            let failure = LookupFailure::MissingCapability { bits_left };
            return Err(Error::FailedLookup {
                is_source: false,
                failure,
            });
        };
        at = (table, below);
    }
    Ok(at.0)
}

/// The entry of `table`, which is of `level`, for `vaddr`.
pub fn entry(s: &State, table: TableId, level: Level, vaddr: u64) -> Option<Entry> {
    s.tables[&table].entries.get(&index(level, vaddr)).copied()
}

/// Writes the entry of `table`, which is of `level`, for `vaddr`.
pub fn set_entry(s: &mut State, table: TableId, level: Level, vaddr: u64, entry: Option<Entry>) {
    let table = s.table_mut(table);
    let index = index(level, vaddr);
    match entry {
        Some(entry) => table.entries.insert(index, entry),
        None => table.entries.remove(&index),
    };
}

/// The entry of a table of `level` that is for `vaddr`.
fn index(level: Level, vaddr: u64) -> u16 {
    let entry_bits = coverage_bits(level) - TABLE_INDEX_BITS;
    (vaddr >> entry_bits & ((1 << TABLE_INDEX_BITS) - 1)) as u16
}

/// The frame of 2^`bits` bytes at `start` is no longer at the place where it was mapped: its entry
/// goes, if it still refers to this frame (02, section 7.1; 03, section 8.3).
pub fn unmap_frame(s: &mut State, start: Address, bits: u8, mapping: Mapping) {
    remove_entry(
        s,
        level_of_frame(bits),
        mapping,
        |entry| matches!(entry, Entry::Page { start: mapped, .. } if mapped == start),
    );
}

/// The paging structure `object` of `level` is no longer at the place where it was mapped: its
/// parent's entry goes, if it still refers to it (02, section 7.1; 03, section 8.2).
pub fn unmap_table(s: &mut State, object: TableId, level: Level, mapping: Mapping) {
    for parent in isa::parents(level, object) {
        remove_entry(
            s,
            parent,
            mapping,
            |entry| matches!(entry, Entry::Table { table, .. } if table == object),
        );
    }
}

/// Removes the entry at the place `mapping` in the table of `level`, if it `refers` to what is to be
/// unmapped.
fn remove_entry(s: &mut State, level: Level, mapping: Mapping, refers: impl Fn(Entry) -> bool) {
    let Some(root) = root_of(s, mapping.asid) else {
        return;
    };
    let Ok(table) = table_at(s, root, level, mapping.vaddr) else {
        return;
    };
    if entry(s, table, level, mapping.vaddr).is_some_and(refers) {
        set_entry(s, table, level, mapping.vaddr, None);
    }
}
