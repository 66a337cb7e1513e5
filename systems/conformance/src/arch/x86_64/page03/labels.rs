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
    for (label, number) in labels.into_iter().zip(39..) {
        ensure_eq!(label, number);
    }
    Ok(())
}
