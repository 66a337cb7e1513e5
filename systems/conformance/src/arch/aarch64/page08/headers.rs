//! 08, section 3: what headers say and the kernel does not do.

use crate::page03::levels::{LEVELS, VADDR};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("08/3/user-addresses-end-with-7fffffffffff", user_top),
    check(
        "08/3/page-tables-ignore-their-attributes",
        ignored_attributes,
    ),
    check(
        "08/3/a-core-that-there-is-not-is-an-invalid-argument",
        bad_core,
    ),
    check("08/3/there-are-no-levels-of-an-iommu", iommu_levels),
];

/// The constant is the last address that a program has.
fn user_top(f: &mut Fixture) -> TestResult {
    const USER_TOP: u64 = 0x7fff_ffff_ffff;
    let (frame, root) = (f.frame(FrameSize::Small)?, f.vspace()?.root());
    let words = [USER_TOP + 1, 3, 3];
    let map = Invocation::new(frame, arch_label::PAGE_MAP, &words, &[root.cptr()]);
    map.expect_error(InvalidArgument, &[0])?;
    // Up to it, only the structures are missing.
    let missing = LookupFailureType::MissingCapability as u64;
    map.with_word(0, USER_TOP & !0xfff)
        .expect_error(FailedLookup, &[0, missing, 39])
}

fn ignored_attributes(f: &mut Fixture) -> TestResult {
    for attributes in [0, 1, 7, 1 << 32, u64::MAX] {
        let root = f.vspace()?.root();
        let table: CPtr = f.make(LEVELS[0].kind)?;
        let words = [VADDR, attributes];
        Invocation::new(table, arch_label::PAGE_TABLE_MAP, &words, &[root.cptr()]).expect_ok(&[])?;
    }
    Ok(())
}

fn bad_core(f: &mut Fixture) -> TestResult {
    if !f.is_for_several_cores() {
        return Err(Failure::skip(
            "GetTriggerCore is of kernels for several cores",
        ));
    }
    let slot = f.empty_slot()?;
    let words = [100, 0, slot.index(), 64, 4];
    let label = arch_label::IRQ_CONTROL_GET_TRIGGER_CORE;
    let get = Invocation::new(boot::IRQ_CONTROL, label, &words, &[boot::CNODE.cptr()]);
    ensure_eq!(get.call().label, InvalidArgument as u64);
    get.with_word(4, 0).expect_ok(&[])
}

fn iommu_levels(f: &mut Fixture) -> TestResult {
    ensure_eq!(f.boot.raw().num_io_pt_levels, 0);
    Ok(())
}
