//! Invocation labels (ABI 03, section 2), for kernels without the hardware-debug API.

/// Label 0, which no object understands.
pub const INVALID: u64 = 0;

pub const UNTYPED_RETYPE: u64 = 1;

pub const TCB_READ_REGISTERS: u64 = 2;
pub const TCB_WRITE_REGISTERS: u64 = 3;
pub const TCB_COPY_REGISTERS: u64 = 4;
pub const TCB_CONFIGURE: u64 = 5;
pub const TCB_SET_PRIORITY: u64 = 6;
pub const TCB_SET_MC_PRIORITY: u64 = 7;
pub const TCB_SET_SCHED_PARAMS: u64 = 8;
pub const TCB_SET_TIMEOUT_ENDPOINT: u64 = 9;
pub const TCB_SET_IPC_BUFFER: u64 = 10;
pub const TCB_SET_SPACE: u64 = 11;
pub const TCB_SUSPEND: u64 = 12;
pub const TCB_RESUME: u64 = 13;
pub const TCB_BIND_NOTIFICATION: u64 = 14;
pub const TCB_UNBIND_NOTIFICATION: u64 = 15;
pub const TCB_SET_TLS_BASE: u64 = 16;
pub const TCB_SET_FLAGS: u64 = 17;

pub const CNODE_REVOKE: u64 = 18;
pub const CNODE_DELETE: u64 = 19;
pub const CNODE_CANCEL_BADGED_SENDS: u64 = 20;
pub const CNODE_COPY: u64 = 21;
pub const CNODE_MINT: u64 = 22;
pub const CNODE_MOVE: u64 = 23;
pub const CNODE_MUTATE: u64 = 24;
pub const CNODE_ROTATE: u64 = 25;

pub const IRQ_CONTROL_GET: u64 = 26;
pub const IRQ_HANDLER_ACK: u64 = 27;
pub const IRQ_HANDLER_SET_NOTIFICATION: u64 = 28;
pub const IRQ_HANDLER_CLEAR: u64 = 29;

pub const DOMAIN_SET: u64 = 30;
pub const DOMAIN_SCHEDULE_CONFIGURE: u64 = 31;
pub const DOMAIN_SCHEDULE_SET_START: u64 = 32;

pub const SCHED_CONTROL_CONFIGURE_FLAGS: u64 = 33;

pub const SCHED_CONTEXT_BIND: u64 = 34;
pub const SCHED_CONTEXT_UNBIND: u64 = 35;
pub const SCHED_CONTEXT_UNBIND_OBJECT: u64 = 36;
pub const SCHED_CONTEXT_CONSUMED: u64 = 37;
pub const SCHED_CONTEXT_YIELD_TO: u64 = 38;

/// Labels of Sandglass, outside those of the ABI: a kernel without them answers IllegalOperation, as to
/// every label that it does not know (ABI 03, section 1). A new one takes the next number; none is used again.
pub mod extension {
    /// As CNODE_MINT, of an endpoint capability: the new one can be called, and not sent to
    /// (decision *calls only*).
    pub const CNODE_MINT_CALL: u64 = 0x5a6c_0000;

    /// All of them, with their names.
    pub const ALL: [(u64, &str); 1] = [(CNODE_MINT_CALL, "CNode_MintCall")];
}

/// Flag bits of the first word of TCB_ReadRegisters, WriteRegisters and CopyRegisters
/// (ABI 03, sections 4.1 to 4.3).
pub mod registers_flags {
    pub const READ_SUSPEND_SOURCE: u64 = 1 << 0;
    pub const WRITE_RESUME_TARGET: u64 = 1 << 0;
    pub const COPY_SUSPEND_SOURCE: u64 = 1 << 0;
    pub const COPY_RESUME_TARGET: u64 = 1 << 1;
    pub const COPY_TRANSFER_FRAME: u64 = 1 << 2;
    pub const COPY_TRANSFER_INTEGER: u64 = 1 << 3;
}

/// Thread flags of TCB_SetFlags (ABI 03, section 4.13).
pub mod tcb_flags {
    /// The thread may not use the FPU (ABI 07, section 4).
    pub const FPU_DISABLED: u64 = 1 << 0;
    /// Every flag that exists; others are ignored.
    pub const ALL: u64 = FPU_DISABLED;
}

/// Labels of the x86_64 profile: huge pages, no IOMMU, no VT-x; identical with several cores.
pub mod x86_64 {
    pub const PDPT_MAP: u64 = 39;
    pub const PDPT_UNMAP: u64 = 40;
    pub const PAGE_DIRECTORY_MAP: u64 = 41;
    pub const PAGE_DIRECTORY_UNMAP: u64 = 42;
    pub const PAGE_TABLE_MAP: u64 = 43;
    pub const PAGE_TABLE_UNMAP: u64 = 44;
    pub const PAGE_MAP: u64 = 45;
    pub const PAGE_UNMAP: u64 = 46;
    pub const PAGE_GET_ADDRESS: u64 = 47;
    pub const ASID_CONTROL_MAKE_POOL: u64 = 48;
    pub const ASID_POOL_ASSIGN: u64 = 49;
    pub const IO_PORT_CONTROL_ISSUE: u64 = 50;
    pub const IO_PORT_IN8: u64 = 51;
    pub const IO_PORT_IN16: u64 = 52;
    pub const IO_PORT_IN32: u64 = 53;
    pub const IO_PORT_OUT8: u64 = 54;
    pub const IO_PORT_OUT16: u64 = 55;
    pub const IO_PORT_OUT32: u64 = 56;
    pub const IRQ_CONTROL_GET_IOAPIC: u64 = 57;
    pub const IRQ_CONTROL_GET_MSI: u64 = 58;
}

/// Labels of the aarch64 profile: kernel in EL1, no SMMU, no hardware-debug API.
pub mod aarch64 {
    pub const VSPACE_CLEAN_DATA: u64 = 39;
    pub const VSPACE_INVALIDATE_DATA: u64 = 40;
    pub const VSPACE_CLEAN_INVALIDATE_DATA: u64 = 41;
    pub const VSPACE_UNIFY_INSTRUCTION: u64 = 42;
    /// Reserved: there are no SMC capabilities in the profile.
    pub const SMC_CALL: u64 = 43;
    pub const PAGE_TABLE_MAP: u64 = 44;
    pub const PAGE_TABLE_UNMAP: u64 = 45;
    pub const PAGE_MAP: u64 = 46;
    pub const PAGE_UNMAP: u64 = 47;
    pub const PAGE_CLEAN_DATA: u64 = 48;
    pub const PAGE_INVALIDATE_DATA: u64 = 49;
    pub const PAGE_CLEAN_INVALIDATE_DATA: u64 = 50;
    pub const PAGE_UNIFY_INSTRUCTION: u64 = 51;
    pub const PAGE_GET_ADDRESS: u64 = 52;
    pub const ASID_CONTROL_MAKE_POOL: u64 = 53;
    pub const ASID_POOL_ASSIGN: u64 = 54;
    pub const IRQ_CONTROL_GET_TRIGGER: u64 = 55;
    /// One core only.
    pub const IRQ_CONTROL_ISSUE_SGI_SIGNAL: u64 = 56;
    /// Several cores only: the same number.
    pub const IRQ_CONTROL_GET_TRIGGER_CORE: u64 = 56;
}
