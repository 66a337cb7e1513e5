//! 03, sections 8.4 and 8.5: ASIDControl_MakePool and ASIDPool_Assign.

use crate::prelude::*;

use super::common::{
    destination_refused, refuses_other_labels, truncated, works_in_first_phase,
    works_without_answer, Destination,
};
use super::stale::pool;

pub const CHECKS: &[Check] = &[
    check("03/8.4/1-other-labels", control_labels),
    check("03/8.4/2-truncated", make_truncated),
    check("03/8.4/3-eight-pools", make_eight),
    check("03/8.4/4-and-5-untypeds-refused", make_untypeds),
    check("03/8.4/6-destinations", make_destinations),
    check("03/8.4/the-untyped-is-used-up", make_effect),
    check("03/8.4/by-send-and-in-a-first-phase", make_without_answer),
    check("03/8.5/1-other-labels", pool_labels),
    check("03/8.5/2-truncated", assign_truncated),
    check("03/8.5/3-roots-refused", assign_refused),
    check("03/8.5/512-identifiers", assign_all),
    check("03/8.5/the-root-can-be-used", assign_effect),
    check("03/8.5/by-send-and-in-a-first-phase", assign_without_answer),
];

const AT: Destination = Destination {
    index: 0,
    depth: 1,
    root: 1,
};

/// MakePool of a fresh untyped into an empty slot.
fn scene(f: &mut Fixture) -> Result<(Invocation, Slot), Failure> {
    let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
    let make = Invocation::new(
        boot::ASID_CONTROL,
        arch_label::ASID_CONTROL_MAKE_POOL,
        &[slot.index(), 64],
        &[memory.cptr(), boot::CNODE.cptr()],
    );
    Ok((make, slot))
}

fn control_labels(f: &mut Fixture) -> TestResult {
    let (make, _) = scene(f)?;
    refuses_other_labels(&make, &[make.label])
}

fn make_truncated(f: &mut Fixture) -> TestResult {
    let (make, _) = scene(f)?;
    truncated(&make)?;
    truncated(&make.with_cap(0, f.me))
}

fn make_eight(f: &mut Fixture) -> TestResult {
    // One exists at boot.
    for _ in 1..8 {
        pool(f)?;
    }
    let (make, slot) = scene(f)?;
    make.expect_error(DeleteFirst, &[])?;
    // Before the untyped.
    make.with_cap(0, f.me).expect_error(DeleteFirst, &[])?;
    make.with_word(1, 65).expect_error(DeleteFirst, &[])?;
    truncated(&make)?;
    ensure!(f.is_empty(slot)?, "there is a ninth pool");
    Ok(())
}

fn make_untypeds(f: &mut Fixture) -> TestResult {
    let (make, _) = scene(f)?;
    let wrong = [
        f.null()?,
        f.untyped(11)?.cptr(),
        f.untyped(13)?.cptr(),
        f.device_untyped(12)?.cptr(),
        f.frame(FrameSize::Small)?.cptr(),
        f.me.cptr(),
    ];
    for wrong in wrong {
        make.with_cap(0, wrong)
            .expect_error(InvalidCapability, &[1])?;
    }
    let (parent, child) = (f.untyped(12)?, f.empty_slot()?);
    parent.retype(ObjectType::Endpoint, child, 1)?;
    let parent = make.with_cap(0, parent);
    parent.expect_error(RevokeFirst, &[])?;
    // Before the destination.
    parent.with_word(1, 65).expect_error(RevokeFirst, &[])?;
    child.delete()?;
    parent.expect_ok(&[])
}

fn make_destinations(f: &mut Fixture) -> TestResult {
    let (make, slot) = scene(f)?;
    destination_refused(f, &make, AT)?;
    // The refusals left the untyped as it was.
    ensure!(f.is_empty(slot)?, "a refused MakePool filled its slot");
    make.expect_ok(&[])
}

fn make_effect(f: &mut Fixture) -> TestResult {
    let (make, slot) = scene(f)?;
    make.expect_ok(&[])?;
    let free = f.empty_slot()?;
    let retype = Invocation::new(
        make.caps[0],
        label::UNTYPED_RETYPE,
        &[object::ENDPOINT, 0, 0, 0, free.index(), 1],
        &[boot::CNODE.cptr()],
    );
    retype.expect_error(NotEnoughMemory, &[0])?;
    make.with_word(0, free.index())
        .expect_error(RevokeFirst, &[])?;
    // The pool is the untyped's child.
    f.slot_of(make.caps[0]).revoke()?;
    ensure!(f.is_empty(slot)?, "the pool outlived the revocation");
    retype.expect_ok(&[])
}

fn make_without_answer(f: &mut Fixture) -> TestResult {
    let (make, slot) = scene(f)?;
    let made = |f: &mut Fixture| {
        let made = !f.is_empty(slot)?;
        slot.delete()?;
        Ok(made)
    };
    works_without_answer(f, &make, made)?;
    works_in_first_phase(f, &make, made)
}

fn assign(f: &mut Fixture) -> Result<Invocation, Failure> {
    let (pool, root) = (pool(f)?, f.pml4()?);
    let label = arch_label::ASID_POOL_ASSIGN;
    Ok(Invocation::new(pool, label, &[], &[root.cptr()]))
}

fn pool_labels(f: &mut Fixture) -> TestResult {
    let assign = assign(f)?;
    refuses_other_labels(&assign, &[assign.label])
}

fn assign_truncated(f: &mut Fixture) -> TestResult {
    let assign = assign(f)?;
    truncated(&assign)?;
    assign.expect_ok(&[])
}

fn assign_refused(f: &mut Fixture) -> TestResult {
    let assign = assign(f)?;
    let wrong = [
        f.null()?,
        f.make(ObjectType::Pdpt)?,
        f.make(ObjectType::PageTable)?,
        f.me.cptr(),
        boot::VSPACE.cptr(),
        f.vspace()?.root().cptr(),
    ];
    for wrong in wrong {
        assign
            .with_cap(0, wrong)
            .expect_error(InvalidCapability, &[1])?;
    }
    assign.expect_ok(&[])?;
    assign.expect_error(InvalidCapability, &[1])
}

fn assign_all(f: &mut Fixture) -> TestResult {
    const IDENTIFIERS: u64 = 512;
    let assign = assign(f)?;
    let mut first = None;
    for _ in 0..IDENTIFIERS {
        let root = f.pml4()?;
        first.get_or_insert(root);
        assign.with_cap(0, root).expect_ok(&[])?;
    }
    assign.expect_error(DeleteFirst, &[])?;
    // What is wrong with the root is found before that.
    assign
        .with_cap(0, f.me)
        .expect_error(InvalidCapability, &[1])?;
    // The end of an address space frees its identifier.
    if let Some(first) = first {
        f.slot_of(first).delete()?;
    }
    assign.expect_ok(&[])
}

fn assign_effect(f: &mut Fixture) -> TestResult {
    let assign = assign(f)?;
    let (root, pdpt): (CPtr, CPtr) = (assign.caps[0], f.make(ObjectType::Pdpt)?);
    let map = Invocation::new(pdpt, arch_label::PDPT_MAP, &[0, 0], &[root]);
    map.expect_error(InvalidCapability, &[1])?;
    assign.expect_ok(&[])?;
    map.expect_ok(&[])?;
    // Copies made since have it too.
    let copy = f.copy(root)?;
    let pdpt: CPtr = f.make(ObjectType::Pdpt)?;
    map.on(pdpt)
        .with_cap(0, copy)
        .expect_error(DeleteFirst, &[])
}

fn assign_without_answer(f: &mut Fixture) -> TestResult {
    for call in SENDING {
        let assign = assign(f)?;
        assign.send(call)?;
        assign.expect_error(InvalidCapability, &[1])?;
    }
    for call in FIRST_PHASE {
        let assign = assign(f)?;
        assign.send_first(f, call)?;
        assign.expect_error(InvalidCapability, &[1])?;
    }
    Ok(())
}
