//! 02, section 6: CNode operations: their checks in order, and their effects. Each list of
//! refusals starts with everything wrong, and repairs one thing after the other.

use sandglass::cap::RotateData;

use super::support::{alive, kind_of, operation, Kind};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/6/labels-that-cnodes-do-not-know", unknown_labels),
    check(
        "02/6/checks-of-delete-and-revoke-in-order",
        target_operations,
    ),
    check("02/6/checks-of-copy-in-order", copy_order),
    check("02/6/checks-of-mint-in-order", mint_order),
    check("02/6/checks-of-move-in-order", move_order),
    check("02/6/checks-of-mutate-in-order", mutate_order),
    check("02/6/checks-of-rotate-in-order", rotate_order),
    check(
        "02/6/rotate-needs-eight-words-and-two-capabilities",
        rotate_truncated,
    ),
    check("02/6/copy-to-an-occupied-slot", copy_to_an_occupied_slot),
    check("02/6/operations-between-cnodes", between_cnodes),
    check("02/6/move-takes-what-cannot-be-copied", move_anything),
    check("02/6/delete-of-an-empty-slot-succeeds", delete_empty),
    check("02/6/revoke-of-an-empty-slot-succeeds", revoke_empty),
    check(
        "02/6/cancel-badged-sends-needs-all-rights",
        cancel_needs_rights,
    ),
    check("02/6/rotate-moves-pivot-and-source", rotate_three),
    check("02/6/rotate-swaps", rotate_two),
    check("02/6/rotate-sets-both-guards", rotate_guards),
];

/// An operation refused for every reason at once, which are then taken away in order.
struct Ladder {
    invocation: Invocation,
}

impl Ladder {
    /// The next repair, and the error that then comes.
    fn step(
        &mut self,
        repair: impl FnOnce(&mut Invocation),
        error: ErrorNumber,
        details: &[u64],
    ) -> TestResult {
        repair(&mut self.invocation);
        self.invocation.expect_error(error, details)
    }

    /// The first four words of `whole`, of which the message has `length`, grow in steps that
    /// leave the message truncated.
    fn truncated(&mut self, whole: &[u64], lengths: core::ops::Range<usize>) -> TestResult {
        for length in lengths {
            self.step(|i| i.words = whole[..length].into(), TruncatedMessage, &[])?;
        }
        Ok(())
    }
}

fn unknown_labels(f: &mut Fixture) -> TestResult {
    let cnode = f.cnode(1)?;
    let (before, behind) = (label::CNODE_REVOKE - 1, label::CNODE_ROTATE + 1);
    for label in [0, 1, before, behind, behind + 1, 39, 58, 0xf_ffff_ffff_ffff] {
        // Before the length is looked at, and with a complete message.
        let unknown = Invocation::new(cnode, label, &[], &[]);
        unknown.expect_error(IllegalOperation, &[])?;
        let words = [0, 0, 0, 0, 0, 0, 0, 0];
        let caps = [cnode.cptr(), cnode.cptr()];
        let unknown = Invocation::new(cnode, label, &words, &caps);
        unknown.expect_error(IllegalOperation, &[])?;
    }
    for label in label::CNODE_REVOKE..=label::CNODE_ROTATE {
        Invocation::new(cnode, label, &[], &[]).expect_error(TruncatedMessage, &[])?;
    }
    Ok(())
}

fn target_operations(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    for label in [
        label::CNODE_REVOKE,
        label::CNODE_DELETE,
        label::CNODE_CANCEL_BADGED_SENDS,
    ] {
        let mut ladder = Ladder {
            invocation: Invocation::new(boot::CNODE, label, &[], &[]),
        };
        ladder.truncated(&[slot.index(), 0], 0..2)?;
        let whole = |depth: u64| move |i: &mut Invocation| i.words = vec![slot.index(), depth];
        ladder.step(whole(0), RangeError, &[1, 64])?;
        ladder.step(whole(50), FailedLookup, &[0, 4, 50, 0, ROOT_GUARD])?;
        ladder.step(whole(63), FailedLookup, &[0, 3, 63, 64])?;
        // More words and capabilities than needed are no error.
        let more = [slot.index(), 64, 1, 2, 3, 4, 5];
        let complete = Invocation::new(boot::CNODE, label, &more, &[boot::TCB.cptr()]);
        if label == label::CNODE_CANCEL_BADGED_SENDS {
            complete.expect_error(IllegalOperation, &[])?;
        } else {
            complete.expect_ok(&[])?;
        }
    }
    Ok(())
}

/// The checks up to the source's emptiness, the same for Copy, Mint, Move and Mutate. Returns the
/// invocation, whose words are complete but for the source's index, with the first four only.
fn common_order(f: &mut Fixture, label: u64, complete: &[u64]) -> Result<Ladder, Failure> {
    let occupied = f.endpoint()?;
    let (free, empty) = (f.empty_slot()?, f.empty_slot()?);
    let not_a_cnode = f.tcb()?;
    let mut words = vec![occupied.address(), 0, empty.index(), 0];
    words.extend(complete);
    let mut ladder = Ladder {
        invocation: Invocation::new(boot::CNODE, label, &[], &[]),
    };
    ladder.truncated(&words, 0..2)?;
    // Now the destination is looked up, before the rest of the message is.
    ladder.step(|i| i.words = words[..2].into(), RangeError, &[1, 64])?;
    words[1] = 64;
    ladder.truncated(&words, 2..4)?;
    // Capabilities are missing, whatever the length.
    let whole = words.len();
    ladder.truncated(&words, 4..whole + 1)?;
    ladder.invocation.words = words[..3].into();
    let with_cap = |i: &mut Invocation| i.caps = vec![not_a_cnode.cptr()];
    ladder.step(with_cap, TruncatedMessage, &[])?;
    ladder.step(|i| i.words = words[..4].into(), DeleteFirst, &[])?;
    ladder.step(|i| i.words[0] = free.index(), FailedLookup, &[1, 1])?;
    let root = boot::CNODE.cptr();
    ladder.step(|i| i.caps[0] = root, RangeError, &[1, 64])?;
    ladder.step(
        |i| i.words[3] = 30,
        FailedLookup,
        &[1, 4, 30, 0, ROOT_GUARD],
    )?;
    ladder.step(|i| i.words[3] = 64, FailedLookup, &[1, 2, 64])?;
    ensure!(f.is_empty(free)?);
    Ok(ladder)
}

/// An untyped with a child, which cannot be derived.
fn used_untyped(f: &mut Fixture) -> Result<Untyped, Failure> {
    let (memory, slot) = (f.untyped(5)?, f.empty_slot()?);
    memory.retype(ObjectType::Reply, slot, 1)?;
    Ok(memory)
}

fn copy_order(f: &mut Fixture) -> TestResult {
    let mut ladder = common_order(f, label::CNODE_COPY, &[15])?;
    let used = used_untyped(f)?;
    ladder.step(|i| i.words[2] = used.address(), TruncatedMessage, &[])?;
    ladder.step(|i| i.words.push(15), RevokeFirst, &[])?;
    let control = boot::IRQ_CONTROL.address();
    ladder.step(|i| i.words[2] = control, IllegalOperation, &[])?;
    ladder
        .invocation
        .with_word(2, f.me.address())
        .expect_ok(&[])
}

fn mint_order(f: &mut Fixture) -> TestResult {
    let mut ladder = common_order(f, label::CNODE_MINT, &[15, 0])?;
    let used = used_untyped(f)?;
    ladder.step(|i| i.words[2] = used.address(), TruncatedMessage, &[])?;
    ladder.step(|i| i.words.push(15), TruncatedMessage, &[])?;
    ladder.step(|i| i.words.push(0), RevokeFirst, &[])?;
    let endpoint = f.endpoint()?;
    let badged = f.badged(endpoint, 1)?;
    ladder.step(|i| i.words[2] = badged.address(), IllegalOperation, &[])?;
    ladder
        .invocation
        .with_word(2, f.me.address())
        .expect_ok(&[])
}

fn move_order(f: &mut Fixture) -> TestResult {
    let ladder = common_order(f, label::CNODE_MOVE, &[])?;
    let endpoint = f.endpoint()?;
    let moving = ladder.invocation.with_word(2, endpoint.address());
    // A slot is not empty for a move to itself.
    let itself = moving.with_word(0, endpoint.address());
    itself.expect_error(DeleteFirst, &[])?;
    moving.expect_ok(&[])?;
    moving.expect_error(DeleteFirst, &[])?;
    ensure_eq!(
        alive(f, [endpoint.cptr(), CPtr::new(moving.words[0])])?,
        [false, true]
    );
    Ok(())
}

fn mutate_order(f: &mut Fixture) -> TestResult {
    let mut ladder = common_order(f, label::CNODE_MUTATE, &[0])?;
    let endpoint = f.endpoint()?;
    ladder.step(|i| i.words[2] = endpoint.address(), TruncatedMessage, &[])?;
    ladder.step(|i| i.words.push(0), IllegalOperation, &[])?;
    ensure_eq!(alive(f, [endpoint.cptr()])?, [true]);
    let cnode = f.cnode(1)?;
    let mutate = ladder.invocation.with_word(2, cnode.address());
    // 63 bits of guard and one of radix fit, but not two of radix.
    let large = f.cnode(2)?;
    let too_large = mutate.with_word(2, large.address()).with_word(4, 63);
    too_large.expect_error(IllegalOperation, &[])?;
    ensure_eq!(alive(f, [large.cptr()])?, [true]);
    mutate.with_word(4, 63).expect_ok(&[])
}

/// Words of Rotate, by their places.
fn rotation(destination: Slot, pivot: Slot, source: Slot, data: RotateData) -> Invocation {
    let depth = |slot: Slot| u64::from(slot.depth());
    let words = [
        destination.index(),
        depth(destination),
        data.pivot.raw(),
        pivot.index(),
        depth(pivot),
        data.source.raw(),
        source.index(),
        depth(source),
    ];
    let caps = [pivot.root().cptr(), source.root().cptr()];
    Invocation::new(destination.root(), label::CNODE_ROTATE, &words, &caps)
}

fn rotate_truncated(f: &mut Fixture) -> TestResult {
    let (destination, pivot, source) = (f.empty_slot()?, f.tcb()?, f.reply()?);
    let (pivot, source) = (f.slot_of(pivot), f.slot_of(source));
    let whole = rotation(destination, pivot, source, RotateData::default());
    for length in 0..8 {
        whole
            .with_length(length)
            .expect_error(TruncatedMessage, &[])?;
    }
    for count in 0..2 {
        whole
            .with_cap_count(count)
            .expect_error(TruncatedMessage, &[])?;
    }
    // The destination is looked up first, if the message has it.
    let nowhere = whole.with_word(1, 0);
    nowhere.with_length(1).expect_error(TruncatedMessage, &[])?;
    nowhere.with_length(2).expect_error(RangeError, &[1, 64])?;
    nowhere
        .with_cap_count(0)
        .expect_error(RangeError, &[1, 64])?;
    whole.expect_ok(&[])
}

fn rotate_order(f: &mut Fixture) -> TestResult {
    let occupied = f.endpoint()?;
    let (free, no_source, no_pivot) = (f.empty_slot()?, f.empty_slot()?, f.empty_slot()?);
    let not_a_cnode = f.tcb()?.cptr();
    let nowhere = f.slot_of(occupied);
    let mut ladder = Ladder {
        invocation: rotation(nowhere, nowhere, nowhere, RotateData::default()),
    };
    // Pivot and source are wrongly addressed, in different ways.
    ladder.invocation.words[4] = 0;
    ladder.step(|i| i.caps[1] = not_a_cnode, FailedLookup, &[1, 1])?;
    ladder.invocation.caps = vec![not_a_cnode, boot::CNODE.cptr()];
    ladder.step(
        |i| i.words[7] = 20,
        FailedLookup,
        &[1, 4, 20, 0, ROOT_GUARD],
    )?;
    ladder.step(|i| i.words[7] = 64, FailedLookup, &[1, 1])?;
    ladder.step(|i| i.caps[0] = boot::CNODE.cptr(), RangeError, &[1, 64])?;
    ladder.step(|i| i.words[4] = 63, FailedLookup, &[1, 3, 63, 64])?;
    // All three are one slot; then the source is another, but the pivot is the destination; then
    // the pivot is the source, and empty.
    ladder.step(|i| i.words[4] = 64, IllegalOperation, &[])?;
    ladder.step(|i| i.words[6] = no_source.index(), IllegalOperation, &[])?;
    ladder.step(|i| i.words[3] = no_source.index(), IllegalOperation, &[])?;
    // The destination is occupied; source and pivot are empty.
    ladder.step(|i| i.words[3] = no_pivot.index(), DeleteFirst, &[])?;
    ladder.step(|i| i.words[0] = free.index(), FailedLookup, &[1, 2, 64])?;
    // Both updates are refused, once there is a pivot.
    let (first, second) = (f.endpoint()?, f.notification()?);
    ladder.step(|i| i.words[6] = first.address(), FailedLookup, &[0, 2, 64])?;
    ladder.step(|i| i.words[3] = second.address(), IllegalOperation, &[])?;
    let (tcb, reply) = (f.tcb()?, f.reply()?);
    ladder.step(|i| i.words[6] = tcb.address(), IllegalOperation, &[])?;
    let pivot_too = ladder.invocation.with_word(3, reply.address());
    pivot_too
        .with_word(6, first.address())
        .expect_error(IllegalOperation, &[])?;
    // Nothing was moved by all that.
    let caps = [
        free.capability(),
        occupied.cptr(),
        first.cptr(),
        second.cptr(),
    ];
    ensure_eq!(alive(f, caps)?, [false, true, true, true]);
    // Of the missing source and pivot the depths are reported: the slot of an empty CNode.
    let cnode = f.cnode(3)?;
    let (source, pivot) = (cnode.slot_at(1, 3), cnode.slot_at(2, 3));
    let empty = rotation(free, pivot, source, RotateData::default());
    empty.expect_error(FailedLookup, &[1, 2, 3])?;
    source.copy_from(f.slot_of(tcb), Rights::ALL)?;
    empty.expect_error(FailedLookup, &[0, 2, 3])?;
    pivot.copy_from(f.slot_of(tcb), Rights::ALL)?;
    empty.expect_ok(&[])
}

fn copy_to_an_occupied_slot(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let (source, free) = (f.slot_of(endpoint), f.empty_slot()?);
    let copy = operation(label::CNODE_COPY, free, source, &[15]);
    copy.expect_ok(&[])?;
    copy.expect_error(DeleteFirst, &[])?;
    // The destination is looked at before the source (check A).
    let missing = f.empty_slot()?;
    copy.with_word(2, missing.index())
        .expect_error(DeleteFirst, &[])
}

fn between_cnodes(f: &mut Fixture) -> TestResult {
    let (one, two, tcb) = (f.cnode(2)?, f.cnode(5)?, f.tcb()?);
    let (first, second) = (one.slot_at(3, 2), two.slot_at(17, 5));
    let original = f.slot_of(tcb);
    operation(label::CNODE_MOVE, first, original, &[]).expect_ok(&[])?;
    operation(label::CNODE_COPY, second, first, &[15]).expect_ok(&[])?;
    operation(label::CNODE_COPY, original, second, &[15]).expect_ok(&[])?;
    first.revoke()?;
    ensure!(f.is_empty(original)?);
    operation(label::CNODE_MOVE, original, first, &[]).expect_ok(&[])?;
    let moved = operation(label::CNODE_MOVE, first, second, &[]);
    moved.expect_error(FailedLookup, &[1, 2, 5])
}

fn move_anything(f: &mut Fixture) -> TestResult {
    let used = used_untyped(f)?;
    let unmapped: CPtr = f.make(ObjectType::PageTable)?;
    let unassigned = f.pml4()?;
    let endpoint = f.endpoint()?;
    let badged = f.badged(endpoint, 1)?;
    for cap in [used.cptr(), unmapped, unassigned.cptr(), badged.cptr()] {
        let slot = f.empty_slot()?;
        slot.move_from(f.slot_of(cap))?;
        ensure_eq!(alive(f, [cap, slot.capability()])?, [false, true]);
    }
    Ok(())
}

fn delete_empty(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    slot.delete()?;
    slot.delete()?;
    ensure!(f.is_empty(slot)?);
    Ok(())
}

fn revoke_empty(f: &mut Fixture) -> TestResult {
    Ok(f.empty_slot()?.revoke()?)
}

fn cancel_needs_rights(f: &mut Fixture) -> TestResult {
    let (endpoint, notification) = (f.endpoint()?, f.notification()?);
    let cancel = |cap: CPtr| {
        let words = [cap.raw(), 64];
        Invocation::new(boot::CNODE, label::CNODE_CANCEL_BADGED_SENDS, &words, &[])
    };
    cancel(endpoint.cptr()).expect_ok(&[])?;
    cancel(f.badged(endpoint, 3)?.cptr()).expect_ok(&[])?;
    for rights in 0..15 {
        let weak = f.with_rights(endpoint, Rights(rights))?;
        cancel(weak.cptr()).expect_error(IllegalOperation, &[])?;
    }
    let null = f.null()?;
    for other in [
        notification.cptr(),
        f.reply()?.cptr(),
        f.tcb()?.cptr(),
        null,
    ] {
        cancel(other).expect_error(IllegalOperation, &[])?;
    }
    Ok(())
}

fn rotate_three(f: &mut Fixture) -> TestResult {
    let (destination, pivot, source) = (f.empty_slot()?, f.tcb()?, f.cnode(1)?);
    let (pivot, source) = (f.slot_of(pivot), f.slot_of(source));
    rotation(destination, pivot, source, RotateData::default()).expect_ok(&[])?;
    ensure_eq!(kind_of(f, destination.capability::<CPtr>())?, Kind::Tcb);
    ensure_eq!(kind_of(f, pivot.capability::<CPtr>())?, Kind::CNode);
    ensure!(f.is_empty(source)?);
    Ok(())
}

fn rotate_two(f: &mut Fixture) -> TestResult {
    let (pivot, source) = (f.tcb()?, f.cnode(1)?);
    let (pivot, source) = (f.slot_of(pivot), f.slot_of(source));
    let swap = rotation(source, pivot, source, RotateData::default());
    swap.expect_ok(&[])?;
    ensure_eq!(kind_of(f, source.capability::<CPtr>())?, Kind::Tcb);
    ensure_eq!(kind_of(f, pivot.capability::<CPtr>())?, Kind::CNode);
    swap.expect_ok(&[])?;
    ensure_eq!(kind_of(f, pivot.capability::<CPtr>())?, Kind::Tcb);
    Ok(())
}

fn rotate_guards(f: &mut Fixture) -> TestResult {
    let data = RotateData {
        pivot: GuardData::new(0b11, 2),
        source: GuardData::new(0b101, 3),
    };
    for swap in [false, true] {
        let (pivot, source) = (f.cnode(1)?, f.cnode(2)?);
        let (pivot, source) = (f.slot_of(pivot), f.slot_of(source));
        let destination = if swap { source } else { f.empty_slot()? };
        // A guard that does not fit is refused, whichever it is.
        let rotate = rotation(destination, pivot, source, data);
        let whole = rotate.with_word(2, 63);
        whole.with_word(5, 63).expect_error(IllegalOperation, &[])?;
        rotate.expect_ok(&[])?;
        // The pivot's capability got the pivot's data, and ended in the destination.
        let (first, second): (CNode, CNode) = (destination.capability(), pivot.capability());
        first.slot_at(0b110, 3).delete()?;
        second.slot_at(0b10100, 5).delete()?;
        ensure!(first.slot_at(0, 3).delete().is_err());
        ensure!(second.slot_at(0, 5).delete().is_err());
    }
    Ok(())
}
