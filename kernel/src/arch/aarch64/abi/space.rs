//! Address spaces: from an identifier to its root table, and the walk through the levels
//! (03, section 9; 07, sections 6 to 8).

use sandglass_abi::vspace::aarch64::USER_TOP;

use super::object::paging::VSpace;
use super::object::table::Table;
use super::Space;
use crate::arch::abi::pte::Level;
use crate::arch::spaces::{self, running};
use crate::cores::CORES;
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

/// The address space of `thread`, unless that is gone or never was.
#[inline(always)]
pub fn own(k: &View, thread: Ref<Tcb>) -> Option<Space> {
    let cap = objects::tcb_slot(thread, TcbSlot::VSpace).at(k).cap();
    let (asid, root) = (cap.root_asid()?, cap.root()?);
    let pool = k.arch.asids.pool(asid)?;
    pool.at(k)
        .names(asid, root)
        .then(|| Space::new(root.address(), asid))
}

/// Some address space may have lost its translation: what runs may have lost its own. No core that runs a thread is in an
/// address space that is gone then, so none comes by its translations any more.
pub fn revoked(k: &Kernel, turn: &Turn) {
    spaces::forget(k);
    if CORES > 1 {
        // The last that this event does: nothing looks at what becomes of their contexts.
        running(k)
            .filter(|&(core, thread)| core != k.core_id() && own(k, thread).is_none())
            .for_each(|(_, thread)| stall::stop(k, turn, thread));
    }
}
