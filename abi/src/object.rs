//! Kernel objects: type numbers of Untyped_Retype and sizes (ABI 02, sections 1 and 2).

/// Type numbers that are the same on every architecture (ABI 02, section 1).
pub const UNTYPED: u64 = 0;
pub const TCB: u64 = 1;
pub const ENDPOINT: u64 = 2;
pub const NOTIFICATION: u64 = 3;
pub const CNODE: u64 = 4;
pub const SCHED_CONTEXT: u64 = 5;
pub const REPLY: u64 = 6;

/// Sizes of objects as log2 bytes (ABI 02, section 2).
pub const SLOT_BITS: u32 = 5;
pub const TCB_BITS: u32 = 11;
pub const ENDPOINT_BITS: u32 = 4;
pub const NOTIFICATION_BITS: u32 = 6;
pub const REPLY_BITS: u32 = 5;
pub const MIN_SCHED_CONTEXT_BITS: u32 = 7;
pub const MIN_UNTYPED_BITS: u32 = 4;
/// Largest untyped, and largest object of any kind (ABI 03, section 3).
pub const MAX_UNTYPED_BITS: u32 = 47;
/// Every paging structure of every level.
pub const PAGING_STRUCTURE_BITS: u32 = 12;
/// Made from an untyped of exactly this size by ASIDControl_MakePool (ABI 03, section 8.4).
pub const ASID_POOL_BITS: u32 = 12;
/// Smallest radix of a CNode; its object has `radix + SLOT_BITS` bits.
pub const MIN_CNODE_RADIX: u32 = 1;
/// A size argument of Retype at or above this is out of range for every type (ABI 03, section 3).
pub const SIZE_ARGUMENT_LIMIT: u64 = 64;

/// Capability slots inside a TCB (ABI 02, section 5.3): CSpace root, VSpace root, IPC buffer frame,
/// fault handler, timeout handler.
pub const TCB_SLOTS: usize = 5;

/// x86_64 with huge pages, without VT-x (ABI 02, sections 1 and 2).
pub mod x86_64 {
    use crate::profile::THIS;

    pub const PDPT: u64 = 7;
    pub const PML4: u64 = 8;
    pub const HUGE_PAGE: u64 = 9;
    pub const PAGE: u64 = 10;
    pub const LARGE_PAGE: u64 = 11;
    pub const PAGE_TABLE: u64 = 12;
    pub const PAGE_DIRECTORY: u64 = 13;
    /// With IOMMU support only (ABI 09, section 2.3).
    pub const IO_PAGE_TABLE: u64 = 14;
    /// The first number that is no type.
    pub const FIRST_INVALID: u64 = if THIS.iommu { 15 } else { 14 };

    /// Frame sizes as log2 bytes.
    pub const PAGE_BITS: u32 = 12;
    pub const LARGE_PAGE_BITS: u32 = 21;
    pub const HUGE_PAGE_BITS: u32 = 30;
}

/// aarch64 (ABI 02, sections 1 and 2).
pub mod aarch64 {
    pub const HUGE_PAGE: u64 = 7;
    /// The root table.
    pub const VSPACE: u64 = 8;
    pub const SMALL_PAGE: u64 = 9;
    pub const LARGE_PAGE: u64 = 10;
    /// A table of any level below the root.
    pub const PAGE_TABLE: u64 = 11;
    /// The first number that is no type.
    pub const FIRST_INVALID: u64 = 12;

    /// Frame sizes as log2 bytes.
    pub const SMALL_PAGE_BITS: u32 = 12;
    pub const LARGE_PAGE_BITS: u32 = 21;
    pub const HUGE_PAGE_BITS: u32 = 30;
}
