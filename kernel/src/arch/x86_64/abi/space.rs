//! Address spaces: from an identifier to its root table, and the walk through the levels
//! (03, section 8; 07, sections 6 to 8).

use sandglass_abi::vspace::x86_64::USER_TOP;

use super::object::table::Table;
use super::Space;
use crate::arch::abi::object::paging::Pml4;
use crate::arch::abi::pte::Level;
use crate::arch::abi::Devices;
use crate::arch::spaces::{self, running};
use crate::arch::Platform;
use crate::cores::{Cores, CORES};
use crate::ipc::stall;
use crate::mem::{objects, Ref};
use crate::object::{Tcb, TcbSlot};
use crate::time::Turn;
use crate::{Kernel, View};

/// Highest user address.
pub const TOP: u64 = USER_TOP;

/// The root table that address-space identifier `asid` names.
#[inline(always)]
pub fn root_of(k: &View, asid: u16) -> Option<Ref<Pml4>> {
    k.arch.asids.pool(asid)?.at(k).root(asid)
}

/// The table of `level` that covers `vaddr` below `root`, or how many bits of the address the
/// missing table would have translated.
#[inline(always)]
pub fn table<'k>(k: &'k View, root: &'k Table, vaddr: u64, level: Level) -> Result<&'k Table, u8> {
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

/// As [`table`], for those who are in no hurry.
///
/// # Errors
/// The same.
#[inline(never)]
pub fn find<'k>(k: &'k View, root: &'k Table, vaddr: u64, level: Level) -> Result<&'k Table, u8> {
    table(k, root, vaddr, level)
}

/// The root table of the address space of `thread`, unless that is gone or never was.
#[inline(always)]
fn own_root(k: &View, thread: Ref<Tcb>) -> Option<Ref<Pml4>> {
    let cap = objects::tcb_slot(thread, TcbSlot::VSpace).at(k).cap();
    let root = cap.word().get::<Pml4>()?;
    // Identifier 0, of one that has none, names nothing.
    let pool = k.arch.asids.pool(cap.data() as u16)?;
    pool.at(k).names(cap.data() as u16, root).then_some(root)
}

/// The address space of `thread`, unless that is gone or never was.
#[inline(always)]
pub fn own(k: &View, thread: Ref<Tcb>) -> Option<Space> {
    own_root(k, thread).map(|root| Space::new(root.address()))
}

/// Some address space has lost its translation: what runs may have lost its own.
pub fn revoked(k: &Kernel, turn: &Turn) {
    spaces::forget(k);
    if CORES > 1 {
        // The last that this event does: nothing looks at what becomes of their contexts.
        running(k)
            .filter(|&(core, thread)| core != k.core_id() && own_root(k, thread).is_none())
            .for_each(|(_, thread)| stall::stop(k, turn, thread));
    }
    k.machine.flush_address_space();
}

/// The entry for the page at `vaddr` below `root` has changed: no core knows the former one.
#[inline(always)]
pub fn page_changed(k: &Kernel, root: Ref<Pml4>, vaddr: u64) {
    k.machine.flush_page(vaddr);
    flush_elsewhere(k, root);
}

/// An entry that leads to a table below `root` has changed: no core knows the former one.
pub fn table_changed(k: &Kernel, root: Ref<Pml4>) {
    k.machine.flush_address_space();
    flush_elsewhere(k, root);
}

/// Other cores that run in the address space of `root` forget its translations; the rest know none,
/// since to run in another one is to forget.
#[inline(always)]
fn flush_elsewhere(k: &Kernel, root: Ref<Pml4>) {
    if CORES > 1 && k.machine.cores() > 1 {
        let cores = running(k)
            .filter(|&(core, thread)| core != k.core_id() && own_root(k, thread) == Some(root))
            .fold(Cores::NONE, |cores, (core, _)| cores.with(core));
        if !cores.is_empty() {
            k.machine.flush_cores(cores);
        }
    }
}
