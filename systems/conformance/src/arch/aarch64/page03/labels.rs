//! 03, section 2: numbers of invocations.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check("03/2/aarch64-labels", labels)];

fn labels(_: &mut Fixture) -> TestResult {
    let labels = [
        arch_label::VSPACE_CLEAN_DATA,
        arch_label::VSPACE_INVALIDATE_DATA,
        arch_label::VSPACE_CLEAN_INVALIDATE_DATA,
        arch_label::VSPACE_UNIFY_INSTRUCTION,
        arch_label::SMC_CALL,
        arch_label::PAGE_TABLE_MAP,
        arch_label::PAGE_TABLE_UNMAP,
        arch_label::PAGE_MAP,
        arch_label::PAGE_UNMAP,
        arch_label::PAGE_CLEAN_DATA,
        arch_label::PAGE_INVALIDATE_DATA,
        arch_label::PAGE_CLEAN_INVALIDATE_DATA,
        arch_label::PAGE_UNIFY_INSTRUCTION,
        arch_label::PAGE_GET_ADDRESS,
        arch_label::ASID_CONTROL_MAKE_POOL,
        arch_label::ASID_POOL_ASSIGN,
        arch_label::IRQ_CONTROL_GET_TRIGGER,
        arch_label::IRQ_CONTROL_ISSUE_SGI_SIGNAL,
    ];
    for (label, number) in labels.into_iter().zip(39..) {
        ensure_eq!(label, number);
    }
    // One number, of kernels for one core and for several.
    let both = arch_label::IRQ_CONTROL_ISSUE_SGI_SIGNAL;
    ensure_eq!(arch_label::IRQ_CONTROL_GET_TRIGGER_CORE, both);
    Ok(())
}
