//! Frames, paging structures and address space identifiers (ABI 03, sections 8 and 9). The structures have the names of
//! x86_64. On aarch64 the root is a VSpace, and all others are PageTables, each of which takes the first place that is
//! missing.

use super::{capability, invoke, invoke_unit, Capability, ObjectType, Rights, Slot, Untyped};
use crate::arch::vspace::attributes;
use crate::arch::{label, object};
use crate::error::Result;

capability! {
    /// A frame of memory, of any size.
    Frame
}
capability! {
    /// The root of an address space.
    Pml4
}
capability! {
    /// Third-level paging structure, covering 512 GiB.
    Pdpt
}
capability! {
    /// Second-level paging structure, covering 1 GiB.
    PageDirectory
}
capability! {
    /// First-level paging structure, covering 2 MiB.
    PageTable
}
capability! {
    /// Authority to make pools of address space identifiers.
    AsidControl
}
capability! {
    /// Address space identifiers, one of which every address space needs.
    AsidPool
}

/// Sizes of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
    /// 1 GiB.
    Huge,
}

impl FrameSize {
    /// Log2 bytes.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Small => object::PAGE_BITS,
            Self::Large => object::LARGE_PAGE_BITS,
            Self::Huge => object::HUGE_PAGE_BITS,
        }
    }

    /// Bytes.
    pub const fn bytes(self) -> u64 {
        1 << self.bits()
    }

    pub const fn object_type(self) -> ObjectType {
        match self {
            Self::Small => ObjectType::Page,
            Self::Large => ObjectType::LargePage,
            Self::Huge => ObjectType::HugePage,
        }
    }
}

/// How a mapping is cached (ABI 07, section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attributes {
    #[default]
    WriteBack,
    WriteThrough,
    Uncached,
    WriteCombining,
}

impl Attributes {
    pub const fn raw(self) -> u64 {
        match self {
            Self::WriteBack => attributes::WRITE_BACK,
            Self::WriteThrough => attributes::WRITE_THROUGH,
            Self::Uncached => attributes::UNCACHED,
            Self::WriteCombining => attributes::WRITE_COMBINING,
        }
    }
}

impl Frame {
    /// Maps at `vaddr`, which must be aligned to the frame's size, or changes the rights and
    /// attributes of the mapping that this capability has there. An existing mapping of another
    /// frame at `vaddr` is replaced. A frame *capability* has at most one mapping; copies have
    /// their own.
    ///
    /// # Errors
    /// FailedLookup with MissingCapability 39, 30 or 21 if a paging structure is missing.
    #[inline]
    pub fn map(
        self,
        vspace: Pml4,
        vaddr: u64,
        rights: Rights,
        attributes: Attributes,
    ) -> Result<()> {
        let words = [vaddr, rights.raw(), attributes.raw()];
        invoke_unit(self.cptr(), label::PAGE_MAP, words, [vspace.cptr()])
    }

    /// Undoes the mapping of this capability, if any.
    #[inline]
    pub fn unmap(self) -> Result<()> {
        invoke_unit(self.cptr(), label::PAGE_UNMAP, [], [])
    }

    /// Lets the bytes from `start` to `end` of a frame that is mapped be executed as they are now. On aarch64 only.
    #[inline]
    pub fn unify_instructions(self, start: u64, end: u64) -> Result<()> {
        let words = [start, end];
        invoke_unit(self.cptr(), label::PAGE_UNIFY_INSTRUCTION, words, [])
    }

    /// Physical address of its first byte.
    #[inline]
    pub fn physical_address(self) -> Result<u64> {
        invoke(self.cptr(), label::PAGE_GET_ADDRESS, [], []).map(|m| m.word(0))
    }
}

macro_rules! paging_structure {
    ($name:ident, $map:expr, $unmap:expr) => {
        impl $name {
            /// Installs the structure for the addresses around `vaddr`.
            ///
            /// # Errors
            /// FailedLookup if the next higher structure is missing, DeleteFirst if there is one
            /// already.
            #[inline]
            pub fn map(self, vspace: Pml4, vaddr: u64, attributes: Attributes) -> Result<()> {
                invoke_unit(
                    self.cptr(),
                    $map,
                    [vaddr, attributes.raw()],
                    [vspace.cptr()],
                )
            }

            /// Removes the structure and clears it.
            ///
            /// # Errors
            /// RevokeFirst if there are other capabilities to it.
            #[inline]
            pub fn unmap(self) -> Result<()> {
                invoke_unit(self.cptr(), $unmap, [], [])
            }
        }
    };
}
paging_structure!(Pdpt, label::PDPT_MAP, label::PDPT_UNMAP);
paging_structure!(
    PageDirectory,
    label::PAGE_DIRECTORY_MAP,
    label::PAGE_DIRECTORY_UNMAP
);
paging_structure!(PageTable, label::PAGE_TABLE_MAP, label::PAGE_TABLE_UNMAP);

impl AsidControl {
    /// Makes a pool of an untyped of exactly 4 KiB and puts its capability into `destination`.
    #[inline]
    pub fn make_pool(self, untyped: Untyped, destination: Slot) -> Result<()> {
        let words = [destination.index(), u64::from(destination.depth())];
        let caps = [untyped.cptr(), destination.root().cptr()];
        invoke_unit(self.cptr(), label::ASID_CONTROL_MAKE_POOL, words, caps)
    }
}

impl AsidPool {
    /// Gives an identifier to the address space of `vspace`, in the slot that this names.
    #[inline]
    pub fn assign(self, vspace: Pml4) -> Result<()> {
        invoke_unit(self.cptr(), label::ASID_POOL_ASSIGN, [], [vspace.cptr()])
    }
}
