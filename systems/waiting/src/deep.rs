//! A deep capability space: every address leads through eight CNodes.

use sandglass::cap::{CNode, Capability, GuardData, Rights, Tcb};
use sandglass::{Process, SetupError};

/// Depth, and bits of an address that each CNode decodes.
const LEVELS: u32 = 8;
const BITS: u32 = 64 / LEVELS;
/// log2 of the slots of the last one. Those before have two slots, of which the second leads on.
const LEAF_BITS: u32 = 3;
/// What an address begins with: the second slot of every CNode on the way.
const STEM: u64 = 0x0101_0101_0101_0100;

pub struct Space {
    root: CNode,
    guard: GuardData,
    last: CNode,
}

impl Space {
    pub fn new(process: &mut Process) -> Result<Self, SetupError> {
        let resources = &mut process.resources;
        let last = resources.cnode(LEAF_BITS)?;
        let (mut root, mut guard) = (last, GuardData::new(0, BITS - LEAF_BITS));
        for _ in 1..LEVELS {
            let above = resources.cnode(1)?;
            let below = resources.slot_of(root);
            above
                .slot_at(1, 1)
                .mint_from(below, Rights::ALL, guard.raw())?;
            (root, guard) = (above, GuardData::new(0, BITS - 1));
        }
        Ok(Self { root, guard, last })
    }

    /// Puts a copy of `cap`, of this task, into leaf `leaf`; returns what it is called there.
    pub fn put<C: Capability>(
        &self,
        process: &Process,
        leaf: u64,
        cap: C,
    ) -> Result<C, SetupError> {
        let from = process.resources.slot_of(cap);
        let slot = self.last.slot_at(leaf, LEAF_BITS as u8);
        slot.copy_from(from, Rights::ALL)?;
        Ok(C::from_cptr(sandglass::cap::CPtr::new(STEM | leaf)))
    }

    /// `thread` lives here.
    pub fn settle(&self, process: &Process, thread: Tcb) -> Result<(), SetupError> {
        let vspace = process.space.vspace().root();
        Ok(thread.set_space(None, self.root, self.guard, vspace)?)
    }
}
