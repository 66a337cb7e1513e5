//! Untyped memory (ABI 03, section 3).

use sandglass_abi::{invocation, object};

use super::{capability, invoke_unit, Capability, Slot};
use crate::arch::object as paging;
use crate::error::Result;

capability! {
    /// Memory that objects can be made of.
    Untyped
}

/// What to make of untyped memory (ABI 02, sections 1 and 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectType {
    /// 2^n bytes, n from 4 to 47.
    Untyped(u32),
    Tcb,
    Endpoint,
    Notification,
    /// 2^n slots, n at least 1.
    CNode(u32),
    /// 2^n bytes, n at least 7.
    SchedContext(u32),
    Reply,
    Pml4,
    Pdpt,
    PageDirectory,
    PageTable,
    /// 4 KiB frame.
    Page,
    /// 2 MiB frame.
    LargePage,
    /// 1 GiB frame.
    HugePage,
}

impl ObjectType {
    /// Type number and size argument of Retype.
    pub const fn arguments(self) -> (u64, u64) {
        match self {
            Self::Untyped(bits) => (object::UNTYPED, bits as u64),
            Self::Tcb => (object::TCB, 0),
            Self::Endpoint => (object::ENDPOINT, 0),
            Self::Notification => (object::NOTIFICATION, 0),
            Self::CNode(radix) => (object::CNODE, radix as u64),
            Self::SchedContext(bits) => (object::SCHED_CONTEXT, bits as u64),
            Self::Reply => (object::REPLY, 0),
            Self::Pml4 => (paging::PML4, 0),
            Self::Pdpt => (paging::PDPT, 0),
            Self::PageDirectory => (paging::PAGE_DIRECTORY, 0),
            Self::PageTable => (paging::PAGE_TABLE, 0),
            Self::Page => (paging::PAGE, 0),
            Self::LargePage => (paging::LARGE_PAGE, 0),
            Self::HugePage => (paging::HUGE_PAGE, 0),
        }
    }

    /// Size, and alignment, of one such object as log2 bytes.
    pub const fn size_bits(self) -> u32 {
        match self {
            Self::Untyped(bits) | Self::SchedContext(bits) => bits,
            Self::Tcb => object::TCB_BITS,
            Self::Endpoint => object::ENDPOINT_BITS,
            Self::Notification => object::NOTIFICATION_BITS,
            Self::CNode(radix) => radix + object::SLOT_BITS,
            Self::Reply => object::REPLY_BITS,
            Self::Pml4 | Self::Pdpt | Self::PageDirectory | Self::PageTable => {
                object::PAGING_STRUCTURE_BITS
            }
            Self::Page => paging::PAGE_BITS,
            Self::LargePage => paging::LARGE_PAGE_BITS,
            Self::HugePage => paging::HUGE_PAGE_BITS,
        }
    }
}

impl Untyped {
    /// Makes `count` (1 to 256) objects and puts their capabilities into consecutive slots, from
    /// `first` on, of the CNode that `first` lies in.
    ///
    /// # Errors
    /// See ABI 03, section 3; DeleteFirst if a slot is in use, NotEnoughMemory with the bytes left.
    #[inline]
    pub fn retype(self, kind: ObjectType, first: Slot, count: u64) -> Result<()> {
        let (number, size) = kind.arguments();
        // Node depth 0: the CNode is named by its capability.
        let words = [number, size, 0, 0, first.index(), count];
        invoke_unit(
            self.cptr(),
            invocation::UNTYPED_RETYPE,
            words,
            [first.root().cptr()],
        )
    }
}
