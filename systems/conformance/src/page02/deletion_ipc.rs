//! 02, section 7.1: what deletion does to those who wait at endpoints, notifications and replies.

use super::support::{alive, delete, revoke, unmapped_pages};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "02/7.1/a-copy's-deletion-leaves-the-endpoint",
        endpoint_copy,
    ),
    check(
        "02/7.1/receivers-of-a-deleted-endpoint-restart",
        endpoint_receivers,
    ),
    check(
        "02/7.1/senders-of-a-deleted-endpoint-restart",
        endpoint_senders,
    ),
    check(
        "02/7.1/faulters-at-a-deleted-endpoint-stop",
        endpoint_faulters,
    ),
    check(
        "02/7.1/waiters-of-a-deleted-notification-restart",
        notification_waiters,
    ),
    check(
        "02/7.1/a-deleted-notification-unbinds",
        notification_bindings,
    ),
    check("02/7.1/the-caller-of-a-deleted-reply-stops", reply_caller),
    check(
        "02/7.1/a-deleted-reply-returns-the-context",
        reply_returns_context,
    ),
    check(
        "02/7.1/a-reply-in-the-middle-returns-nothing",
        reply_in_the_middle,
    ),
    check(
        "02/7.1/the-receiver-with-a-deleted-reply-stops",
        reply_receiver,
    ),
    check("02/7.1/a-copy's-deletion-leaves-the-reply", reply_copy),
];

/// A thread of priority 100 whose faults arrive at `handler`.
fn faulting(
    f: &mut Fixture,
    handler: Endpoint,
    body: impl FnOnce() + Send + 'static,
) -> Result<Tcb, Failure> {
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..f.active(100)?
    };
    Ok(f.spawn(params, body)?)
}

/// Takes a fault, which must be there by now, and returns its words without the address of the
/// instruction.
fn take_cap_fault(f: &mut Fixture, handler: Endpoint) -> Result<Vec<u64>, Failure> {
    let reply = f.reply()?;
    let message = handler.recv(reply).message;
    ensure_eq!(message.label(), fault::CAP_FAULT);
    Ok((1..message.len()).map(|i| message.word(i)).collect())
}

fn endpoint_copy(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let (first, second) = (f.copy(endpoint)?, f.badged(endpoint, 4)?);
    let trace = Trace::leak();
    f.helper(100, move || {
        // The capability is gone by the time of the message, the endpoint is not.
        trace.note(endpoint.wait().badge);
    })?;
    f.settle()?;
    delete(f, endpoint)?;
    delete(f, first)?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    second.nb_send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(trace.events(), [4]);
    Ok(())
}

fn endpoint_receivers(f: &mut Fixture) -> TestResult {
    let (endpoint, handler, other) = (f.endpoint()?, f.endpoint()?, f.endpoint()?);
    let reply = f.reply()?;
    faulting(f, handler, move || {
        endpoint.recv(reply);
    })?;
    faulting(f, handler, move || {
        endpoint.wait();
    })?;
    f.settle()?;
    delete(f, endpoint)?;
    // The reply object is not the receiver's any more: using it does not stop the receiver.
    other.nb_recv(reply);
    for _ in 0..2 {
        let words = take_cap_fault(f, handler)?;
        ensure_eq!(words, [endpoint.address(), 1, 2, 0]);
    }
    Ok(())
}

fn endpoint_senders(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let trace = Trace::leak();
    f.helper(100, move || {
        // Restarted, it invokes a null capability, of which Send says nothing.
        endpoint.send(Message::new(1, [1]));
        trace.note(1);
    })?;
    f.helper(99, move || {
        let answer = endpoint.call(Message::new(1, [1]));
        trace.note(answer.label());
        trace.note(answer.len() as u64);
        trace.note(answer.word(0));
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    delete(f, endpoint)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, InvalidCapability as u64, 1, 0]);
    Ok(())
}

fn endpoint_faulters(f: &mut Fixture) -> TestResult {
    let handler = f.endpoint()?;
    let frame = f.frame(FrameSize::Small)?;
    let address = unmapped_pages(f, 1)?;
    let trace = Trace::leak();
    let tcb = faulting(f, handler, move || {
        // SAFETY: the page is mapped before the thread gets beyond this.
        unsafe { (address as *const u64).read_volatile() };
        trace.note(1);
    })?;
    f.settle()?;
    let root = boot::VSPACE;
    frame.map(root, address, Rights::ALL, Attributes::WriteBack)?;
    // Revoke takes the thread's own capability, Delete the last one.
    revoke(f, handler)?;
    f.settle()?;
    delete(f, handler)?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn notification_waiters(f: &mut Fixture) -> TestResult {
    let (notification, handler) = (f.notification()?, f.endpoint()?);
    for _ in 0..2 {
        faulting(f, handler, move || {
            notification.wait();
        })?;
    }
    f.settle()?;
    let copy = f.copy(notification)?;
    delete(f, copy)?;
    f.settle()?;
    ensure_eq!(handler.nb_wait().badge, 0);
    delete(f, notification)?;
    for _ in 0..2 {
        let words = take_cap_fault(f, handler)?;
        ensure_eq!(words, [notification.address(), 1, 2, 0]);
    }
    Ok(())
}

fn notification_bindings(f: &mut Fixture) -> TestResult {
    let (first, second, tcb) = (f.notification()?, f.notification()?, f.tcb()?);
    let context = f.context(FULL)?;
    tcb.bind_notification(first)?;
    context.bind_notification(first)?;
    let bind_tcb = Invocation::new(tcb, label::TCB_BIND_NOTIFICATION, &[], &[second.cptr()]);
    let bind_context = Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[second.cptr()]);
    let copy = f.copy(first)?;
    delete(f, first)?;
    bind_tcb.expect_error(IllegalOperation, &[])?;
    bind_context.expect_error(IllegalOperation, &[])?;
    delete(f, copy)?;
    bind_tcb.expect_ok(&[])?;
    bind_context.expect_ok(&[])
}

/// A passive server of priority 110, waiting at `endpoint` with `reply`; then it runs `body`.
fn passive_server(
    f: &mut Fixture,
    endpoint: Endpoint,
    reply: Reply,
    body: impl FnOnce() + Send + 'static,
) -> Result<Tcb, Failure> {
    let context = f.context(FULL)?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(110)
    };
    let tcb = f.spawn(params, move || {
        endpoint.recv(reply);
        body();
    })?;
    f.settle()?;
    context.unbind()?;
    Ok(tcb)
}

fn reply_caller(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let trace = Trace::leak();
    let client = f.helper(100, move || {
        endpoint.call(Message::EMPTY);
        trace.note(1);
    })?;
    endpoint.recv(reply);
    let copy = f.copy(reply)?;
    delete(f, reply)?;
    delete(f, copy)?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    // It is inactive, and not at the endpoint: resumed, it calls again.
    ensure_eq!(endpoint.nb_wait().message.label(), 0);
    client.resume()?;
    let other = f.reply()?;
    endpoint.recv(other);
    other.send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn reply_returns_context(f: &mut Fixture) -> TestResult {
    let (endpoint, reply, never) = (f.endpoint()?, f.reply()?, f.notification()?);
    let server = passive_server(f, endpoint, reply, move || {
        never.wait();
    })?;
    let context = f.context(FULL)?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let client = f.spawn(params, move || {
        endpoint.call(Message::EMPTY);
    })?;
    f.settle()?;
    let unbind = Invocation::new(
        context,
        label::SCHED_CONTEXT_UNBIND_OBJECT,
        &[],
        &[client.cptr()],
    );
    unbind.expect_error(IllegalOperation, &[])?;
    delete(f, reply)?;
    unbind
        .with_cap(0, server)
        .expect_error(IllegalOperation, &[])?;
    unbind.expect_ok(&[])
}

fn reply_in_the_middle(f: &mut Fixture) -> TestResult {
    // client -> middle -> inner: the inner server runs on the client's context. The reply object
    // between the client and the middle server is not the top of the context's stack.
    let (outer, inner) = (f.endpoint()?, f.endpoint()?);
    let (reply, inner_reply, never) = (f.reply()?, f.reply()?, f.notification()?);
    let trace = Trace::leak();
    let innermost = passive_server(f, inner, inner_reply, move || {
        never.wait();
        inner_reply.send(Message::EMPTY);
    })?;
    let middle = passive_server(f, outer, reply, move || {
        inner.call(Message::EMPTY);
        trace.note(1);
    })?;
    let context = f.context(FULL)?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let client = f.spawn(params, move || {
        outer.call(Message::EMPTY);
        trace.note(2);
    })?;
    f.settle()?;
    delete(f, reply)?;
    let unbind = Invocation::new(
        context,
        label::SCHED_CONTEXT_UNBIND_OBJECT,
        &[],
        &[client.cptr()],
    );
    unbind.expect_error(IllegalOperation, &[])?;
    unbind
        .with_cap(0, middle)
        .expect_error(IllegalOperation, &[])?;
    // The inner server's reply still gives the context to the middle one.
    never.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    unbind
        .with_cap(0, innermost)
        .expect_error(IllegalOperation, &[])?;
    unbind.with_cap(0, middle).expect_ok(&[])
}

fn reply_receiver(f: &mut Fixture) -> TestResult {
    let (endpoint, handler, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    let tcb = faulting(f, handler, move || {
        endpoint.recv(reply);
    })?;
    f.settle()?;
    delete(f, reply)?;
    f.settle()?;
    ensure_eq!(handler.nb_wait().badge, 0);
    // Nobody is there to receive: the message is dropped, and nothing happens.
    endpoint.nb_send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(alive(f, [endpoint.cptr(), reply.cptr()])?, [true, false]);
    // Resumed, it receives again, now without a reply object.
    tcb.resume()?;
    let words = take_cap_fault(f, handler)?;
    ensure_eq!(words, [reply.address(), 1, 2, 0]);
    Ok(())
}

fn reply_copy(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let trace = Trace::leak();
    f.helper(100, move || {
        let answer = endpoint.call(Message::EMPTY);
        trace.note(answer.word(0));
    })?;
    endpoint.recv(reply);
    let copy = f.copy(reply)?;
    delete(f, reply)?;
    copy.send(Message::new(0, [33]));
    f.settle()?;
    ensure_eq!(trace.events(), [33]);
    Ok(())
}
