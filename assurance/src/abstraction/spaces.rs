//! Address spaces.

use std::collections::BTreeMap;

use sandglass_kernel::arch::abi::object::table::Table as KernelTable;
use sandglass_kernel::arch::abi::pte;
use sandglass_kernel::Kernel;
use sandglass_model::state::{Entry, FrameRights, Level, PoolId, Table, TableId};

use crate::census::Census;

/// Indices in an ASID pool.
const POOL_ENTRIES: u16 = 512;
/// Numbers of ASID pools.
const POOLS: u8 = 8;
/// The entries of a root table for user addresses.
const USER_ENTRIES: usize = 256;

/// All paging structures.
pub fn tables(census: &Census) -> BTreeMap<TableId, Table> {
    let tables = census.tables.iter();
    tables
        .map(|&(table, level)| {
            let entries = entries(table.at(census.k), level);
            let table_state = Table {
                level,
                entries: entries.collect(),
            };
            (TableId(table.address().get()), table_state)
        })
        .collect()
}

/// The kernel's name of a level.
pub fn kernel_level(level: Level) -> pte::Level {
    match level {
        Level::PageTable => pte::Level::PAGE_TABLE,
        Level::PageDirectory => pte::Level::PAGE_DIRECTORY,
        Level::Pdpt => pte::Level::PDPT,
        Level::Pml4 => pte::Level::PML4,
    }
}

/// The entries in use, with their indices.
pub fn entries(table: &KernelTable, level: Level) -> impl Iterator<Item = (u16, Entry)> + '_ {
    let count = if level == Level::Pml4 {
        USER_ENTRIES
    } else {
        pte::ENTRIES
    };
    let raw = table.inspect().take(count).enumerate();
    raw.filter(|&(_, raw)| raw != 0)
        .filter_map(move |(i, raw)| Some((i as u16, entry(level, raw)?)))
}

fn entry(level: Level, raw: u64) -> Option<Entry> {
    const WRITE: u64 = 1 << 1;
    const USER: u64 = 1 << 2;
    const CACHE_SHIFT: u32 = 3;
    let cache = (raw >> CACHE_SHIFT & 3) as u8;
    match pte::decode(kernel_level(level), raw) {
        pte::Entry::Absent => None,
        pte::Entry::Table(table) => Some(Entry::Table {
            table: TableId(table),
            attributes: cache,
        }),
        pte::Entry::Page(start) => {
            let pat = match level {
                Level::PageTable => raw >> 7 & 1,
                Level::PageDirectory => raw >> 12 & 1,
                _ => 0,
            };
            let rights = match (raw & USER != 0, raw & WRITE != 0) {
                (false, _) => FrameRights::KernelOnly,
                (true, false) => FrameRights::ReadOnly,
                (true, true) => FrameRights::ReadWrite,
            };
            Some(Entry::Page {
                start,
                rights,
                attributes: cache | (pat as u8) << 2,
            })
        }
    }
}

/// All pools.
pub fn pools(census: &Census) -> BTreeMap<PoolId, BTreeMap<u16, TableId>> {
    let pools = census.pools.iter();
    pools
        .map(|&(pool, _)| {
            let object = pool.at(census.k);
            let roots = (0..POOL_ENTRIES).filter_map(|i| {
                let root = object.root(i)?;
                Some((i, TableId(root.address().get())))
            });
            (PoolId(pool.address().get()), roots.collect())
        })
        .collect()
}

/// The pools in use, by number.
pub fn asids(k: &Kernel) -> BTreeMap<u8, PoolId> {
    (0..POOLS)
        .filter_map(|number| {
            let pool = k.arch.asids.pool(u16::from(number) * POOL_ENTRIES)?;
            Some((number, PoolId(pool.address().get())))
        })
        .collect()
}
