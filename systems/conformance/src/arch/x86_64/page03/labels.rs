//! 03, section 2: numbers of invocations.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check("03/2/x86-labels", x86_labels)];

fn x86_labels(_: &mut Fixture) -> TestResult {
    let labels = [
        arch_label::PDPT_MAP,
        arch_label::PDPT_UNMAP,
        arch_label::PAGE_DIRECTORY_MAP,
        arch_label::PAGE_DIRECTORY_UNMAP,
        arch_label::PAGE_TABLE_MAP,
        arch_label::PAGE_TABLE_UNMAP,
        arch_label::PAGE_MAP,
        arch_label::PAGE_UNMAP,
        arch_label::PAGE_GET_ADDRESS,
        arch_label::ASID_CONTROL_MAKE_POOL,
        arch_label::ASID_POOL_ASSIGN,
        arch_label::IO_PORT_CONTROL_ISSUE,
        arch_label::IO_PORT_IN8,
        arch_label::IO_PORT_IN16,
        arch_label::IO_PORT_IN32,
        arch_label::IO_PORT_OUT8,
        arch_label::IO_PORT_OUT16,
        arch_label::IO_PORT_OUT32,
        arch_label::IRQ_CONTROL_GET_IOAPIC,
        arch_label::IRQ_CONTROL_GET_MSI,
    ];
    // The debug API inserts four before all of these; support for an IOMMU two before Page_Map, and one behind
    // Page_Unmap.
    let first = if PROFILE.hardware_debug { 43 } else { 39 };
    for (label, place) in labels.into_iter().zip(0..) {
        let iommu = match place {
            _ if !PROFILE.iommu => 0,
            0..=5 => 0,
            6..=7 => 2,
            _ => 3,
        };
        ensure_eq!(label, first + place + iommu);
    }
    Ok(())
}
