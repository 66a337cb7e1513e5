//! Address spaces.

use std::collections::BTreeMap;

use sandglass_kernel::arch::abi::object::table::Table as KernelTable;
use sandglass_kernel::arch::abi::pte;
use sandglass_kernel::Kernel;
use sandglass_model::isa::ASID_POOLS;
use sandglass_model::state::{Entry, Level, PoolId, Table, TableId};

use crate::census::Census;
use crate::isa;

/// Indices in an ASID pool.
const POOL_ENTRIES: u16 = 512;
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

/// The entries in use, with their indices.
pub fn entries(table: &KernelTable, level: Level) -> impl Iterator<Item = (u16, Entry)> + '_ {
    let count = if level == Level::Pml4 {
        USER_ENTRIES
    } else {
        pte::ENTRIES
    };
    let raw = table.inspect().take(count).enumerate();
    raw.filter(|&(_, raw)| raw != 0)
        .filter_map(move |(i, raw)| Some((i as u16, isa::entry(level, raw)?)))
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
    (0..ASID_POOLS as u8)
        .filter_map(|number| {
            let pool = k.arch.asids.pool(u16::from(number) * POOL_ENTRIES)?;
            Some((number, PoolId(pool.address().get())))
        })
        .collect()
}
