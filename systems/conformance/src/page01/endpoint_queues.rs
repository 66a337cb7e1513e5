//! 01, sections 5.3 to 5.5: queues of endpoints, empty and full, and receives with a bound notification.

use conformance_kit::arch::order::{R12, R13, RDI, RSI};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "01/5.3/senders-queue-by-priority-then-by-arrival",
        sender_order,
    ),
    check(
        "01/5.3/receivers-queue-by-priority-then-by-arrival",
        receiver_order,
    ),
    check(
        "01/5.4/an-active-bound-notification-comes-before-senders",
        bound_before_senders,
    ),
    check(
        "01/5.4/a-receiver-on-its-notifications-context-gives-it-back",
        gives_context_back,
    ),
    check(
        "01/5.5/a-bound-thread-that-receives-is-woken",
        bound_receiver_woken,
    ),
    check(
        "01/5.5/a-bound-thread-that-sends-is-not-woken",
        bound_sender_not_woken,
    ),
    check(
        "01/5.5/a-bound-thread-that-awaits-an-answer-is-not-woken",
        bound_caller_not_woken,
    ),
    check(
        "01/5.5/a-woken-receivers-reply-object-is-free",
        woken_reply_free,
    ),
    check(
        "01/5.4/without-a-sender-nb-receives-write-only-the-badge",
        nothing_there,
    ),
    check(
        "01/5.4/an-nb-receive-among-receivers-finds-nothing",
        nothing_among_receivers,
    ),
];

/// Priorities in the order of arrival, and indices in the order of service.
const PRIORITIES: [u8; 6] = [50, 80, 50, 80, 120, 10];
const SERVED: [u64; 6] = [4, 1, 3, 0, 2, 5];

fn sender_order(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    for (index, priority) in PRIORITIES.into_iter().enumerate() {
        f.helper(priority, move || {
            endpoint.send(Message::new(0, [index as u64]));
        })?;
        f.settle()?;
    }
    let served: Vec<u64> = PRIORITIES
        .iter()
        .map(|_| endpoint.nb_recv(reply).message.word(0))
        .collect();
    ensure_eq!(served, SERVED);
    Ok(())
}

fn receiver_order(f: &mut Fixture) -> TestResult {
    let (endpoint, trace) = (f.endpoint()?, Trace::leak());
    for (index, priority) in PRIORITIES.into_iter().enumerate() {
        f.helper(priority, move || {
            endpoint.wait();
            trace.note(index as u64);
        })?;
        f.settle()?;
    }
    for _ in PRIORITIES {
        endpoint.nb_send(Message::EMPTY);
        f.settle()?;
    }
    ensure_eq!(trace.events(), SERVED);
    Ok(())
}

fn bound_before_senders(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let queued = f.badged(endpoint, 1)?;
    f.helper(100, move || queued.send(Message::EMPTY))?;
    f.settle()?;
    for call in [
        Syscall::Recv,
        Syscall::NBRecv,
        Syscall::Wait,
        Syscall::NBWait,
        Syscall::NBSendRecv,
    ] {
        let notification = f.notification()?;
        let (one, two) = (f.badged(notification, 0x10)?, f.badged(notification, 0x03)?);
        one.signal();
        two.signal();
        let before = entry(
            call,
            &[(RDI, endpoint.address()), (R12, reply.address()), (R13, 0)],
        );
        let thread = f.caller(&before)?;
        thread.tcb.bind_notification(notification)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[(RDI, 0x13)])?;
        // It was consumed.
        thread.tcb.unbind_notification()?;
        ensure_eq!(notification.poll(), 0);
    }
    // The sender is still there.
    ensure_eq!(endpoint.nb_recv(reply).badge, 1);
    Ok(())
}

fn gives_context_back(f: &mut Fixture) -> TestResult {
    // A thread that runs on the context of the notification that it is bound to receives from a
    // queued plain sender: it has the message, and no context to go on with.
    let (endpoint, notification) = (f.endpoint()?, f.notification()?);
    let (context, trace) = (f.context(FULL)?, Trace::leak());
    let tcb = f.prepare(f.passive(100), move || {
        notification.wait();
        trace.note(1);
        endpoint.wait();
        trace.note(2);
    })?;
    tcb.bind_notification(notification)?;
    context.bind(tcb)?;
    context.bind_notification(notification)?;
    let sender = f.badged(endpoint, 6)?;
    f.helper(90, move || {
        sender.send(Message::EMPTY);
        trace.note(3);
    })?;
    tcb.resume()?;
    f.settle()?;
    // It waits on the notification; the sender is queued.
    ensure_eq!(trace.events(), []);
    notification.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1, 3]);
    // The notification has the context again, and lends it to the next thread that it wakes.
    tcb.unbind_notification()?;
    let other = f.prepare(f.passive(100), move || trace.note(4))?;
    context.bind(other)?;
    other.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, 3, 4]);
    Ok(())
}

fn bound_receiver_woken(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Recv, Syscall::Wait] {
        let (endpoint, notification, reply) = (f.endpoint()?, f.notification()?, f.reply()?);
        let badged = f.badged(notification, 0x21)?;
        let before = entry(call, &[(RDI, endpoint.address()), (R12, reply.address())]);
        let thread = f.caller(&before)?;
        thread.tcb.bind_notification(notification)?;
        thread.start_and_settle(f)?;
        badged.signal();
        let stopped = thread.stopped(f)?;
        thread.expect_return(&stopped, &before, &[(RDI, 0x21)])?;
        // Nothing stays pending, and the endpoint's queue is empty.
        thread.tcb.unbind_notification()?;
        ensure_eq!(notification.poll(), 0);
        ensure_eq!(endpoint.nb_recv(reply).badge, 0);
    }
    Ok(())
}

fn bound_sender_not_woken(f: &mut Fixture) -> TestResult {
    let (endpoint, notification, reply) = (f.endpoint()?, f.notification()?, f.reply()?);
    let before = entry(Syscall::Send, &[(RDI, endpoint.address()), (RSI, 0)]);
    let thread = f.caller(&before)?;
    thread.tcb.bind_notification(notification)?;
    thread.start_and_settle(f)?;
    f.badged(notification, 0x21)?.signal();
    ensure!(thread.goes_on_or_waits(f)?);
    endpoint.nb_recv(reply);
    thread.expect_return(&thread.stopped(f)?, &before, &[])?;
    // It became active instead.
    thread.tcb.unbind_notification()?;
    ensure_eq!(notification.poll(), 0x21);
    Ok(())
}

fn bound_caller_not_woken(f: &mut Fixture) -> TestResult {
    let (endpoint, notification, reply) = (f.endpoint()?, f.notification()?, f.reply()?);
    let before = entry(Syscall::Call, &[(RDI, endpoint.address()), (RSI, 0)]);
    let thread = f.caller(&before)?;
    thread.tcb.bind_notification(notification)?;
    thread.start()?;
    endpoint.recv(reply);
    f.badged(notification, 0x21)?.signal();
    ensure!(thread.goes_on_or_waits(f)?);
    reply.send(Message::EMPTY);
    thread.expect_return(&thread.stopped(f)?, &before, &[(RDI, 0), (RSI, 0)])?;
    thread.tcb.unbind_notification()?;
    ensure_eq!(notification.poll(), 0x21);
    Ok(())
}

fn woken_reply_free(f: &mut Fixture) -> TestResult {
    // Whoever takes the reply object of a woken receiver disturbs nobody.
    let (endpoint, notification, reply) = (f.endpoint()?, f.notification()?, f.reply()?);
    let trace = Trace::leak();
    let never = f.notification()?;
    let tcb = f.helper(100, move || {
        endpoint.recv(reply);
        trace.note(1);
        never.wait();
        trace.note(2);
    })?;
    tcb.bind_notification(notification)?;
    f.settle()?;
    notification.signal();
    f.settle()?;
    endpoint.nb_recv(reply);
    never.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    Ok(())
}

fn nothing_there(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    for call in [Syscall::NBRecv, Syscall::NBWait] {
        let before = entry(call, &[(RDI, endpoint.address()), (R12, reply.address())]);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[(RDI, 0)])?;
    }
    Ok(())
}

fn nothing_among_receivers(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    f.helper(100, move || {
        endpoint.wait();
    })?;
    f.settle()?;
    for call in [Syscall::NBRecv, Syscall::NBWait] {
        let before = entry(call, &[(RDI, endpoint.address()), (R12, reply.address())]);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[(RDI, 0)])?;
    }
    Ok(())
}
