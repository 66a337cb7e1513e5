//! Address spaces: from an identifier to its root table, and the walk through the levels
//! (03, section 8; 07, sections 6 to 8).

use sandglass_abi::vspace::x86_64::USER_TOP;

use super::error::Error;
use super::paging::Pml4;
use super::tcb::{Tcb, TcbSlot};
use crate::arch::pte::Level;
use crate::arch::Platform;
use crate::cap::Capability;
use crate::mem::{self, Ref, Table};
use crate::Kernel;

/// Highest user address.
pub const TOP: u64 = USER_TOP;

/// The root table that address-space identifier `asid` names.
#[inline(always)]
pub fn root_of(k: &Kernel, asid: u16) -> Option<Ref<Pml4>> {
    k.asids.pool(asid)?.at(k).root(asid)
}

/// The root table of `cap`, whose identifier is `asid`, if that still names it.
#[inline(always)]
pub fn resolve(k: &Kernel, cap: Capability, asid: u16) -> Result<Ref<Pml4>, Error> {
    let root = root_of(k, asid).ok_or(Error::invalid_root())?;
    if cap.word().get::<Pml4>() != Some(root) {
        return Err(Error::InvalidCapability(1));
    }
    Ok(root)
}

/// The table of `level` that covers `vaddr` below `root`, or how many bits of the address the
/// missing table would have translated.
#[inline(always)]
pub fn table<'k>(
    k: &'k Kernel,
    root: &'k Table,
    vaddr: u64,
    level: Level,
) -> Result<&'k Table, u8> {
    let below =
        |table: &'k Table, at: Level| table.table(k, at.index(vaddr)).ok_or(at.entry_bits());
    if level == Level::PML4 {
        return Ok(root);
    }
    let pdpt = below(root, Level::PML4)?;
    if level == Level::PDPT {
        return Ok(pdpt);
    }
    let directory = below(pdpt, Level::PDPT)?;
    if level == Level::PAGE_DIRECTORY {
        return Ok(directory);
    }
    below(directory, Level::PAGE_DIRECTORY)
}

/// Makes user code of `thread` run in its address space; one whose address space is gone, or that
/// never had one, runs where nothing is mapped (07, section 8).
#[inline(always)]
pub fn switch(k: &Kernel, thread: Ref<Tcb>) {
    let cap = mem::tcb_slot(thread, TcbSlot::VSpace).at(k).cap();
    let named = cap.root_asid().and_then(|asid| root_of(k, asid));
    match (named, cap.word().get::<Pml4>()) {
        (Some(root), Some(own)) if root == own => {
            k.machine.use_address_space(Some(root.address()));
        }
        _ => switch_to_nothing(k),
    }
}

#[cold]
#[inline(never)]
fn switch_to_nothing(k: &Kernel) {
    k.machine.use_address_space(None);
}

/// The address space of `thread` may have changed: if it runs, it continues in the new one.
pub fn changed(k: &Kernel, thread: Ref<Tcb>) {
    if k.core().thread() == Some(thread) {
        switch(k, thread);
    }
}

/// Some address space has lost its translation: the current thread may have lost its own.
pub fn revoked(k: &Kernel) {
    if let Some(thread) = k.core().thread() {
        switch(k, thread);
    }
}
