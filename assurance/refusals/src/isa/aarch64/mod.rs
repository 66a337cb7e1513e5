//! aarch64.

pub mod catalogue;
pub mod devices;
pub mod spaces;

use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use sandglass_abi::boot::slot;
pub use sandglass_abi::context::aarch64::COUNT as REGISTERS;
use sandglass_abi::invocation::aarch64::*;
pub use sandglass_abi::invocation::aarch64::{
    ASID_CONTROL_MAKE_POOL, ASID_POOL_ASSIGN, PAGE_GET_ADDRESS, PAGE_MAP, PAGE_TABLE_UNMAP,
    PAGE_UNMAP,
};
use sandglass_abi::invocation::IRQ_CONTROL_GET;
use sandglass_abi::object::aarch64::PAGE_TABLE;
pub use sandglass_abi::object::aarch64::{
    FIRST_INVALID, HUGE_PAGE, LARGE_PAGE, SMALL_PAGE as PAGE, VSPACE as ROOT_TABLE,
};

use crate::scene::Scene;

/// The microseconds in which the clock counts a whole number of ticks.
pub const UNIT_US: u64 = 1000;

/// Tables below the root, from the upper level to the lower, and how they are mapped: all the same.
pub const TABLES: [(u64, u64); 3] = [(PAGE_TABLE, PAGE_TABLE_MAP); 3];

/// The largest label.
pub const LAST_LABEL: u64 = IRQ_CONTROL_ISSUE_SGI_SIGNAL;
/// Labels that nothing understands, between others.
pub const RESERVED_LABELS: [u64; 1] = [SMC_CALL];

/// Whether what is mapped can be maintained in caches: the scene has pages for that.
pub const HAS_CACHES: bool = true;

/// The interrupt of the scene's handler.
const IRQ: u64 = 35;

/// Capabilities that cannot be copied, besides IRQ control.
pub const NOT_COPIED: [u64; 0] = [];

/// How IRQ control is asked for the scene's handler, to be put into `slot`.
pub fn get_irq(slot: u64) -> (u64, [u64; 4]) {
    (IRQ_CONTROL_GET_TRIGGER, [IRQ, 0, slot, 64])
}

/// The scene's device is the signal of an interrupt, and where cores need all of these, another handler: how it is issued
/// into `slot`, by which capability.
pub fn get_device(slot: u64, is_for_several_cores: bool) -> (u64, u64, [u64; 4]) {
    if is_for_several_cores {
        let words = [IRQ + 1, 0, slot, 64];
        return (slot::IRQ_CONTROL, IRQ_CONTROL_GET_TRIGGER, words);
    }
    let words = [3, 0, slot, 64];
    (slot::IRQ_CONTROL, IRQ_CONTROL_ISSUE_SGI_SIGNAL, words)
}

/// Capabilities of this architecture's, and the labels that they understand. The signal of an interrupt understands all.
pub fn kinds(s: &Scene) -> Vec<(u64, Vec<RangeInclusive<u64>>)> {
    let caches = || vec![VSPACE_CLEAN_DATA..=VSPACE_UNIFY_INSTRUCTION];
    vec![
        (
            slot::IRQ_CONTROL,
            vec![
                IRQ_CONTROL_GET..=IRQ_CONTROL_GET,
                IRQ_CONTROL_GET_TRIGGER..=IRQ_CONTROL_ISSUE_SGI_SIGNAL,
            ],
        ),
        (s.space, caches()),
        (s.unassigned_space, caches()),
        (s.tables[0], vec![PAGE_TABLE_MAP..=PAGE_TABLE_UNMAP]),
        (s.free_tables[0], vec![PAGE_TABLE_MAP..=PAGE_TABLE_UNMAP]),
        (s.frame, vec![PAGE_MAP..=PAGE_GET_ADDRESS]),
    ]
}

/// Checks that nothing can fail at in this configuration, and why.
pub const OUT_OF_REACH: [(u64, &str, &str); 1] = [(
    PAGE_TABLE_UNMAP,
    "a parent that refers to another table",
    "no error: it is left alone",
)];

/// Checks, the first of which is only made of what passes the second: they cannot fail both.
pub const EXCLUSIVE: [(u64, &str, &str); 0] = [];
