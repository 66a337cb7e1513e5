//! x86_64.

pub mod catalogue;
pub mod devices;
pub mod spaces;

use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use sandglass_abi::boot::slot;
pub use sandglass_abi::context::x86_64::COUNT as REGISTERS;
use sandglass_abi::invocation::x86_64::*;
pub use sandglass_abi::invocation::x86_64::{
    ASID_CONTROL_MAKE_POOL, ASID_POOL_ASSIGN, PAGE_GET_ADDRESS, PAGE_MAP, PAGE_TABLE_UNMAP,
    PAGE_UNMAP,
};
use sandglass_abi::invocation::IRQ_CONTROL_GET;
pub use sandglass_abi::object::x86_64::{FIRST_INVALID, HUGE_PAGE, LARGE_PAGE, PAGE};
use sandglass_abi::object::x86_64::{PAGE_DIRECTORY, PAGE_TABLE, PDPT, PML4};

use crate::scene::Scene;

/// The microseconds in which the clock counts a whole number of ticks.
pub const UNIT_US: u64 = 1;

pub const ROOT_TABLE: u64 = PML4;
/// Tables below the root, from the upper level to the lower, and how they are mapped.
pub const TABLES: [(u64, u64); 3] = [
    (PDPT, PDPT_MAP),
    (PAGE_DIRECTORY, PAGE_DIRECTORY_MAP),
    (PAGE_TABLE, PAGE_TABLE_MAP),
];

/// The largest label.
pub const LAST_LABEL: u64 = IRQ_CONTROL_GET_MSI;
/// Labels that nothing understands, between others.
pub const RESERVED_LABELS: [u64; 0] = [];

/// Whether what is mapped can be maintained in caches: the scene has pages for that.
pub const HAS_CACHES: bool = false;

/// Capabilities that cannot be copied, besides IRQ control.
pub const NOT_COPIED: [u64; 1] = [slot::IO_PORT_CONTROL];

/// How IRQ control is asked for the scene's handler, to be put into `slot`.
pub fn get_irq(slot: u64) -> (u64, [u64; 7]) {
    (IRQ_CONTROL_GET_IOAPIC, [slot, 64, 0, 3, 0, 0, 3])
}

/// The scene's device is some ports: how they are issued into `slot`, by which capability.
pub fn get_device(slot: u64, _is_for_several_cores: bool) -> (u64, u64, [u64; 4]) {
    let words = [0x100, 0x107, slot, 64];
    (slot::IO_PORT_CONTROL, IO_PORT_CONTROL_ISSUE, words)
}

/// Capabilities of this architecture's, and the labels that they understand.
pub fn kinds(s: &Scene) -> Vec<(u64, Vec<RangeInclusive<u64>>)> {
    let one = |label: u64| vec![label..=label];
    vec![
        (
            slot::IRQ_CONTROL,
            vec![
                IRQ_CONTROL_GET..=IRQ_CONTROL_GET,
                IRQ_CONTROL_GET_IOAPIC..=IRQ_CONTROL_GET_MSI,
            ],
        ),
        (s.space, vec![]),
        (s.unassigned_space, vec![]),
        (s.tables[0], vec![PDPT_MAP..=PDPT_UNMAP]),
        (s.tables[1], vec![PAGE_DIRECTORY_MAP..=PAGE_DIRECTORY_UNMAP]),
        (s.tables[2], vec![PAGE_TABLE_MAP..=PAGE_TABLE_UNMAP]),
        (s.frame, vec![PAGE_MAP..=PAGE_GET_ADDRESS]),
        (slot::IO_PORT_CONTROL, one(IO_PORT_CONTROL_ISSUE)),
        (s.device, vec![IO_PORT_IN8..=IO_PORT_OUT32]),
    ]
}

/// Checks that nothing can fail at in this configuration, and why.
pub const OUT_OF_REACH: [(u64, &str, &str); 3] = [
    (IRQ_CONTROL_GET_IOAPIC, "no I/O APIC", "the machine has one"),
    (
        PAGE_MAP,
        "mapped as something else than a page",
        "there is no IOMMU",
    ),
    (
        PAGE_TABLE_UNMAP,
        "a parent that refers to another table",
        "no error: it is left alone",
    ),
];

/// Checks, the first of which is only made of what passes the second: they cannot fail both.
pub const EXCLUSIVE: [(u64, &str, &str); 1] = [(PAGE_MAP, "mapped ", "space: ")];
