//! 03, section 3, effect of Untyped_Retype: where objects lie, what is left, what is zero.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/3/objects-are-aligned-and-consecutive", aligned),
    check("03/3/sizes-of-objects", sizes),
    check("03/3/gaps-are-lost-until-the-reset", gaps_lost),
    check("03/3/a-refusal-uses-no-memory", refusal_uses_nothing),
    check(
        "03/3/no-children-no-memory-used",
        reset_after_the_last_child,
    ),
    check("03/3/reset-starts-at-the-beginning", reset_after_revoke),
    check("03/3/memory-is-zero-after-the-reset", zeroed_frames),
    check("03/3/small-memory-is-zero-after-the-reset", zeroed_slots),
    check(
        "03/3/nested-memory-is-zero-after-the-reset",
        zeroed_through_child,
    ),
    check("03/3/a-preempted-reset-goes-on", preempted_reset),
    check("03/3/device-memory-starts-again", device_reset),
    check("03/3/capabilities-in-address-order", address_order),
];

const PAGE_BYTES: u64 = 4096;

/// Retype to fresh slots.
fn make(f: &mut Fixture, untyped: Untyped, kind: ObjectType, count: u64) -> Result<Slot, Failure> {
    let slot = f.empty_slots(count)?;
    untyped.retype(kind, slot, count)?;
    Ok(slot)
}

fn make_frame(f: &mut Fixture, untyped: Untyped) -> Result<Frame, Failure> {
    Ok(make(f, untyped, ObjectType::Page, 1)?.capability())
}

/// Bytes left, which a Retype of something larger than any memory tells.
fn bytes_left(f: &mut Fixture, untyped: Untyped) -> Result<u64, Failure> {
    let slot = f.empty_slot()?;
    let words = [object::UNTYPED, 47, 0, 0, slot.index(), 1];
    let retype = Invocation::new(
        untyped,
        label::UNTYPED_RETYPE,
        &words,
        &[boot::CNODE.cptr()],
    );
    let answer = retype.call();
    f.process.resources.free_slot(slot);
    ensure_eq!(answer.label, NotEnoughMemory as u64);
    ensure_eq!(answer.words.len(), 1);
    Ok(answer.words[0])
}

fn aligned(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(16)?;
    make(f, untyped, ObjectType::Endpoint, 1)?;
    let first = make_frame(f, untyped)?.physical_address()?;
    ensure_eq!(first % PAGE_BYTES, 0);
    make(f, untyped, ObjectType::Endpoint, 3)?;
    let more = make(f, untyped, ObjectType::Page, 3)?;
    for i in 0..3 {
        let frame: Frame = boot::CNODE.slot(more.index() + i).capability();
        // The page of the three endpoints lies between.
        ensure_eq!(frame.physical_address()?, first + (2 + i) * PAGE_BYTES);
    }
    let large = f.untyped(22)?;
    make(f, large, ObjectType::Page, 1)?;
    let frame: Frame = make(f, large, ObjectType::LargePage, 1)?.capability();
    ensure_eq!(frame.physical_address()? % FrameSize::Large.bytes(), 0);
    ensure_eq!(bytes_left(f, large)?, 0);
    Ok(())
}

fn sizes(f: &mut Fixture) -> TestResult {
    let kinds = [
        (ObjectType::Tcb, 11),
        (ObjectType::Endpoint, 4),
        (ObjectType::Notification, 6),
        (ObjectType::Reply, 5),
        (ObjectType::CNode(1), 6),
        (ObjectType::CNode(6), 11),
        (ObjectType::SchedContext(7), 7),
        (ObjectType::SchedContext(9), 9),
        (ObjectType::Untyped(4), 4),
        (ObjectType::Untyped(12), 12),
        (ObjectType::Page, 12),
        (ObjectType::PageTable, 12),
        (ObjectType::PageDirectory, 12),
        (ObjectType::Pdpt, 12),
        (ObjectType::Pml4, 12),
    ];
    for (kind, bits) in kinds {
        let untyped = f.untyped(14)?;
        make(f, untyped, kind, 1)?;
        ensure_eq!(
            (kind, bytes_left(f, untyped)?),
            (kind, (1 << 14) - (1 << bits))
        );
        make(f, untyped, kind, 2)?;
        ensure_eq!(
            (kind, bytes_left(f, untyped)?),
            (kind, (1 << 14) - 3 * (1 << bits))
        );
    }
    Ok(())
}

fn gaps_lost(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(12)?;
    make(f, untyped, ObjectType::Endpoint, 1)?;
    ensure_eq!(bytes_left(f, untyped)?, 4096 - 16);
    make(f, untyped, ObjectType::Notification, 1)?;
    ensure_eq!(bytes_left(f, untyped)?, 4096 - 128);
    make(f, untyped, ObjectType::Endpoint, 1)?;
    ensure_eq!(bytes_left(f, untyped)?, 4096 - 144);
    make(f, untyped, ObjectType::Tcb, 1)?;
    ensure_eq!(bytes_left(f, untyped)?, 0);
    f.slot_of(untyped).revoke()?;
    ensure_eq!(bytes_left(f, untyped)?, 4096);
    make(f, untyped, ObjectType::Tcb, 2)?;
    Ok(())
}

fn refusal_uses_nothing(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(12)?;
    let used = make(f, untyped, ObjectType::Endpoint, 1)?;
    let words = [object::NOTIFICATION, 0, 0, 0, used.index(), 1];
    let retype = Invocation::new(
        untyped,
        label::UNTYPED_RETYPE,
        &words,
        &[boot::CNODE.cptr()],
    );
    retype.expect_unchanged(f, DeleteFirst, &[], |f| bytes_left(f, untyped))?;
    retype
        .with_word(5, 0)
        .expect_unchanged(f, RangeError, &[1, 256], |f| bytes_left(f, untyped))
}

fn reset_after_the_last_child(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(13)?;
    let first = make_frame(f, untyped)?;
    let second = make(f, untyped, ObjectType::Endpoint, 1)?;
    let address = first.physical_address()?;
    f.slot_of(first).delete()?;
    // One child is left: nothing is free again.
    ensure_eq!(bytes_left(f, untyped)?, 4096 - 16);
    second.delete()?;
    ensure_eq!(bytes_left(f, untyped)?, 8192);
    ensure_eq!(make_frame(f, untyped)?.physical_address()?, address);
    ensure_eq!(bytes_left(f, untyped)?, 4096);
    Ok(())
}

fn reset_after_revoke(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(14)?;
    let address = make_frame(f, untyped)?.physical_address()?;
    for used in 0..3 {
        for _ in 0..used {
            make_frame(f, untyped)?;
        }
        f.slot_of(untyped).revoke()?;
        ensure_eq!(bytes_left(f, untyped)?, 1 << 14);
        ensure_eq!(make_frame(f, untyped)?.physical_address()?, address);
    }
    Ok(())
}

/// Fills frames with `byte`, or finds out whether all their bytes are `byte`.
fn fill(f: &mut Fixture, frame: Frame, byte: u8) -> TestResult {
    let process = &mut f.process;
    process
        .space
        .fill_frame(&mut process.resources, frame, |page| page.fill(byte))?;
    Ok(())
}

fn ensure_zero(f: &mut Fixture, frame: Frame) -> TestResult {
    let process = &mut f.process;
    let mut nonzero = None;
    process
        .space
        .fill_frame(&mut process.resources, frame, |page| {
            nonzero = page.iter().position(|&byte| byte != 0);
        })?;
    ensure!(nonzero.is_none(), "byte {nonzero:?} of new memory is not 0");
    Ok(())
}

fn zeroed_frames(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(14)?;
    for _ in 0..2 {
        let first = make(f, untyped, ObjectType::Page, 4)?.index();
        for index in first..first + 4 {
            let frame = boot::CNODE.slot(index).capability();
            ensure_zero(f, frame)?;
            fill(f, frame, 0xa5)?;
        }
        f.slot_of(untyped).revoke()?;
    }
    // Not only what the first object after the reset needs is zeroed.
    make(f, untyped, ObjectType::Endpoint, 1)?;
    for _ in 1..4 {
        let frame = make_frame(f, untyped)?;
        ensure_zero(f, frame)?;
    }
    Ok(())
}

fn zeroed_slots(f: &mut Fixture) -> TestResult {
    // Smaller than the steps in which memory is zeroed.
    let untyped = f.untyped(7)?;
    for _ in 0..2 {
        let cnode: CNode = make(f, untyped, ObjectType::CNode(2), 1)?.capability();
        for index in 0..4 {
            let slot = cnode.slot_at(index, 2);
            ensure!(
                f.is_empty(slot)?,
                "slot {index} of a new CNode is not empty"
            );
            slot.copy_from(boot::CNODE.slot(boot::TCB.address()), Rights::ALL)?;
        }
        f.slot_of(untyped).revoke()?;
    }
    Ok(())
}

fn zeroed_through_child(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(14)?;
    let child: Untyped = make(f, untyped, ObjectType::Untyped(13), 1)?.capability();
    make_frame(f, child)?;
    let frame = make_frame(f, child)?;
    fill(f, frame, 0x5a)?;
    f.slot_of(untyped).revoke()?;
    let child: Untyped = make(f, untyped, ObjectType::Untyped(13), 1)?.capability();
    for _ in 0..2 {
        let frame = make_frame(f, child)?;
        ensure_zero(f, frame)?;
    }
    Ok(())
}

/// A thread with little budget resets 1 MiB; each time it runs it continues.
fn preempted_reset(f: &mut Fixture) -> TestResult {
    const BITS: u32 = 20;
    let untyped = f.untyped(BITS)?;
    let last = make(f, untyped, ObjectType::Page, 256)?.index() + 255;
    let last = boot::CNODE.slot(last).capability();
    fill(f, last, 0xa5)?;
    f.slot_of(untyped).revoke()?;
    let first = f.empty_slots(256)?;
    let done = f.done;
    let params = f.active_on(100, SchedParams::new(30, 1_000))?;
    f.spawn(params, move || {
        if untyped.retype(ObjectType::Page, first, 256).is_ok() {
            done.signal();
        }
    })?;
    f.settle()?;
    ensure!(f.is_empty(first)?, "1 MiB was zeroed in 30 µs");
    done.wait();
    for index in [0, 100, 255] {
        let frame = boot::CNODE.slot(first.index() + index).capability();
        ensure_zero(f, frame)?;
    }
    Ok(())
}

fn device_reset(f: &mut Fixture) -> TestResult {
    let untyped = f.device_untyped(13)?;
    ensure_eq!(bytes_left(f, untyped)?, 8192);
    let address = make_frame(f, untyped)?.physical_address()?;
    ensure_eq!(bytes_left(f, untyped)?, 4096);
    ensure_eq!(make_frame(f, untyped)?.physical_address()?, address + 4096);
    f.slot_of(untyped).revoke()?;
    ensure_eq!(bytes_left(f, untyped)?, 8192);
    ensure_eq!(make_frame(f, untyped)?.physical_address()?, address);
    Ok(())
}

fn address_order(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(20)?;
    let first = make(f, untyped, ObjectType::Page, 256)?.index();
    let mut next = None;
    for index in first..first + 256 {
        let frame: Frame = boot::CNODE.slot(index).capability();
        let address = frame.physical_address()?;
        ensure_eq!(address, next.unwrap_or(address));
        next = Some(address + PAGE_BYTES);
    }
    Ok(())
}
