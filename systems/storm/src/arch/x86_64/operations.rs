//! Invocations that only this architecture has, and its types of objects.

use sandglass::abi::invocation::x86_64::{self, *};
use sandglass::abi::invocation::{
    IRQ_CONTROL_GET, TCB_CONFIGURE_SINGLE_STEPPING, TCB_GET_BREAKPOINT, TCB_SET_BREAKPOINT,
    TCB_UNSET_BREAKPOINT,
};
use sandglass::abi::object::{self, x86_64 as object_x86};
use sandglass::abi::profile::THIS as PROFILE;

use crate::actor::operations::{operation, Operation};
use crate::catalogue::Kind;

/// The last label of the ABI.
pub const LAST_LABEL: u64 = IRQ_CONTROL_GET_MSI;

/// What the ABI has no way to succeed for (ABI 03, section 7.1).
pub const HOPELESS: [u64; 1] = [IRQ_CONTROL_GET];

/// The weight of what only profiles with the hardware-debug API have.
const fn watching(weight: u64) -> u64 {
    if PROFILE.hardware_debug {
        weight
    } else {
        0
    }
}

/// All but IOPortControl_Issue: the storm has no ports but its own.
pub const OPERATIONS: [Operation; 23] = [
    operation(
        TCB_SET_BREAKPOINT,
        "TCB_SetBreakpoint",
        Kind::Tcb,
        watching(8),
    ),
    operation(
        TCB_GET_BREAKPOINT,
        "TCB_GetBreakpoint",
        Kind::Tcb,
        watching(4),
    ),
    operation(
        TCB_UNSET_BREAKPOINT,
        "TCB_UnsetBreakpoint",
        Kind::Tcb,
        watching(6),
    ),
    operation(
        TCB_CONFIGURE_SINGLE_STEPPING,
        "TCB_ConfigureSingleStepping",
        Kind::Tcb,
        watching(6),
    ),
    operation(x86_64::PDPT_MAP, "PDPT_Map", Kind::Pdpt, 10),
    operation(x86_64::PDPT_UNMAP, "PDPT_Unmap", Kind::Pdpt, 5),
    operation(
        x86_64::PAGE_DIRECTORY_MAP,
        "PageDirectory_Map",
        Kind::PageDirectory,
        10,
    ),
    operation(
        x86_64::PAGE_DIRECTORY_UNMAP,
        "PageDirectory_Unmap",
        Kind::PageDirectory,
        5,
    ),
    operation(x86_64::PAGE_TABLE_MAP, "PageTable_Map", Kind::PageTable, 12),
    operation(
        x86_64::PAGE_TABLE_UNMAP,
        "PageTable_Unmap",
        Kind::PageTable,
        5,
    ),
    operation(x86_64::PAGE_MAP, "Page_Map", Kind::Frame, 40),
    operation(x86_64::PAGE_UNMAP, "Page_Unmap", Kind::Frame, 10),
    operation(x86_64::PAGE_GET_ADDRESS, "Page_GetAddress", Kind::Frame, 4),
    operation(
        x86_64::ASID_CONTROL_MAKE_POOL,
        "ASIDControl_MakePool",
        Kind::AsidControl,
        6,
    ),
    operation(
        x86_64::ASID_POOL_ASSIGN,
        "ASIDPool_Assign",
        Kind::AsidPool,
        8,
    ),
    operation(x86_64::IO_PORT_IN8, "IOPort_In8", Kind::IoPort, 3),
    operation(x86_64::IO_PORT_IN16, "IOPort_In16", Kind::IoPort, 3),
    operation(x86_64::IO_PORT_IN32, "IOPort_In32", Kind::IoPort, 3),
    operation(x86_64::IO_PORT_OUT8, "IOPort_Out8", Kind::IoPort, 3),
    operation(x86_64::IO_PORT_OUT16, "IOPort_Out16", Kind::IoPort, 3),
    operation(x86_64::IO_PORT_OUT32, "IOPort_Out32", Kind::IoPort, 3),
    operation(
        x86_64::IRQ_CONTROL_GET_IOAPIC,
        "IRQControl_GetIOAPIC",
        Kind::IrqControl,
        8,
    ),
    operation(
        x86_64::IRQ_CONTROL_GET_MSI,
        "IRQControl_GetMSI",
        Kind::IrqControl,
        8,
    ),
];

/// Object types with their size arguments, what the capability is then believed to be, and how
/// likely.
pub const TYPES: [(u64, u64, Kind, u64); 16] = [
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
    (object_x86::PDPT, 0, Kind::Pdpt, 3),
    (object_x86::PML4, 0, Kind::Pml4, 5),
    (object_x86::PAGE, 0, Kind::Frame, 6),
    (object_x86::LARGE_PAGE, 0, Kind::LargeFrame, 1),
    (object_x86::PAGE_TABLE, 0, Kind::PageTable, 4),
    (object_x86::PAGE_DIRECTORY, 0, Kind::PageDirectory, 3),
];

/// What tables of the four levels below the root are believed to be, from the highest on.
pub const TABLES: [Kind; 3] = [Kind::Pdpt, Kind::PageDirectory, Kind::PageTable];
