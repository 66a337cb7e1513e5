//! Roots of address spaces whose identifiers are no longer theirs (07, section 8).

use sandglass::cap::AsidPool;

use crate::prelude::*;

/// A pool of address space identifiers of the check's own; its number is the lowest that is free.
pub fn pool(f: &mut Fixture) -> Result<AsidPool, Failure> {
    let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
    boot::ASID_CONTROL.make_pool(memory, slot)?;
    Ok(slot.capability())
}

/// A root whose pool is gone.
pub fn stale_root(f: &mut Fixture) -> Result<CPtr, Failure> {
    let (pool, root) = (pool(f)?, f.pml4()?);
    pool.assign(root)?;
    f.slot_of(pool).delete()?;
    Ok(root.cptr())
}

/// A root whose identifier is another root's, of a pool that took the number of its own.
pub fn replaced_root(f: &mut Fixture) -> Result<CPtr, Failure> {
    let root = stale_root(f)?;
    pool(f)?.assign(f.pml4()?)?;
    Ok(root)
}
