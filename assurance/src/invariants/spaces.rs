//! Address spaces: who owns the paging structures (ABI 03, section 8; 07, sections 6 to 8).
//!
//! Only address spaces that have an identifier are looked at: others cannot be run in.

use rustc_hash::{FxHashMap, FxHashSet};
use sandglass_kernel::arch::abi::object::table::Table;
use sandglass_kernel::arch::spaces;
use sandglass_kernel::mem::Ref;
use sandglass_model::state::{Entry, Level};

use super::{require, Finding};
use crate::abstraction::{asids, entries};
use crate::census::{level, Census};
use crate::isa;

const POOL_ENTRIES: u16 = 512;

/// A paging structure by its address.
type Tables = FxHashMap<u64, (Ref<Table>, Level)>;

/// Every entry of an address space that can be reached leads to a paging structure of the next level
/// that exists, and to that from nowhere else, and some capability to it is mapped there; or to a page
/// of a frame that exists, some capability to which is mapped there.
pub fn tables_have_one_owner(census: &Census) -> Finding {
    let tables: Tables = census
        .tables
        .iter()
        .map(|&(table, level)| (table.address().get(), (table, level)))
        .collect();
    let mut mapped: FxHashSet<(u64, u16, u64)> = FxHashSet::default();
    for site in &census.sites {
        let cap = site.view.cap;
        let mapping = match cap.frame() {
            Some(frame) => frame.mapping,
            None => isa::table_mapping(cap),
        };
        if let Some(mapping) = mapping {
            mapped.insert((cap.word().address().get(), mapping.asid, mapping.vaddr));
        }
    }
    let mut spaces = Spaces {
        census,
        tables,
        mapped,
        owned: FxHashSet::default(),
    };
    for pool in asids(census.k).keys() {
        for index in 0..POOL_ENTRIES {
            let asid = u16::from(*pool) * POOL_ENTRIES + index;
            let root = sandglass_kernel::arch::abi::space::root_of(census.k, asid);
            if let Some(root) = root {
                spaces.check(root.address().get(), Level::Pml4, asid, 0)?;
            }
        }
    }
    Ok(())
}

/// Whatever a thread remembers of its address space is what its capability names.
pub fn threads_remember_their_own(census: &Census) -> Finding {
    for &thread in &census.threads {
        require!(
            spaces::remembers_its_own(census.k, thread),
            "{thread:?} remembers {:?}, in state {} of the address spaces",
            thread.at(census.k).space(),
            census.k.core().spaces()
        );
    }
    Ok(())
}

struct Spaces<'a> {
    census: &'a Census<'a>,
    tables: Tables,
    /// (object, identifier, address) of every capability that is mapped.
    mapped: FxHashSet<(u64, u16, u64)>,
    owned: FxHashSet<u64>,
}

impl Spaces<'_> {
    /// Checks the structure at `at`, which translates the addresses from `vaddr` on.
    fn check(&mut self, at: u64, level: Level, asid: u16, vaddr: u64) -> Finding {
        let Some(&(table, is)) = self.tables.get(&at) else {
            return Err(format!(
                "identifier {asid}, address {vaddr:#x}: the {level:?} at {at:#x} does not exist"
            ));
        };
        require!(
            is == isa::level_of_table(level),
            "identifier {asid}, address {vaddr:#x}: at {at:#x} is a {is:?}, not a {level:?}"
        );
        require!(
            self.owned.insert(at),
            "identifier {asid}, address {vaddr:#x}: the {level:?} at {at:#x} is in two places"
        );
        let (span, below) = match level {
            Level::Pml4 => (39, Some(Level::Pdpt)),
            Level::Pdpt => (30, Some(Level::PageDirectory)),
            Level::PageDirectory => (21, Some(Level::PageTable)),
            Level::PageTable => (12, None),
        };
        for (i, entry) in entries(table.at(self.census.k), level) {
            let vaddr = vaddr + (u64::from(i) << span);
            let object = match entry {
                Entry::Table { table, .. } => {
                    let below = below.ok_or("a page table leads to a table")?;
                    self.check(table.0, below, asid, vaddr)?;
                    table.0
                }
                Entry::Page { start, .. } => start,
            };
            require!(
                self.mapped.contains(&(object, asid, vaddr)),
                "identifier {asid}, address {vaddr:#x} leads to {object:#x}, no capability to which \
                 says so"
            );
        }
        Ok(())
    }
}

/// An identifier in use names a root table, all capabilities to which carry it; a pool in use exists
/// under its number.
pub fn identifiers_name_their_roots(census: &Census) -> Finding {
    for (number, pool) in asids(census.k) {
        let exists = census
            .pools
            .iter()
            .any(|&(object, named)| object.address().get() == pool.0 && named == number);
        require!(
            exists,
            "the pool {number} in use at {:#x} does not exist",
            pool.0
        );
    }
    for &(pool, number) in &census.pools {
        for index in 0..POOL_ENTRIES {
            let Some(root) = pool.at(census.k).root(index) else {
                continue;
            };
            let asid = u16::from(number) * POOL_ENTRIES + index;
            let address = root.address().get();
            require!(
                census.has(isa::ROOT_TABLE, address),
                "identifier {asid} names a root table at {address:#x}, which does not exist"
            );
            let other = census.sites.iter().find(|site| {
                let cap = site.view.cap;
                level(cap.kind()) == Some(Level::Pml4)
                    && cap.word().address().get() == address
                    && cap.root_asid() != Some(asid)
            });
            require!(
                other.is_none(),
                "identifier {asid} names the root table of {:?}, which says otherwise",
                other.map(|site| site.id)
            );
        }
    }
    Ok(())
}
