//! 03, sections 8.4, 8.5 and 9.4: ASIDControl_MakePool and ASIDPool_Assign, which are alike on every architecture; where their
//! labels and sections are told apart, in `arch`, they are listed.

use conformance_kit::arch::{ASIDS_PER_POOL, ASID_POOLS};

use crate::prelude::*;

use super::common::{
    destination_refused, refuses_other_labels, truncated, works_in_first_phase,
    works_without_answer, Destination,
};
use super::levels::LEVELS;
use super::stale::pool;

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

pub fn control_labels(f: &mut Fixture) -> TestResult {
    let (make, _) = scene(f)?;
    refuses_other_labels(&make, &[make.label])
}

pub fn make_truncated(f: &mut Fixture) -> TestResult {
    let (make, _) = scene(f)?;
    truncated(&make)?;
    truncated(&make.with_cap(0, f.me))
}

pub fn make_all(f: &mut Fixture) -> TestResult {
    // One exists at boot.
    for _ in 1..ASID_POOLS {
        pool(f)?;
    }
    let (make, slot) = scene(f)?;
    make.expect_error(DeleteFirst, &[])?;
    // Before the untyped.
    make.with_cap(0, f.me).expect_error(DeleteFirst, &[])?;
    make.with_word(1, 65).expect_error(DeleteFirst, &[])?;
    truncated(&make)?;
    ensure!(f.is_empty(slot)?, "there is one more pool");
    Ok(())
}

pub fn make_untypeds(f: &mut Fixture) -> TestResult {
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

pub fn make_destinations(f: &mut Fixture) -> TestResult {
    let (make, slot) = scene(f)?;
    destination_refused(f, &make, AT)?;
    // The refusals left the untyped as it was.
    ensure!(f.is_empty(slot)?, "a refused MakePool filled its slot");
    make.expect_ok(&[])
}

pub fn make_effect(f: &mut Fixture) -> TestResult {
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

pub fn make_without_answer(f: &mut Fixture) -> TestResult {
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

pub fn pool_labels(f: &mut Fixture) -> TestResult {
    let assign = assign(f)?;
    refuses_other_labels(&assign, &[assign.label])
}

pub fn assign_truncated(f: &mut Fixture) -> TestResult {
    let assign = assign(f)?;
    truncated(&assign)?;
    assign.expect_ok(&[])
}

pub fn assign_refused(f: &mut Fixture) -> TestResult {
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

pub fn assign_all(f: &mut Fixture) -> TestResult {
    let assign = assign(f)?;
    let mut first = None;
    for _ in 0..ASIDS_PER_POOL {
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

pub fn assign_effect(f: &mut Fixture) -> TestResult {
    let assign = assign(f)?;
    let (root, pdpt): (CPtr, CPtr) = (assign.caps[0], f.make(ObjectType::Pdpt)?);
    let map = Invocation::new(pdpt, arch_label::PDPT_MAP, &[0, 0], &[root]);
    map.expect_error(InvalidCapability, &[1])?;
    assign.expect_ok(&[])?;
    map.expect_ok(&[])?;
    // Copies made since have it too.
    let copy = f.copy(root)?;
    for level in &LEVELS[1..] {
        let table: CPtr = f.make(level.kind)?;
        Invocation::new(table, level.map, &[0, 0], &[copy]).expect_ok(&[])?;
    }
    let table: CPtr = f.make(LEVELS[2].kind)?;
    Invocation::new(table, LEVELS[2].map, &[0, 0], &[copy]).expect_error(DeleteFirst, &[])
}

pub fn assign_without_answer(f: &mut Fixture) -> TestResult {
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
