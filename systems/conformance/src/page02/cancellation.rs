//! 02, section 7.4: CancelBadgedSends.

use super::support::{delete, unmapped_pages};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/7.4/cancelled-senders-restart", cancelled_senders),
    check(
        "02/7.4/cancelling-keeps-the-order-of-the-others",
        cancel_keeps_order,
    ),
    check("02/7.4/cancelling-badge-0-does-nothing", cancel_unbadged),
    check("02/7.4/cancelling-leaves-receivers", cancel_receivers),
    check("02/7.4/cancelled-faulters-stop", cancelled_faulters),
];

/// A sender of priority 100 that notes its number when its Send is over.
fn sender(f: &mut Fixture, cap: Endpoint, trace: &'static Trace, number: u64) -> TestResult {
    f.helper(100, move || {
        cap.send(Message::new(number, []));
        trace.note(number);
    })?;
    Ok(f.settle()?)
}

fn cancelled_senders(f: &mut Fixture) -> TestResult {
    let (endpoint, trace) = (f.endpoint()?, Trace::leak());
    let badged = f.badged(endpoint, 1)?;
    let sending = f.copy(badged)?;
    sender(f, sending, trace, 5)?;
    let calling = f.copy(badged)?;
    f.helper(99, move || {
        let answer = calling.call(Message::EMPTY);
        trace.note(answer.label());
    })?;
    f.settle()?;
    // Restarted they find their capabilities gone: Send says nothing, Call is told.
    delete(f, sending)?;
    delete(f, calling)?;
    f.slot_of(badged).cancel_badged_sends()?;
    f.settle()?;
    ensure_eq!(trace.events(), [5, InvalidCapability as u64]);
    // The endpoint is idle: a receiver finds nobody, and then a sender a receiver.
    ensure_eq!(endpoint.nb_wait().badge, 0);
    Ok(())
}

fn cancel_keeps_order(f: &mut Fixture) -> TestResult {
    let (endpoint, trace) = (f.endpoint()?, Trace::leak());
    let (one, two) = (f.badged(endpoint, 1)?, f.badged(endpoint, 2)?);
    for (cap, number) in [
        (one, 1),
        (two, 2),
        (two, 3),
        (one, 4),
        (endpoint, 5),
        (two, 6),
        (one, 7),
    ] {
        sender(f, cap, trace, number)?;
    }
    f.slot_of(one).cancel_badged_sends()?;
    // The others stand where they stood; those cancelled send again, behind them.
    f.settle()?;
    let mut received = Vec::new();
    for _ in 0..7 {
        received.push(endpoint.nb_wait().message.label());
    }
    ensure_eq!(received[..4], [2, 3, 5, 6]);
    received[4..].sort_unstable();
    ensure_eq!(received[4..], [1, 4, 7]);
    Ok(())
}

fn cancel_unbadged(f: &mut Fixture) -> TestResult {
    let (endpoint, trace) = (f.endpoint()?, Trace::leak());
    let gone = f.copy(endpoint)?;
    sender(f, gone, trace, 1)?;
    delete(f, gone)?;
    // It would restart, and find its capability gone.
    f.slot_of(endpoint).cancel_badged_sends()?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    ensure_eq!(endpoint.nb_wait().message.label(), 1);
    Ok(())
}

fn cancel_receivers(f: &mut Fixture) -> TestResult {
    let (endpoint, trace) = (f.endpoint()?, Trace::leak());
    let badged = f.badged(endpoint, 1)?;
    let receiving = f.copy(badged)?;
    f.helper(100, move || trace.note(receiving.wait().badge))?;
    f.settle()?;
    delete(f, receiving)?;
    f.slot_of(badged).cancel_badged_sends()?;
    f.settle()?;
    badged.nb_send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn cancelled_faulters(f: &mut Fixture) -> TestResult {
    let (endpoint, trace) = (f.endpoint()?, Trace::leak());
    let (handler, other) = (f.badged(endpoint, 7)?, f.badged(endpoint, 8)?);
    let address = unmapped_pages(f, 1)?;
    let frame = f.frame(FrameSize::Small)?;
    let mut threads = Vec::new();
    for (cap, number) in [(handler, 1), (other, 2)] {
        let params = ThreadParams {
            fault_handler: Some(cap),
            ..f.active(100)?
        };
        threads.push(f.spawn(params, move || {
            // SAFETY: mapped before the thread gets beyond this.
            unsafe { (address as *const u64).read_volatile() };
            trace.note(number);
        })?);
    }
    f.settle()?;
    frame.map(boot::VSPACE, address, Rights::ALL, Attributes::WriteBack)?;
    f.slot_of(handler).cancel_badged_sends()?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    // The other one's fault is still there.
    let received = endpoint.nb_wait();
    ensure_eq!(
        (received.badge, received.message.label()),
        (8, fault::VM_FAULT)
    );
    ensure_eq!(endpoint.nb_wait().badge, 0);
    threads[0].resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}
