//! 01, section 5.1: the invocation phase, step by step.

use conformance_kit::arch::order::{R10, R12, R15, R8, R9, RDI, RSI};

use super::cspaces::OddSpace;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "01/5.1/a-failing-walk-is-a-fault-of-send-and-call",
        walk_failures,
    ),
    check(
        "01/5.1/a-failing-walk-is-silent-in-nbsend",
        walk_failures_nb,
    ),
    check("01/5.1/without-a-cspace-the-root-is-invalid", no_cspace),
    check(
        "01/5.1/a-lookup-ends-at-the-first-capability-that-is-no-cnode",
        early_success,
    ),
    check(
        "01/5.1/a-failing-extra-capability-is-a-fault-of-send-and-call",
        extra_cap_failures,
    ),
    check(
        "01/5.1/a-failing-extra-capability-silences-nbsend",
        extra_cap_failures_nb,
    ),
    check(
        "01/5.1/extra-capabilities-are-looked-up-before-the-dispatch",
        extra_caps_first,
    ),
    check(
        "01/5.1/extra-capabilities-beyond-the-count-are-not-looked-up",
        extra_caps_count,
    ),
    check(
        "01/5.1/the-first-failing-extra-capability-counts",
        first_failing_extra_cap,
    ),
    check(
        "01/5.1/the-invoked-capability-is-looked-up-first",
        invoked_first,
    ),
    check("01/5.1/a-null-extra-capability-is-fine", null_extra_cap),
    check(
        "01/5.1/without-a-buffer-no-extra-capability-fails",
        no_buffer_no_failure,
    ),
    check("01/5.1/a-null-capability-is-invalid", null_capability),
    check(
        "01/5.1/an-endpoint-without-write-is-invalid",
        endpoint_without_write,
    ),
    check(
        "01/5.1/a-notification-without-write-is-invalid",
        notification_without_write,
    ),
    check(
        "01/5.1/call-on-a-notification-signals-and-succeeds",
        call_notification,
    ),
    check(
        "01/5.1/a-signal-ignores-the-message",
        signal_ignores_message,
    ),
    check(
        "01/5.1/a-reply-object-without-a-caller-succeeds",
        idle_reply,
    ),
    check(
        "01/5.1/call-on-a-reply-object-replies-and-succeeds",
        call_reply,
    ),
    check(
        "01/5.1/send-and-nbsend-invoke-objects-silently",
        silent_invocations,
    ),
    check(
        "01/5.1/errors-of-send-and-nbsend-are-not-reported",
        silent_errors,
    ),
    check(
        "01/5.1/success-without-data-leaves-message-registers",
        success_registers,
    ),
];

const BLOCKING: [Syscall; 2] = [Syscall::Send, Syscall::Call];

/// A raw thread in an odd CSpace.
fn thread_in(
    f: &mut Fixture,
    space: &OddSpace,
    before: &UserContext,
) -> Result<RawThread, Failure> {
    let thread = f.caller(before)?;
    space.give_to(thread)?;
    Ok(thread)
}

fn walk_failures(f: &mut Fixture) -> TestResult {
    let space = OddSpace::new(f)?;
    for call in BLOCKING {
        for case in &space.failing {
            let before = entry(call, &[(RDI, case.address), (RSI, 0)]);
            let thread = thread_in(f, &space, &before)?;
            let stopped = thread.run(f)?;
            thread.expect_cap_fault(&stopped, case.address, false, &case.failure)?;
        }
    }
    // In the CSpace of this program: its root has a guard of zeros.
    let thread = f.caller(&entry(Syscall::Call, &[(RDI, 1 << 63), (RSI, 0)]))?;
    let stopped = thread.run(f)?;
    let failure = &stopped.words[3..];
    ensure!(
        failure.len() == 4 && failure[..3] == [4, 64, 0],
        "expected a guard mismatch, saw {failure:x?}"
    );
    Ok(())
}

fn walk_failures_nb(f: &mut Fixture) -> TestResult {
    let space = OddSpace::new(f)?;
    for case in &space.failing {
        let before = entry(Syscall::NBSend, &[(RDI, case.address)]);
        let thread = thread_in(f, &space, &before)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[])?;
    }
    Ok(())
}

fn no_cspace(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Send, Syscall::Call, Syscall::NBSend] {
        let root = f.cnode(4)?;
        let before = entry(call, &[(RDI, 1), (RSI, 0)]);
        let thread = f.caller(&before)?;
        thread.use_cspace(root, GuardData(0))?;
        // Takes the thread's copy away.
        f.slot_of(root).revoke()?;
        let stopped = thread.run(f)?;
        if call == Syscall::NBSend {
            thread.expect_return(&stopped, &before, &[])?;
        } else {
            thread.expect_cap_fault(&stopped, 1, false, &[1])?;
        }
    }
    Ok(())
}

fn early_success(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let address = space.add(f, endpoint)?;
    for low in [0, 1, 0x0123_4567_89ab_cdef, (1 << 60) - 1] {
        let before = entry(Syscall::Send, &[(RDI, address | low), (RSI, 0)]);
        let thread = thread_in(f, &space, &before)?;
        thread.start()?;
        endpoint.recv(reply);
        thread.expect_return(&thread.stopped(f)?, &before, &[])?;
    }
    // An empty slot is a null capability, not a failure of the walk.
    let before = entry(Syscall::Call, &[(RDI, space.empty() | 77), (RSI, 0)]);
    let thread = thread_in(f, &space, &before)?;
    let stopped = thread.run(f)?;
    expect_invalid_capability(&thread, &stopped, &before)
}

/// Fails unless a call returned with InvalidCapability(0).
fn expect_invalid_capability(
    thread: &RawThread,
    stopped: &Stopped,
    before: &UserContext,
) -> TestResult {
    let info = MessageInfo::new(InvalidCapability as u64, 0, 0, 1).raw();
    thread.expect_return(stopped, before, &[(RDI, 0), (RSI, info), (R10, 0)])
}

/// Runs a thread that sends these extra capabilities to `target`, an address in its space.
fn send_caps(
    f: &mut Fixture,
    space: &OddSpace,
    call: Syscall,
    target: u64,
    caps: &[u64],
) -> Result<(RawThread, UserContext), Failure> {
    let info = MessageInfo::new(0, 0, caps.len(), 0).raw();
    let before = entry(call, &[(RDI, target), (RSI, info)]);
    let thread = thread_in(f, space, &before)?;
    let buffer = f.buffer()?;
    for (i, &cap) in caps.iter().enumerate() {
        buffer.write(ipc_buffer::CAPS_OR_BADGES + i, cap);
    }
    thread.use_buffer(buffer)?;
    thread.start()?;
    Ok((thread, before))
}

fn extra_cap_failures(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let endpoint = f.endpoint()?;
    let target = space.add(f, endpoint)?;
    for call in BLOCKING {
        for case in &space.failing {
            for position in 0..3 {
                let mut caps = [target; 3];
                caps[position] = case.address;
                let (thread, _) = send_caps(f, &space, call, target, &caps)?;
                let stopped = thread.stopped(f)?;
                thread.expect_cap_fault(&stopped, case.address, false, &case.failure)?;
            }
        }
    }
    Ok(())
}

fn extra_cap_failures_nb(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let (endpoint, received) = (f.endpoint()?, Trace::leak());
    let target = space.add(f, endpoint)?;
    f.helper(200, move || loop {
        received.note(endpoint.wait().message.label());
    })?;
    f.settle()?;
    for case in &space.failing.clone() {
        let (thread, before) = send_caps(f, &space, Syscall::NBSend, target, &[case.address])?;
        thread.expect_return(&thread.stopped(f)?, &before, &[])?;
        f.settle()?;
        ensure!(received.is_empty(), "the message was delivered");
    }
    Ok(())
}

fn extra_caps_first(f: &mut Fixture) -> TestResult {
    // Targets that would be refused, or would not look at capabilities.
    let mut space = OddSpace::new(f)?;
    let (notification, tcb) = (f.notification()?, f.tcb()?);
    let targets = [
        space.empty(),
        space.add(f, notification)?,
        space.add(f, tcb)?,
    ];
    let case = space.failing[0].clone();
    for target in targets {
        let (thread, _) = send_caps(f, &space, Syscall::Call, target, &[case.address])?;
        let stopped = thread.stopped(f)?;
        thread.expect_cap_fault(&stopped, case.address, false, &case.failure)?;
    }
    ensure_eq!(notification.poll(), 0);
    Ok(())
}

fn extra_caps_count(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let target = space.add(f, endpoint)?;
    let bad = space.failing[0].address;
    for count in 0..3 {
        let info = MessageInfo::new(0, 0, count, 0).raw();
        let before = entry(Syscall::Send, &[(RDI, target), (RSI, info)]);
        let thread = thread_in(f, &space, &before)?;
        let buffer = f.buffer()?;
        for i in 0..3 {
            let cap = if i < count { target } else { bad };
            buffer.write(ipc_buffer::CAPS_OR_BADGES + i, cap);
        }
        thread.use_buffer(buffer)?;
        thread.start()?;
        endpoint.recv(reply);
        thread.expect_return(&thread.stopped(f)?, &before, &[])?;
    }
    Ok(())
}

fn first_failing_extra_cap(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let endpoint = f.endpoint()?;
    let target = space.add(f, endpoint)?;
    let (one, two) = (space.failing[1].clone(), space.failing[2].clone());
    let caps = [target, two.address, one.address];
    let (thread, _) = send_caps(f, &space, Syscall::Send, target, &caps)?;
    let stopped = thread.stopped(f)?;
    thread.expect_cap_fault(&stopped, two.address, false, &two.failure)
}

fn invoked_first(f: &mut Fixture) -> TestResult {
    let space = OddSpace::new(f)?;
    let (target, extra) = (space.failing[1].clone(), space.failing[0].clone());
    for call in BLOCKING {
        let (thread, _) = send_caps(f, &space, call, target.address, &[extra.address])?;
        let stopped = thread.stopped(f)?;
        thread.expect_cap_fault(&stopped, target.address, false, &target.failure)?;
    }
    Ok(())
}

fn null_extra_cap(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let target = space.add(f, endpoint)?;
    let (thread, before) = send_caps(f, &space, Syscall::Send, target, &[space.empty()])?;
    let received = endpoint.recv(reply).message;
    ensure_eq!(received.info().extra_caps(), 0);
    thread.expect_return(&thread.stopped(f)?, &before, &[])
}

fn no_buffer_no_failure(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let info = MessageInfo::new(0, 0, 3, 0).raw();
    let before = entry(Syscall::Send, &[(RDI, endpoint.address()), (RSI, info)]);
    let thread = f.caller(&before)?;
    thread.start()?;
    endpoint.recv(reply);
    thread.expect_return(&thread.stopped(f)?, &before, &[])
}

/// Fails unless Call answers InvalidCapability(0), and Send and NBSend nothing.
fn expect_invalid_target(f: &mut Fixture, target: impl Capability) -> TestResult {
    for call in [Syscall::Send, Syscall::NBSend, Syscall::Call] {
        let before = entry(call, &[(RDI, target.cptr().raw()), (RSI, 0)]);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        if call == Syscall::Call {
            expect_invalid_capability(&thread, &stopped, &before)?;
        } else {
            thread.expect_return(&stopped, &before, &[])?;
        }
    }
    Ok(())
}

fn null_capability(f: &mut Fixture) -> TestResult {
    let null: CPtr = f.null()?;
    expect_invalid_target(f, null)?;
    expect_invalid_target(f, CPtr::NULL)
}

fn endpoint_without_write(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let rights = Rights::READ.union(Rights::GRANT).union(Rights::GRANT_REPLY);
    let weak = f.with_rights(endpoint, rights)?;
    expect_invalid_target(f, weak)
}

fn notification_without_write(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let weak = f.with_rights(notification, Rights::READ)?;
    expect_invalid_target(f, weak)?;
    ensure_eq!(notification.poll(), 0);
    Ok(())
}

fn call_notification(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 0x44)?;
    let info = MessageInfo::new(0x123, 0, 0, 4).raw();
    let before = entry(Syscall::Call, &[(RDI, badged.address()), (RSI, info)]);
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, &before, &[(RDI, 0), (RSI, 0)])?;
    ensure_eq!(notification.poll(), 0x44);
    Ok(())
}

fn signal_ignores_message(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 0x44)?;
    for call in [Syscall::Send, Syscall::NBSend] {
        for info in [0, 1, 120, u64::MAX] {
            let before = entry(call, &[(RDI, badged.address()), (RSI, info)]);
            let thread = f.caller(&before)?;
            let stopped = thread.run(f)?;
            thread.expect_return(&stopped, &before, &[])?;
            ensure_eq!(notification.poll(), 0x44);
        }
    }
    Ok(())
}

fn idle_reply(f: &mut Fixture) -> TestResult {
    let reply = f.reply()?;
    for call in [Syscall::Send, Syscall::NBSend, Syscall::Call] {
        let before = entry(call, &[(RDI, reply.address()), (RSI, 4)]);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        let produced: &[(usize, u64)] = match call {
            Syscall::Call => &[(RDI, 0), (RSI, 0)],
            _ => &[],
        };
        thread.expect_return(&stopped, &before, produced)?;
    }
    Ok(())
}

fn call_reply(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Send, Syscall::NBSend, Syscall::Call] {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let client_before = entry(Syscall::Call, &[(RDI, endpoint.address()), (RSI, 0)]);
        let client = f.caller(&client_before)?;
        client.start()?;
        endpoint.recv(reply);
        let info = MessageInfo::new(0x123, 0, 0, 2).raw();
        let named = [(RDI, reply.address()), (RSI, info), (R10, 5), (R8, 6)];
        let before = entry(call, &named);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        let produced: &[(usize, u64)] = match call {
            Syscall::Call => &[(RDI, 0), (RSI, 0)],
            _ => &[],
        };
        thread.expect_return(&stopped, &before, produced)?;
        let answer = [(RDI, 0), (RSI, info), (R10, 5), (R8, 6)];
        client.expect_return(&client.stopped(f)?, &client_before, &answer)?;
    }
    Ok(())
}

/// Registers that ask a TCB to set the flags `set`.
fn set_flags(call: Syscall, tcb: Tcb, length: usize, set: u64) -> UserContext {
    let info = MessageInfo::new(label::TCB_SET_FLAGS, 0, 0, length).raw();
    let named = [(RDI, tcb.address()), (RSI, info), (R10, 0), (R8, set)];
    entry(call, &named)
}

fn silent_invocations(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Send, Syscall::NBSend] {
        let tcb = f.tcb()?;
        let before = set_flags(call, tcb, 2, 1);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[])?;
        ensure_eq!(tcb.set_flags(0, 0)?, 1);
    }
    Ok(())
}

fn silent_errors(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Send, Syscall::NBSend] {
        let tcb = f.tcb()?;
        let before = set_flags(call, tcb, 1, 1);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[])?;
        ensure_eq!(tcb.set_flags(0, 0)?, 0);
    }
    Ok(())
}

fn success_registers(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let info = MessageInfo::new(label::TCB_SUSPEND, 0, 0, 0).raw();
    let before = entry(Syscall::Call, &[(RDI, tcb.address()), (RSI, info)]);
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, &before, &[(RDI, 0), (RSI, 0)])?;
    // With one word, one register.
    let before = changed(
        &set_flags(Syscall::Call, tcb, 2, 1),
        &[(R12, 1), (R9, 2), (R15, 3)],
    );
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    let info = MessageInfo::new(0, 0, 0, 1).raw();
    thread.expect_return(&stopped, &before, &[(RDI, 0), (RSI, info), (R10, 1)])
}
