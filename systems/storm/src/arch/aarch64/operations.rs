//! Invocations that only this architecture has, and its types of objects.

use sandglass::abi::invocation::aarch64::{self, *};
use sandglass::abi::object::{self, aarch64 as object_arm};

use crate::actor::operations::{operation, Operation};
use crate::catalogue::Kind;

/// The last label of the ABI.
pub const LAST_LABEL: u64 = IRQ_CONTROL_ISSUE_SGI_SIGNAL;

/// What the ABI has no way to succeed for (ABI 03, section 9.5).
pub const HOPELESS: [u64; 1] = [SMC_CALL];

/// All.
pub const OPERATIONS: [Operation; 18] = [
    operation(
        aarch64::VSPACE_CLEAN_DATA,
        "VSpace_Clean_Data",
        Kind::VSpace,
        4,
    ),
    operation(
        aarch64::VSPACE_INVALIDATE_DATA,
        "VSpace_Invalidate_Data",
        Kind::VSpace,
        4,
    ),
    operation(
        aarch64::VSPACE_CLEAN_INVALIDATE_DATA,
        "VSpace_CleanInvalidate_Data",
        Kind::VSpace,
        4,
    ),
    operation(
        aarch64::VSPACE_UNIFY_INSTRUCTION,
        "VSpace_Unify_Instruction",
        Kind::VSpace,
        4,
    ),
    operation(aarch64::SMC_CALL, "SMC_Call", Kind::Tcb, 1),
    operation(
        aarch64::PAGE_TABLE_MAP,
        "PageTable_Map",
        Kind::PageTable,
        32,
    ),
    operation(
        aarch64::PAGE_TABLE_UNMAP,
        "PageTable_Unmap",
        Kind::PageTable,
        12,
    ),
    operation(aarch64::PAGE_MAP, "Page_Map", Kind::Frame, 40),
    operation(aarch64::PAGE_UNMAP, "Page_Unmap", Kind::Frame, 10),
    operation(aarch64::PAGE_CLEAN_DATA, "Page_Clean_Data", Kind::Frame, 5),
    operation(
        aarch64::PAGE_INVALIDATE_DATA,
        "Page_Invalidate_Data",
        Kind::Frame,
        5,
    ),
    operation(
        aarch64::PAGE_CLEAN_INVALIDATE_DATA,
        "Page_CleanInvalidate_Data",
        Kind::Frame,
        5,
    ),
    operation(
        aarch64::PAGE_UNIFY_INSTRUCTION,
        "Page_Unify_Instruction",
        Kind::Frame,
        5,
    ),
    operation(aarch64::PAGE_GET_ADDRESS, "Page_GetAddress", Kind::Frame, 4),
    operation(
        aarch64::ASID_CONTROL_MAKE_POOL,
        "ASIDControl_MakePool",
        Kind::AsidControl,
        6,
    ),
    operation(
        aarch64::ASID_POOL_ASSIGN,
        "ASIDPool_Assign",
        Kind::AsidPool,
        8,
    ),
    operation(
        aarch64::IRQ_CONTROL_GET_TRIGGER,
        "IRQControl_GetTrigger",
        Kind::IrqControl,
        8,
    ),
    // On several cores it is IRQControl_GetTriggerCore.
    operation(
        aarch64::IRQ_CONTROL_ISSUE_SGI_SIGNAL,
        "IRQControl_IssueSGISignal",
        Kind::IrqControl,
        8,
    ),
];

/// Object types with their size arguments, what the capability is then believed to be, and how
/// likely.
pub const TYPES: [(u64, u64, Kind, u64); 14] = [
    (object::UNTYPED, 12, Kind::PageUntyped, 8),
    (object::UNTYPED, 14, Kind::Untyped, 4),
    (object::TCB, 0, Kind::Tcb, 8),
    (object::ENDPOINT, 0, Kind::Endpoint, 6),
    (object::NOTIFICATION, 0, Kind::Notification, 6),
    (object::CNODE, 2, Kind::OtherNode, 3),
    (object::CNODE, 5, Kind::OtherNode, 3),
    (object::SCHED_CONTEXT, 7, Kind::SchedContext, 4),
    (object::SCHED_CONTEXT, 9, Kind::SchedContext, 3),
    (object::REPLY, 0, Kind::Reply, 6),
    (object_arm::VSPACE, 0, Kind::Pml4, 5),
    (object_arm::SMALL_PAGE, 0, Kind::Frame, 6),
    (object_arm::LARGE_PAGE, 0, Kind::LargeFrame, 1),
    (object_arm::PAGE_TABLE, 0, Kind::PageTable, 10),
];

/// What tables of the levels below the root are believed to be: those of all levels are of one kind.
pub const TABLES: [Kind; 3] = [Kind::PageTable; 3];
