//! Address-space identifiers (03, section 9.4; 07, section 8).
//!
//! An identifier is a pool's number and an index in it. Invariants: an entry of a pool that is
//! installed names a root table whose capabilities carry that identifier; identifier 0 is none.

use crate::Kernel;
use core::cell::Cell;

use sandglass_abi::object::ASID_POOL_BITS;
use sandglass_abi::vspace::aarch64::{ASIDS_PER_POOL, ASID_POOLS};

use super::paging::VSpace;
use crate::arch::bounds::turns;
use crate::arch::pool::Entries;
use crate::mem::Ref;

const INDEX_BITS: u32 = ASIDS_PER_POOL.trailing_zeros();

/// A pool of identifiers: for each, the root table that it names.
#[repr(transparent)]
pub struct AsidPool(Entries<VSpace>);

const _: () = assert!(size_of::<AsidPool>() == 1 << ASID_POOL_BITS);

impl AsidPool {
    /// The root table that `asid`, an identifier of this pool, names.
    #[inline(always)]
    pub fn root(&self, asid: u16) -> Option<Ref<VSpace>> {
        self.0.get(asid.into())
    }

    /// Whether `asid`, an identifier of this pool, names `root`.
    #[inline(always)]
    pub fn names(&self, asid: u16, root: Ref<VSpace>) -> bool {
        self.0.names(asid.into(), root)
    }

    pub fn set_root(&self, _: &Kernel, asid: u16, root: Option<Ref<VSpace>>) {
        self.0.set(asid.into(), root);
    }

    /// The lowest identifier of pool `number` that names nothing, 0 excepted.
    pub fn lowest_free(&self, number: u64) -> Option<u16> {
        let index = self.0.lowest_free(number == 0)?;
        Some((number << INDEX_BITS) as u16 | index as u16)
    }
}

/// The pools.
pub struct AsidTable {
    pools: [Cell<Option<Ref<AsidPool>>>; ASID_POOLS],
}

impl AsidTable {
    pub const fn new() -> Self {
        AsidTable {
            pools: [const { Cell::new(None) }; ASID_POOLS],
        }
    }

    fn entry(&self, number: u64) -> &Cell<Option<Ref<AsidPool>>> {
        &self.pools[number as usize & (ASID_POOLS - 1)]
    }

    /// The pool of this number, if it is installed.
    #[inline(always)]
    pub fn numbered(&self, number: u64) -> Option<Ref<AsidPool>> {
        self.entry(number).get()
    }

    /// The pool that `asid` belongs to.
    #[inline(always)]
    pub fn pool(&self, asid: u16) -> Option<Ref<AsidPool>> {
        self.numbered(u64::from(asid) >> INDEX_BITS)
    }

    pub fn lowest_free(&self) -> Option<u64> {
        for (number, pool) in turns::<{ ASID_POOLS as u64 }, _>((0..).zip(&self.pools)) {
            if pool.get().is_none() {
                return Some(number);
            }
        }
        None
    }

    /// Installs a pool, or takes it out.
    pub fn set(&self, _: &Kernel, number: u64, pool: Option<Ref<AsidPool>>) {
        self.entry(number).set(pool);
    }
}
