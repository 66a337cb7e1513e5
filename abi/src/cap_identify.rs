//! What DebugCapIdentify answers (ABI 01, section 7): the kind of a capability; 0 also when the lookup
//! fails. Odd numbers are capabilities of the architecture.

pub const NULL: u64 = 0;
pub const UNTYPED: u64 = 2;
pub const ENDPOINT: u64 = 4;
pub const NOTIFICATION: u64 = 6;
pub const REPLY: u64 = 8;
pub const CNODE: u64 = 10;
pub const TCB: u64 = 12;
pub const IRQ_CONTROL: u64 = 14;
pub const IRQ_HANDLER: u64 = 16;
pub const ZOMBIE: u64 = 18;
pub const DOMAIN: u64 = 20;
pub const SCHED_CONTEXT: u64 = 22;
pub const SCHED_CONTROL: u64 = 24;

pub mod x86_64 {
    pub const FRAME: u64 = 1;
    pub const PAGE_TABLE: u64 = 3;
    pub const PAGE_DIRECTORY: u64 = 5;
    pub const PDPT: u64 = 7;
    pub const PML4: u64 = 9;
    pub const ASID_CONTROL: u64 = 11;
    pub const ASID_POOL: u64 = 13;
    /// With IOMMU support only (ABI 09, section 2.3).
    pub const IO_PAGE_TABLE: u64 = 17;
    pub const IO_PORT: u64 = 19;
    pub const IO_PORT_CONTROL: u64 = 31;
}

pub mod aarch64 {
    pub const FRAME: u64 = 1;
    /// Of whatever level.
    pub const PAGE_TABLE: u64 = 3;
    pub const VSPACE: u64 = 9;
    pub const ASID_CONTROL: u64 = 11;
    pub const ASID_POOL: u64 = 13;
    /// One core only.
    pub const SGI_SIGNAL: u64 = 27;
}
