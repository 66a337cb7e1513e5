//! Address spaces: from an identifier to its root table, and the walk through the levels
//! (03, section 9; 07, sections 6 to 8).

use sandglass_abi::vspace::aarch64::USER_TOP;

use super::object::paging::VSpace;
use super::object::table::Table;
use super::Space;
use crate::arch::abi::pte::Level;
use crate::arch::Platform;
use crate::cores::{CoreId, CORES};
use crate::ipc::stall;
use crate::mem::{objects, Ref};
use crate::object::{Tcb, TcbSlot};
use crate::time::Turn;
use crate::{Kernel, View};

/// Highest user address.
pub const TOP: u64 = USER_TOP;

/// The root table that address-space identifier `asid` names.
#[inline(always)]
pub fn root_of(k: &View, asid: u16) -> Option<Ref<VSpace>> {
    k.arch.asids.pool(asid)?.at(k).root(asid)
}

/// Where the walk for an address ends: in which table, and at which of its entries.
#[derive(Clone, Copy)]
pub struct End<'k> {
    pub table: &'k Table,
    pub level: Level,
    pub index: usize,
}

impl<'k> End<'k> {
    #[inline(always)]
    fn at(table: &'k Table, level: Level, vaddr: u64) -> Self {
        End {
            table,
            level,
            index: level.index(vaddr),
        }
    }

    /// The place in the table that this entry leads to, which is one of `level`; `None` if it leads to none.
    #[inline(always)]
    fn below(self, k: &'k View, level: Level, vaddr: u64) -> Option<Self> {
        Some(Self::at(self.table.table(k, self.index)?, level, vaddr))
    }
}

/// Walks from `root` towards `vaddr` as long as entries lead to tables. The levels are written out: a loop over them would
/// execute twice as many instructions.
#[inline(always)]
pub fn walk<'k>(k: &'k View, root: &'k Table, vaddr: u64) -> End<'k> {
    let [second, third, last] = Level::BELOW;
    let top = End::at(root, Level::ROOT, vaddr);
    let Some(end) = top.below(k, second, vaddr) else {
        return top;
    };
    let Some(below) = end.below(k, third, vaddr) else {
        return end;
    };
    below.below(k, last, vaddr).unwrap_or(below)
}

/// As [`walk`], for those who are in no hurry.
#[inline(never)]
pub fn find<'k>(k: &'k View, root: &'k Table, vaddr: u64) -> End<'k> {
    walk(k, root, vaddr)
}

/// The identifier and the root table of the address space of `thread`, unless that is gone or never was.
#[inline(always)]
fn own_root(k: &View, thread: Ref<Tcb>) -> Option<(u16, Ref<VSpace>)> {
    let cap = objects::tcb_slot(thread, TcbSlot::VSpace).at(k).cap();
    let (asid, root) = (cap.root_asid()?, cap.root()?);
    let pool = k.arch.asids.pool(asid)?;
    pool.at(k).names(asid, root).then_some((asid, root))
}

/// Makes user code of `thread` run in its address space; one whose address space is gone, or that
/// never had one, runs where nothing is mapped (07, section 8).
#[inline(always)]
pub fn switch(k: &Kernel, thread: Ref<Tcb>) {
    match own_root(k, thread) {
        Some((asid, root)) => k.machine.use_address_space(Some(Space {
            root: root.address(),
            asid,
        })),
        None => switch_to_nothing(k),
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

/// Some address space may have lost its translation: what runs may have lost its own. No core that runs a thread is in an
/// address space that is gone then, so none comes by its translations any more.
pub fn revoked(k: &Kernel, turn: &Turn) {
    if let Some(thread) = k.core().thread() {
        switch(k, thread);
    }
    if CORES > 1 {
        // The last that this event does: nothing looks at what becomes of their contexts.
        running(k)
            .filter(|&(core, thread)| core != k.core_id() && own_root(k, thread).is_none())
            .for_each(|(_, thread)| stall::stop(k, turn, thread));
    }
}

/// The threads that run, with their cores.
fn running(k: &View) -> impl Iterator<Item = (CoreId, Ref<Tcb>)> + '_ {
    CoreId::all().filter_map(|core| Some((core, k.core_of(core).thread()?)))
}
