//! CNodes and the slots in them (ABI 02, section 6).

use sandglass_abi::cnode::LOOKUP_DEPTH;
use sandglass_abi::invocation;

use super::{capability, invoke_unit, CPtr, Capability, GuardData, Rights};
use crate::error::Result;

capability! {
    /// A table of capability slots.
    CNode
}

/// A slot: `index`, resolved with `depth` bits from the CNode `root`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    root: CNode,
    index: u64,
    depth: u8,
}

/// The data words of [`Slot::rotate`] (ABI 02, section 6): guards of CNode capabilities, else ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RotateData {
    pub pivot: GuardData,
    pub source: GuardData,
}

impl CNode {
    /// Slot `index` of a CNode whose guard makes all 64 bits of an address count: the root CNode
    /// of a CSpace, where `index` is the capability pointer.
    #[inline(always)]
    pub const fn slot(self, index: u64) -> Slot {
        self.slot_at(index, LOOKUP_DEPTH as u8)
    }

    /// Slot `index`, resolved with `depth` bits: the radix for a CNode fresh from Retype.
    #[inline(always)]
    pub const fn slot_at(self, index: u64, depth: u8) -> Slot {
        Slot {
            root: self,
            index,
            depth,
        }
    }
}

impl Slot {
    #[inline(always)]
    pub const fn root(self) -> CNode {
        self.root
    }

    #[inline(always)]
    pub const fn index(self) -> u64 {
        self.index
    }

    #[inline(always)]
    pub const fn depth(self) -> u8 {
        self.depth
    }

    /// Copies the capability in `source` here, with at most the rights given.
    #[inline]
    pub fn copy_from(self, source: Slot, rights: Rights) -> Result<()> {
        let words = [
            self.index,
            self.depth_word(),
            source.index,
            source.depth_word(),
            rights.raw(),
        ];
        self.operate_from(invocation::CNODE_COPY, words, source)
    }

    /// Copies the capability in `source` here, with at most the rights given and with `data`: the
    /// badge of an endpoint or notification (the source must be unbadged), the
    /// [guard](GuardData) of a CNode, and otherwise ignored.
    #[inline]
    pub fn mint_from(self, source: Slot, rights: Rights, data: u64) -> Result<()> {
        let words = [
            self.index,
            self.depth_word(),
            source.index,
            source.depth_word(),
            rights.raw(),
            data,
        ];
        self.operate_from(invocation::CNODE_MINT, words, source)
    }

    /// As [`Slot::mint_from`], of an endpoint capability: the new one can be called, and not sent to, so that
    /// nothing but calls comes through it. Its receiver can be a passive server whose clients are not
    /// trusted.
    ///
    /// # Errors
    /// IllegalOperation also for another object than an endpoint, and on a kernel other than Sandglass.
    #[inline]
    pub fn mint_call_from(self, source: Slot, rights: Rights, badge: u64) -> Result<()> {
        let words = [
            self.index,
            self.depth_word(),
            source.index,
            source.depth_word(),
            rights.raw(),
            badge,
        ];
        self.operate_from(invocation::extension::CNODE_MINT_CALL, words, source)
    }

    /// Moves the capability in `source` here.
    #[inline]
    pub fn move_from(self, source: Slot) -> Result<()> {
        let words = [
            self.index,
            self.depth_word(),
            source.index,
            source.depth_word(),
        ];
        self.operate_from(invocation::CNODE_MOVE, words, source)
    }

    /// Moves the CNode capability in `source` here and gives it a new guard.
    #[inline]
    pub fn mutate_from(self, source: Slot, guard: GuardData) -> Result<()> {
        let words = [
            self.index,
            self.depth_word(),
            source.index,
            source.depth_word(),
            guard.raw(),
        ];
        self.operate_from(invocation::CNODE_MUTATE, words, source)
    }

    /// Moves the capability in `pivot` here and the one in `source` to `pivot`; if `source` is
    /// this slot, the two change places.
    #[inline]
    pub fn rotate(self, pivot: Slot, source: Slot, data: RotateData) -> Result<()> {
        let words = [
            self.index,
            self.depth_word(),
            data.pivot.raw(),
            pivot.index,
            pivot.depth_word(),
            data.source.raw(),
            source.index,
            source.depth_word(),
        ];
        let caps = [pivot.root.cptr(), source.root.cptr()];
        invoke_unit(self.root.cptr(), invocation::CNODE_ROTATE, words, caps)
    }

    /// Deletes the capability; succeeds on an empty slot. The last capability of an object
    /// destroys the object.
    #[inline]
    pub fn delete(self) -> Result<()> {
        self.operate(invocation::CNODE_DELETE)
    }

    /// Deletes every capability derived from this one, not the capability itself.
    #[inline]
    pub fn revoke(self) -> Result<()> {
        self.operate(invocation::CNODE_REVOKE)
    }

    /// Restarts every sender that waits at this endpoint with this capability's badge.
    #[inline]
    pub fn cancel_badged_sends(self) -> Result<()> {
        self.operate(invocation::CNODE_CANCEL_BADGED_SENDS)
    }

    /// The capability in this slot, where the slot's root is the current CSpace's root.
    #[inline(always)]
    pub fn capability<C: Capability>(self) -> C {
        C::from_cptr(CPtr::new(self.index))
    }

    #[inline(always)]
    const fn depth_word(self) -> u64 {
        self.depth as u64
    }

    #[inline(always)]
    fn operate(self, label: u64) -> Result<()> {
        invoke_unit(self.root.cptr(), label, [self.index, self.depth_word()], [])
    }

    #[inline(always)]
    fn operate_from<const W: usize>(self, label: u64, words: [u64; W], source: Slot) -> Result<()> {
        invoke_unit(self.root.cptr(), label, words, [source.root.cptr()])
    }
}
