//! 01, section 5.2: the receive phase, step by step.

use conformance_kit::arch::order::{R12, R13, RDI, RSI};

use super::cspaces::OddSpace;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "01/5.2/a-failing-walk-is-a-fault-of-every-receive",
        walk_failures,
    ),
    check("01/5.2/without-a-cspace-the-root-is-invalid", no_cspace),
    check(
        "01/5.2/an-endpoint-without-read-is-missing",
        endpoint_without_read,
    ),
    check(
        "01/5.2/a-failing-walk-of-the-reply-names-the-reply",
        reply_walk_failures,
    ),
    check("01/5.2/what-is-no-reply-object-is-missing", not_a_reply),
    check(
        "01/5.2/the-endpoint-is-checked-before-the-reply",
        endpoint_before_reply,
    ),
    check(
        "01/5.2/variants-of-wait-do-not-look-at-the-reply",
        wait_without_reply,
    ),
    check(
        "01/5.2/a-notification-without-read-is-missing",
        notification_without_read,
    ),
    check(
        "01/5.2/a-notification-bound-to-another-thread-is-missing",
        bound_to_another,
    ),
    check(
        "01/5.2/ones-own-bound-notification-can-be-waited-for",
        bound_to_oneself,
    ),
    check(
        "01/5.2/for-a-notification-the-reply-is-not-looked-at",
        notification_ignores_reply,
    ),
    check("01/5.2/any-other-capability-is-missing", other_capabilities),
];

/// The system calls that receive, and whether they look at a reply object.
const RECEIVES: [(Syscall, bool); 7] = [
    (Syscall::Recv, true),
    (Syscall::NBRecv, true),
    (Syscall::Wait, false),
    (Syscall::NBWait, false),
    (Syscall::ReplyRecv, true),
    (Syscall::NBSendRecv, true),
    (Syscall::NBSendWait, false),
];

/// MissingCapability with no bits left.
const MISSING: [u64; 2] = [2, 0];

/// Registers for a receive phase without a first phase of effect: its capability is null.
fn receive(call: Syscall, source: u64, reply: u64) -> UserContext {
    let reply = match call {
        Syscall::NBSendWait => 0,
        _ => reply,
    };
    entry(call, &[(RDI, source), (RSI, 0), (R12, reply), (R13, 0)])
}

fn walk_failures(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let reply = f.reply()?;
    let reply = space.add(f, reply)?;
    for (call, _) in RECEIVES {
        for case in &space.failing {
            let thread = f.caller(&receive(call, case.address, reply))?;
            space.give_to(thread)?;
            let stopped = thread.run(f)?;
            thread.expect_cap_fault(&stopped, case.address, true, &case.failure)?;
        }
    }
    Ok(())
}

fn no_cspace(f: &mut Fixture) -> TestResult {
    for (call, _) in RECEIVES {
        let root = f.cnode(4)?;
        let thread = f.caller(&receive(call, 5, 6))?;
        thread.use_cspace(root, GuardData(0))?;
        f.slot_of(root).revoke()?;
        let stopped = thread.run(f)?;
        thread.expect_cap_fault(&stopped, 5, true, &[1])?;
    }
    Ok(())
}

/// Fails unless every receive from `source` faults with MissingCapability of `source`.
fn expect_missing(f: &mut Fixture, source: CPtr, reply: u64) -> TestResult {
    for (call, _) in RECEIVES {
        let thread = f.caller(&receive(call, source.raw(), reply))?;
        let stopped = thread.run(f)?;
        thread.expect_cap_fault(&stopped, source.raw(), true, &MISSING)?;
    }
    Ok(())
}

fn endpoint_without_read(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let rights = Rights::WRITE
        .union(Rights::GRANT)
        .union(Rights::GRANT_REPLY);
    let weak = f.with_rights(endpoint, rights)?;
    expect_missing(f, weak.cptr(), reply.address())
}

fn reply_walk_failures(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let endpoint = f.endpoint()?;
    let source = space.add(f, endpoint)?;
    for (call, _) in RECEIVES.into_iter().filter(|&(_, reads_reply)| reads_reply) {
        for case in &space.failing {
            let thread = f.caller(&receive(call, source, case.address))?;
            space.give_to(thread)?;
            let stopped = thread.run(f)?;
            thread.expect_cap_fault(&stopped, case.address, true, &case.failure)?;
        }
    }
    Ok(())
}

fn not_a_reply(f: &mut Fixture) -> TestResult {
    let (endpoint, tcb, notification) = (f.endpoint()?, f.tcb()?, f.notification()?);
    let null: CPtr = f.null()?;
    for other in [null, endpoint.cptr(), tcb.cptr(), notification.cptr()] {
        for (call, _) in RECEIVES.into_iter().filter(|&(_, reads_reply)| reads_reply) {
            let thread = f.caller(&receive(call, endpoint.address(), other.raw()))?;
            let stopped = thread.run(f)?;
            thread.expect_cap_fault(&stopped, other.raw(), true, &MISSING)?;
        }
    }
    Ok(())
}

fn endpoint_before_reply(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let weak = f.with_rights(endpoint, Rights::WRITE)?;
    expect_missing(f, weak.cptr(), 1 << 63)
}

fn wait_without_reply(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Wait, Syscall::NBWait] {
        for reply in [0, 1 << 63, boot::TCB.address()] {
            let endpoint = f.endpoint()?;
            let before = entry(call, &[(RDI, endpoint.address()), (R12, reply)]);
            let sender = f.badged(endpoint, 3)?;
            f.helper(200, move || sender.send(Message::EMPTY))?;
            f.settle()?;
            let thread = f.caller(&before)?;
            let stopped = thread.run(f)?;
            thread.expect_return(&stopped, &before, &[(RDI, 3), (RSI, 0)])?;
        }
    }
    Ok(())
}

fn notification_without_read(f: &mut Fixture) -> TestResult {
    let (notification, reply) = (f.notification()?, f.reply()?);
    let weak = f.with_rights(notification, Rights::WRITE)?;
    weak.signal();
    expect_missing(f, weak.cptr(), reply.address())
}

fn bound_to_another(f: &mut Fixture) -> TestResult {
    let (notification, tcb, reply) = (f.notification()?, f.tcb()?, f.reply()?);
    tcb.bind_notification(notification)?;
    notification.signal();
    expect_missing(f, notification.cptr(), reply.address())
}

fn bound_to_oneself(f: &mut Fixture) -> TestResult {
    for (call, _) in RECEIVES {
        let notification = f.notification()?;
        f.badged(notification, 5)?.signal();
        let before = receive(call, notification.address(), 0);
        let thread = f.caller(&before)?;
        thread.tcb.bind_notification(notification)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[(RDI, 5)])?;
    }
    Ok(())
}

fn notification_ignores_reply(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 5)?;
    for (call, _) in RECEIVES {
        for reply in [0, 1 << 63, boot::ASID_POOL.address()] {
            badged.signal();
            let before = receive(call, notification.address(), reply);
            let thread = f.caller(&before)?;
            let stopped = thread.run(f)?;
            thread.expect_return(&stopped, &before, &[(RDI, 5)])?;
        }
    }
    Ok(())
}

fn other_capabilities(f: &mut Fixture) -> TestResult {
    let reply = f.reply()?;
    let null: CPtr = f.null()?;
    let others = [
        null,
        CPtr::NULL,
        f.tcb()?.cptr(),
        f.reply()?.cptr(),
        f.cnode(1)?.cptr(),
        f.untyped(12)?.cptr(),
        f.unconfigured_context(7)?.cptr(),
        f.frame(FrameSize::Small)?.cptr(),
        boot::IRQ_CONTROL.cptr(),
        boot::ASID_POOL.cptr(),
    ];
    others
        .into_iter()
        .try_for_each(|other| expect_missing(f, other, reply.address()))
}
