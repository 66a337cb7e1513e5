//! 02, section 8: where a transferred capability goes.

use sandglass::abi::message::ipc_buffer::RECEIVE_CNODE;
use sandglass::thread_block;

use super::transfer::{arrival, mark_badges, Receiver, Seen, NONE, UNTOUCHED};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/8/receive-slots-that-are-none", bad_receive_slots),
    check(
        "02/8/the-receive-slot-in-a-nested-cnode",
        nested_receive_slot,
    ),
    check(
        "02/8/the-receive-cnode-is-looked-up-as-by-a-system-call",
        early_receive_cnode,
    ),
];

fn bad_receive_slots(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let endpoint = receiver.endpoint;
    let (tcb, badged) = (f.tcb()?.cptr(), f.badged(endpoint, 4)?.cptr());
    let (root, index) = (boot::CNODE.address(), receiver.slot.index());
    let null: CPtr = f.null()?;
    let cnode = f.cnode(3)?;
    let link = cnode.slot_at(1, 3);
    link.copy_from(f.slot_of(cnode), Rights::ALL)?;
    let bad = [
        // No CNode: null, of another kind, beyond the CSpace's guard.
        (null.raw(), index, 64),
        (tcb.raw(), index, 64),
        (1 << 40, index, 64),
        // Depths out of range, and such that do not lead to a slot.
        (root, index, 0),
        (root, index, 65),
        (root, index, 13),
        (root, index, 320),
        // Bits remain, or a slot is in use.
        (cnode.address(), 0, 4),
        (cnode.address(), 1, 3),
        (root, tcb.raw(), 64),
    ];
    for (cnode, index, depth) in bad {
        receiver.set_slot(cnode, index, depth);
        let arrived = receiver.send(endpoint, &[badged, tcb, badged])?;
        let expected = arrival(1, 1, [4, UNTOUCHED, UNTOUCHED]);
        ensure!(
            arrived == expected,
            "receive slot {cnode:#x} {index:#x} {depth}: {arrived:x?}"
        );
    }
    receiver.set_slot(root, index, 64);
    ensure_eq!(receiver.send(endpoint, &[tcb])?, arrival(1, 0, NONE));
    Ok(())
}

fn nested_receive_slot(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let (outer, inner) = (f.cnode(4)?, f.cnode(3)?);
    let guarded = f.badged(inner, GuardData::new(0b10, 2).raw())?;
    outer
        .slot_at(9, 4)
        .copy_from(f.slot_of(guarded), Rights::ALL)?;
    let endpoint = f.endpoint()?.cptr();
    receiver.set_slot(outer.address(), 9 << 5 | 0b10 << 3 | 5, 9);
    let arrived = receiver.send(receiver.endpoint, &[endpoint])?;
    ensure_eq!(arrived, arrival(1, 0, NONE));
    inner.slot_at(0b101, 3).cancel_badged_sends()?;
    // Higher bits of the index do not count.
    receiver.set_slot(outer.address(), !0 << 9 | 9 << 5 | 0b10 << 3 | 6, 9);
    let arrived = receiver.send(receiver.endpoint, &[endpoint])?;
    ensure_eq!(arrived, arrival(1, 0, NONE));
    Ok(inner.slot_at(0b110, 3).cancel_badged_sends()?)
}

fn early_receive_cnode(f: &mut Fixture) -> TestResult {
    // A receiver with a CSpace of its own: 8 bits lead to a CNode, whose guard takes the rest,
    // or to the endpoint, where the rest is ignored.
    let endpoint = f.endpoint()?;
    let (space, middle, target) = (f.cnode(4)?, f.cnode(2)?, f.cnode(1)?);
    let root = f.badged(space, GuardData::new(0xa, 4).raw())?;
    let long = f.badged(middle, GuardData::new(0x1234, 54).raw())?;
    space
        .slot_at(5, 4)
        .copy_from(f.slot_of(long), Rights::ALL)?;
    space
        .slot_at(6, 4)
        .copy_from(f.slot_of(endpoint), Rights::ALL)?;
    middle
        .slot_at(3, 2)
        .copy_from(f.slot_of(target), Rights::ALL)?;
    let seen: &'static Seen = shared();
    let tcb = f.prepare(f.passive(255), move || {
        let by = Endpoint::at(0xa6 << 56 | 99);
        for cnode in [0xa5 << 56 | 0x1234 << 2 | 3, by.address()] {
            thread_block::write_word(RECEIVE_CNODE, cnode);
            thread_block::write_word(RECEIVE_CNODE + 1, 1);
            thread_block::write_word(RECEIVE_CNODE + 2, 1);
            mark_badges();
            let message = by.wait().message;
            seen.publish(&message);
        }
        by.wait();
    })?;
    let handler = Some(f.unexpected_faults);
    tcb.set_space(handler, root, GuardData(0), boot::VSPACE)?;
    f.context(FULL)?.bind(tcb)?;
    tcb.resume()?;
    let message = Message::new(77, []).with_caps(&[f.endpoint()?.cptr()]);
    endpoint.nb_send(message);
    ensure_eq!(seen.arrival(), arrival(1, 0, NONE));
    target.slot_at(1, 1).cancel_badged_sends()?;
    endpoint.nb_send(message);
    ensure_eq!(seen.arrival(), arrival(0, 0, NONE));
    Ok(())
}
