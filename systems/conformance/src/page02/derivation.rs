//! 02, section 5: the derivation list, as Revoke shows it.

use sandglass::cap::{Domain, SchedControl};

use super::support::{alive, delete, has_children, irq_handler, operation, originals, revoke};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/5.1/copies-are-not-revocable", copies_are_not_revocable),
    check("02/5.1/a-new-badge-is-revocable", new_badges_are_revocable),
    check("02/5.1/a-mint-without-a-badge-is-a-copy", unbadged_mints),
    check(
        "02/5.1/a-copy-stands-right-after-its-source",
        copies_after_source,
    ),
    check("02/5.1/copies-of-untypeds-are-revocable", untyped_copies),
    check("02/5.1/moves-keep-position-and-flags", moves_keep_position),
    check(
        "02/5.1/rotations-keep-position-and-flags",
        rotations_keep_position,
    ),
    check("02/5.1/objects-of-one-retype-are-siblings", siblings),
    check(
        "02/5.1/later-objects-are-nearer-to-the-parent",
        later_is_nearer,
    ),
    check(
        "02/5.2/originals-are-no-parents-of-others",
        others_are_no_children,
    ),
    check(
        "02/5.2/untypeds-are-parents-of-what-lies-inside",
        untyped_ranges,
    ),
    check("02/5.2/untypeds-are-parents-of-every-kind", untyped_parents),
    check(
        "02/5.2/badged-capabilities-are-parents-of-equal-badges",
        badged_parents,
    ),
    check(
        "02/5.2/unbadged-originals-are-parents-of-all-badges",
        unbadged_parents,
    ),
    check("02/5.2/cnodes-with-other-guards-are-children", cnode_guards),
    check(
        "02/5.2/controls-are-parents-of-their-copies",
        control_copies,
    ),
    check(
        "02/5.2/irq-control-is-the-parent-of-all-handlers",
        irq_control_parent,
    ),
    check(
        "02/5.2/handlers-are-parents-of-the-same-interrupt",
        same_interrupt,
    ),
    check(
        "02/5.4/an-emptied-slot-passes-on-first-badged",
        first_badged_passes,
    ),
    check(
        "02/5.4/first-badged-passes-on-over-several",
        first_badged_passes_far,
    ),
];

fn copies_are_not_revocable(f: &mut Fixture) -> TestResult {
    for (kind, original) in originals(f, 0)? {
        let first = f.copy(original)?;
        let second = f.copy(first)?;
        let caps = [original, first, second];
        revoke(f, first)?;
        ensure!(
            alive(f, caps)? == [true; 3],
            "revoking a copy of a {kind:?} deleted something"
        );
        revoke(f, second)?;
        ensure_eq!(alive(f, caps)?, [true; 3]);
        revoke(f, original)?;
        let seen = alive(f, caps)?;
        let kept = !has_children(kind);
        ensure!(
            seen == [true, kept, kept],
            "revoking an original {kind:?} left {seen:?} of itself and two copies"
        );
    }
    Ok(())
}

fn new_badges_are_revocable(f: &mut Fixture) -> TestResult {
    for original in [f.endpoint()?.cptr(), f.notification()?.cptr()] {
        let badged = f.badged(original, 5)?;
        let copy = f.copy(badged)?;
        let copy_of_copy = f.copy(copy)?;
        let caps = [original, badged, copy, copy_of_copy];
        revoke(f, copy)?;
        ensure_eq!(alive(f, caps)?, [true; 4]);
        revoke(f, badged)?;
        ensure_eq!(alive(f, caps)?, [true, true, false, false]);
    }
    Ok(())
}

fn unbadged_mints(f: &mut Fixture) -> TestResult {
    for original in [f.endpoint()?.cptr(), f.notification()?.cptr()] {
        let minted = f.badged(original, 0)?;
        let badged = f.badged(minted, 8)?;
        let copy = f.copy(badged)?;
        let caps = [original, minted, badged, copy];
        // An unbadged capability could be a parent of badged ones, were it revocable.
        revoke(f, minted)?;
        ensure_eq!(alive(f, caps)?, [true; 4]);
        revoke(f, badged)?;
        ensure_eq!(alive(f, caps)?, [true, true, true, false]);
        revoke(f, original)?;
        ensure_eq!(alive(f, caps)?, [true, false, false, false]);
    }
    Ok(())
}

fn copies_after_source(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?.cptr();
    let one = f.badged(endpoint, 1)?;
    let two = f.badged(endpoint, 2)?;
    // endpoint, two, one. The copies of each stand before the other.
    let (copy_of_one, copy_of_two) = (f.copy(one)?, f.copy(two)?);
    // endpoint, two, two', plain, one, one': an unbadged copy of the original, were it inserted
    // anywhere but at the front, would end the children of another.
    let plain = f.copy(endpoint)?;
    let caps = [endpoint, plain, two, copy_of_two, one, copy_of_one];
    revoke(f, two)?;
    ensure_eq!(alive(f, caps)?, [true, true, true, false, true, true]);
    revoke(f, one)?;
    ensure_eq!(alive(f, caps)?, [true, true, true, false, true, false]);
    Ok(())
}

fn untyped_copies(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(6)?.cptr();
    let first = f.copy(untyped)?;
    let second = f.copy(first)?;
    let object: CPtr = f.null()?;
    // The last copy keeps the free memory (02, section 6.2).
    let slot = f.slot_of(object);
    let memory = Untyped::from_cptr(second);
    memory.retype(ObjectType::Endpoint, slot, 1)?;
    let caps = [untyped, first, second, object];
    revoke(f, second)?;
    ensure_eq!(alive(f, caps)?, [true, true, true, false]);
    memory.retype(ObjectType::Endpoint, slot, 1)?;
    revoke(f, first)?;
    ensure_eq!(alive(f, caps)?, [true, true, false, false]);
    revoke(f, untyped)?;
    ensure_eq!(alive(f, caps)?, [true, false, false, false]);
    Ok(())
}

fn moves_keep_position(f: &mut Fixture) -> TestResult {
    for (kind, original) in originals(f, 0)? {
        let copy = f.copy(original)?;
        let (moved, moved_copy): (CPtr, CPtr) = (f.null()?, f.null()?);
        f.slot_of(moved_copy).move_from(f.slot_of(copy))?;
        f.slot_of(moved).move_from(f.slot_of(original))?;
        let caps = [original, copy, moved, moved_copy];
        ensure_eq!(alive(f, caps)?, [false, false, true, true]);
        revoke(f, moved_copy)?;
        ensure_eq!(alive(f, caps)?, [false, false, true, true]);
        revoke(f, moved)?;
        let seen = alive(f, caps)?;
        ensure!(
            seen == [false, false, true, !has_children(kind)],
            "revoking a moved {kind:?} left {seen:?}"
        );
    }
    // firstBadged moves along: its neighbour of the same badge is still not its parent.
    let endpoint = f.endpoint()?.cptr();
    let (first, second) = (f.badged(endpoint, 3)?, f.badged(endpoint, 3)?);
    let moved: CPtr = f.null()?;
    f.slot_of(moved).move_from(f.slot_of(first))?;
    revoke(f, second)?;
    ensure_eq!(alive(f, [second, moved])?, [true, true]);
    // A mutated CNode keeps its place, too.
    let cnode = f.cnode(1)?.cptr();
    let copy = f.copy(cnode)?;
    let mutated: CPtr = f.null()?;
    f.slot_of(mutated)
        .mutate_from(f.slot_of(cnode), GuardData::new(1, 1))?;
    revoke(f, mutated)?;
    ensure_eq!(alive(f, [mutated, copy])?, [true, false]);
    Ok(())
}

fn rotations_keep_position(f: &mut Fixture) -> TestResult {
    let (one, two) = (f.tcb()?.cptr(), f.frame(FrameSize::Small)?.cptr());
    let (copy_of_one, copy_of_two) = (f.copy(one)?, f.copy(two)?);
    // Swap: each slot now holds the other's original.
    let data = sandglass::cap::RotateData::default();
    let (first, second) = (f.slot_of(one), f.slot_of(two));
    first.rotate(second, first, data)?;
    revoke(f, two)?;
    let copies = [copy_of_one, copy_of_two];
    ensure_eq!(alive(f, copies)?, [false, true]);
    revoke(f, one)?;
    ensure_eq!(alive(f, copies)?, [false, false]);
    // Three slots: the pivot goes to the destination, the source to the pivot's place.
    let (pivot, source) = (f.tcb()?.cptr(), f.reply()?.cptr());
    let (of_pivot, of_source) = (f.copy(pivot)?, f.copy(source)?);
    let destination = f.empty_slot()?;
    destination.rotate(f.slot_of(pivot), f.slot_of(source), data)?;
    ensure_eq!(alive(f, [pivot, source])?, [true, false]);
    destination.revoke()?;
    ensure_eq!(alive(f, [of_pivot, of_source])?, [false, true]);
    revoke(f, pivot)?;
    ensure_eq!(alive(f, [of_pivot, of_source])?, [false, false]);
    Ok(())
}

fn siblings(f: &mut Fixture) -> TestResult {
    let memory = f.untyped(8)?;
    let slots = f.empty_slots(4)?;
    memory.retype(ObjectType::Untyped(5), slots, 4)?;
    let cap = |i: u64| CPtr::new(slots.index() + i);
    let caps = [memory.cptr(), cap(0), cap(1), cap(2), cap(3)];
    // All are originals, none is inside another.
    for i in 0..4 {
        revoke(f, cap(i))?;
        ensure_eq!(alive(f, caps)?, [true; 5]);
    }
    revoke(f, memory)?;
    ensure_eq!(alive(f, caps)?, [true, false, false, false, false]);
    Ok(())
}

/// Revoke deletes the next element first. Both endpoints of one Retype have a waiting thread of
/// one priority; a thread that restarts goes to the head of its queue (04, section 8.1), so of the two
/// the one that restarts last runs first: that of the endpoint that was made first.
fn later_is_nearer(f: &mut Fixture) -> TestResult {
    let memory = f.untyped(8)?;
    let slots = f.empty_slots(2)?;
    memory.retype(ObjectType::Endpoint, slots, 2)?;
    let trace = Trace::leak();
    for number in [0, 1] {
        let endpoint = Endpoint::at(slots.index() + number);
        f.helper(100, move || {
            // Restarted, the call finds the slot empty, and says so.
            endpoint.call(Message::EMPTY);
            trace.note(number);
        })?;
    }
    f.settle()?;
    revoke(f, memory)?;
    f.settle()?;
    ensure_eq!(trace.events(), [0, 1]);
    Ok(())
}

fn others_are_no_children(f: &mut Fixture) -> TestResult {
    let (first, second) = (originals(f, 0)?, originals(f, 1)?);
    for ((kind, one), (_, two)) in first.into_iter().zip(second) {
        let (copy_of_one, copy_of_two) = (f.copy(one)?, f.copy(two)?);
        let caps = [one, copy_of_one, two, copy_of_two];
        revoke(f, two)?;
        let seen = alive(f, caps)?;
        let kept = !has_children(kind);
        ensure!(
            seen == [true, true, true, kept],
            "revoking a second {kind:?} left {seen:?}"
        );
        revoke(f, one)?;
        ensure_eq!(alive(f, caps)?, [true, kept, true, kept]);
    }
    Ok(())
}

fn untyped_ranges(f: &mut Fixture) -> TestResult {
    let memory = f.untyped(10)?;
    let slots = f.empty_slots(6)?;
    let at = |i: u64| boot::CNODE.slot(slots.index() + i);
    let cap = |i: u64| CPtr::new(slots.index() + i);
    // Two halves, in each two quarters, but for one that is an endpoint's.
    memory.retype(ObjectType::Untyped(9), at(0), 2)?;
    let (low, high): (Untyped, Untyped) = (at(0).capability(), at(1).capability());
    low.retype(ObjectType::Untyped(8), at(2), 1)?;
    low.retype(ObjectType::Endpoint, at(3), 1)?;
    high.retype(ObjectType::Untyped(8), at(4), 1)?;
    Untyped::from_cptr(cap(4)).retype(ObjectType::Reply, at(5), 1)?;
    let caps = [cap(0), cap(1), cap(2), cap(3), cap(4), cap(5)];
    revoke(f, cap(4))?;
    ensure_eq!(alive(f, caps)?, [true, true, true, true, true, false]);
    Untyped::from_cptr(cap(4)).retype(ObjectType::Reply, at(5), 1)?;
    revoke(f, high)?;
    ensure_eq!(alive(f, caps)?, [true, true, true, true, false, false]);
    revoke(f, low)?;
    ensure_eq!(alive(f, caps)?, [true, true, false, false, false, false]);
    revoke(f, memory)?;
    ensure_eq!(alive(f, caps)?, [false; 6]);
    Ok(())
}

fn untyped_parents(f: &mut Fixture) -> TestResult {
    let kinds = [
        ObjectType::Untyped(4),
        ObjectType::Tcb,
        ObjectType::Endpoint,
        ObjectType::Notification,
        ObjectType::CNode(1),
        ObjectType::SchedContext(7),
        ObjectType::Reply,
        ObjectType::Pml4,
        ObjectType::Pdpt,
        ObjectType::PageDirectory,
        ObjectType::PageTable,
        ObjectType::Page,
        ObjectType::LargePage,
    ];
    for kind in kinds {
        let memory = f.untyped(kind.size_bits())?;
        let slot = f.empty_slot()?;
        memory.retype(kind, slot, 1)?;
        let copy: CPtr = f.null()?;
        let copied = operation(label::CNODE_COPY, f.slot_of(copy), slot, &[15]).call();
        // Paging structures that are not mapped, and only these, are not copied (02, section 6.2).
        let is_table = matches!(
            kind,
            ObjectType::Pml4 | ObjectType::Pdpt | ObjectType::PageDirectory | ObjectType::PageTable
        );
        ensure_eq!(copied.label != 0, is_table);
        revoke(f, memory)?;
        ensure_eq!(alive(f, [slot.capability(), copy])?, [false, false]);
        // And it is free again.
        memory.retype(kind, slot, 1)?;
    }
    let memory = f.untyped(12)?;
    let pool = f.empty_slot()?;
    boot::ASID_CONTROL.make_pool(memory, pool)?;
    let copy = f.copy(pool.capability::<CPtr>())?;
    revoke(f, memory)?;
    ensure_eq!(alive(f, [pool.capability(), copy])?, [false, false]);
    Ok(())
}

fn badged_parents(f: &mut Fixture) -> TestResult {
    for original in [f.endpoint()?.cptr(), f.notification()?.cptr()] {
        let first = f.badged(original, 7)?;
        let copy = f.copy(first)?;
        // original, second, first, copy: equal badges, but each minted one begins anew.
        let second = f.badged(original, 7)?;
        let other = f.badged(original, 8)?;
        let caps = [other, second, first, copy];
        revoke(f, other)?;
        ensure_eq!(alive(f, caps)?, [true; 4]);
        revoke(f, second)?;
        ensure_eq!(alive(f, caps)?, [true; 4]);
        revoke(f, first)?;
        ensure_eq!(alive(f, caps)?, [true, true, true, false]);
    }
    Ok(())
}

fn unbadged_parents(f: &mut Fixture) -> TestResult {
    for original in [f.endpoint()?.cptr(), f.notification()?.cptr()] {
        let mut derived = [original; 8];
        for (i, cap) in derived.iter_mut().enumerate() {
            *cap = f.badged(original, (i as u64 / 2) * 3)?;
        }
        let copies = [f.copy(derived[3])?, f.copy(derived[0])?];
        revoke(f, original)?;
        ensure_eq!(alive(f, derived)?, [false; 8]);
        ensure_eq!(alive(f, copies)?, [false; 2]);
        ensure_eq!(alive(f, [original])?, [true]);
    }
    Ok(())
}

fn cnode_guards(f: &mut Fixture) -> TestResult {
    let cnode = f.cnode(2)?;
    let guarded = f.badged(cnode, GuardData::new(5, 9).raw())?;
    let copy = f.copy(guarded)?;
    revoke(f, guarded)?;
    ensure_eq!(alive(f, [guarded.cptr(), copy.cptr()])?, [true, true]);
    revoke(f, cnode)?;
    ensure_eq!(alive(f, [guarded.cptr(), copy.cptr()])?, [false, false]);
    Ok(())
}

fn control_copies(f: &mut Fixture) -> TestResult {
    let control: SchedControl = f.control;
    let domain: Domain = boot::DOMAIN;
    for original in [control.cptr(), domain.cptr(), boot::ASID_CONTROL.cptr()] {
        let first = f.copy(original)?;
        let second = f.copy(first)?;
        let caps = [original, first, second];
        revoke(f, first)?;
        ensure_eq!(alive(f, caps)?, [true; 3]);
        revoke(f, original)?;
        ensure_eq!(alive(f, caps)?, [true, false, false]);
    }
    Ok(())
}

fn irq_control_parent(f: &mut Fixture) -> TestResult {
    let (one, two) = (irq_handler(f, 61)?, irq_handler(f, 62)?);
    let copy = f.copy(one)?;
    revoke(f, boot::IRQ_CONTROL)?;
    let caps = [one, two, copy, boot::IRQ_CONTROL.cptr()];
    ensure_eq!(alive(f, caps)?, [false, false, false, true]);
    // Both interrupts can be had again.
    irq_handler(f, 61)?;
    irq_handler(f, 62)?;
    Ok(())
}

fn same_interrupt(f: &mut Fixture) -> TestResult {
    let (one, two) = (irq_handler(f, 63)?, irq_handler(f, 64)?);
    let (copy_of_one, copy_of_two) = (f.copy(one)?, f.copy(two)?);
    let caps = [one, copy_of_one, two, copy_of_two];
    revoke(f, two)?;
    ensure_eq!(alive(f, caps)?, [true, true, true, false]);
    revoke(f, one)?;
    ensure_eq!(alive(f, caps)?, [true, false, true, false]);
    Ok(())
}

fn first_badged_passes(f: &mut Fixture) -> TestResult {
    for original in [f.endpoint()?.cptr(), f.notification()?.cptr()] {
        let first = f.badged(original, 7)?;
        let copy = f.copy(first)?;
        let second = f.badged(original, 7)?;
        // original, second, first (first of its badge), copy.
        delete(f, first)?;
        revoke(f, second)?;
        ensure_eq!(alive(f, [second, first, copy])?, [true, false, true]);
        // Without such a one between them, equal badges are children.
        let inserted = f.copy(second)?;
        revoke(f, second)?;
        ensure_eq!(alive(f, [second, inserted, copy])?, [true, false, true]);
    }
    Ok(())
}

fn first_badged_passes_far(f: &mut Fixture) -> TestResult {
    let original = f.endpoint()?.cptr();
    let first = f.badged(original, 7)?;
    let last = f.copy(first)?;
    let middle = f.copy(first)?;
    let second = f.badged(original, 7)?;
    // original, second, first, middle, last: the flag moves on with each deletion.
    delete(f, first)?;
    delete(f, middle)?;
    revoke(f, second)?;
    ensure_eq!(alive(f, [second, last])?, [true, true]);
    // It is lost with the last of them, and the next original's copies have their own.
    delete(f, last)?;
    let copy = f.copy(second)?;
    revoke(f, second)?;
    ensure_eq!(alive(f, [second, copy])?, [true, false]);
    // Deleting the second passes its flag to a badge of another kind, which has it already.
    let third = f.badged(original, 9)?;
    delete(f, third)?;
    revoke(f, original)?;
    ensure_eq!(alive(f, [original, second])?, [true, false]);
    Ok(())
}
