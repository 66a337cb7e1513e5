//! 08, section 3: what headers say and the kernel does not do.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("08/3/vectors-end-at-107", vectors),
    check("08/3/user-addresses-end-below-7ffffffff000", user_top),
    check("08/3/levels-without-an-iommu-are-all-ones", iommu_levels),
];

/// GetMSI of this vector, into this slot.
fn get_msi(slot: Slot, vector: u64) -> Invocation {
    let words = [slot.index(), 64, 0, 0, 0, 0, vector];
    let label = arch_label::IRQ_CONTROL_GET_MSI;
    Invocation::new(boot::IRQ_CONTROL, label, &words, &[boot::CNODE.cptr()])
}

fn vectors(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    for vector in [108, 109, 110] {
        get_msi(slot, vector).expect_error(RangeError, &[0, 107])?;
    }
    for vector in [0, 107] {
        get_msi(slot, vector).expect_ok(&[])?;
        slot.delete()?;
    }
    Ok(())
}

fn user_top(f: &mut Fixture) -> TestResult {
    const USER_TOP: u64 = 0x7fff_ffff_f000;
    let (frame, root) = (f.frame(FrameSize::Small)?, f.vspace()?.root());
    let words = [USER_TOP, 3, 0];
    let map = Invocation::new(frame, arch_label::PAGE_MAP, &words, &[root.cptr()]);
    map.expect_error(InvalidArgument, &[0])?;
    // Below it, only the structures are missing.
    let missing = LookupFailureType::MissingCapability as u64;
    map.with_word(0, USER_TOP - 0x1000)
        .expect_error(FailedLookup, &[0, missing, 39])
}

fn iommu_levels(f: &mut Fixture) -> TestResult {
    let without = if PROFILE.iommu { 0 } else { u64::MAX };
    ensure_eq!(f.boot.raw().num_io_pt_levels, without);
    Ok(())
}
