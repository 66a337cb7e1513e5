//! 01, sections 5.3 and 5.4: sending to and receiving from endpoints.

use conformance_kit::arch::order::{R12, R13, RDI, RSI};
use sandglass::cap::{nb_send_recv, nb_send_wait};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/5.3/nbsend-without-a-receiver-is-dropped", dropped),
    check(
        "01/5.3/nbsend-among-queued-senders-is-dropped",
        dropped_among_senders,
    ),
    check("01/5.3/a-queued-sender-keeps-its-badge", badge_kept),
    check("01/5.3/a-queued-caller-keeps-its-rights", rights_kept),
    check(
        "01/5.3/call-with-grant-or-grant-reply-links-the-reply",
        call_links,
    ),
    check(
        "01/5.3/call-without-grant-makes-the-caller-inactive",
        call_without_grant,
    ),
    check(
        "01/5.3/call-to-a-receiver-without-a-reply-makes-the-caller-inactive",
        call_without_reply,
    ),
    check("01/5.3/call-to-a-passive-receiver-donates", call_donates),
    check(
        "01/5.3/call-to-an-active-receiver-does-not-donate",
        call_does_not_donate,
    ),
    check("01/5.3/send-does-not-donate", send_does_not_donate),
    check(
        "01/5.3/the-first-phase-donates-to-a-passive-receiver",
        first_phase_donates,
    ),
    check(
        "01/5.3/the-receivers-reply-object-is-free-after-a-send",
        reply_free_after_send,
    ),
    check(
        "01/5.4/a-reply-object-of-a-waiting-receiver-can-be-taken",
        reply_of_receiver_taken,
    ),
    check(
        "01/5.4/a-reply-object-with-a-caller-can-be-taken",
        reply_of_caller_taken,
    ),
    check(
        "01/5.4/a-context-lent-through-a-taken-reply-is-not-returned",
        taken_reply_keeps_context,
    ),
    check(
        "01/5.4/a-queued-caller-without-grant-becomes-inactive",
        queued_without_grant,
    ),
    check(
        "01/5.4/a-queued-caller-received-by-wait-becomes-inactive",
        queued_received_by_wait,
    ),
    check(
        "01/5.4/a-queued-caller-donates-to-a-receiver-without-a-context",
        queued_caller_donates,
    ),
    check(
        "01/5.4/a-queued-plain-sender-does-not-donate",
        queued_sender_does_not_donate,
    ),
];

/// Registers of a call with label 5 and no words.
fn calling(endpoint: Endpoint) -> UserContext {
    let info = MessageInfo::new(5, 0, 0, 0).raw();
    entry(Syscall::Call, &[(RDI, endpoint.address()), (RSI, info)])
}

/// Registers of a caller after an empty answer.
const ANSWERED: [(usize, u64); 2] = [(RDI, 0), (RSI, 0)];

/// Fails unless the caller waits for nothing: neither for an answer to `reply` nor in the queue of
/// `endpoint`; once resumed, it calls again.
fn expect_inactive(
    f: &mut Fixture,
    caller: RawThread,
    endpoint: Endpoint,
    reply: Reply,
) -> TestResult {
    reply.send(Message::EMPTY);
    ensure!(caller.goes_on_or_waits(f)?, "the caller was answered");
    let spare = f.reply()?;
    ensure_eq!(endpoint.nb_recv(spare).message.label(), 0);
    caller.tcb.resume()?;
    f.settle()?;
    ensure_eq!(endpoint.nb_recv(spare).message.label(), 5);
    spare.send(Message::EMPTY);
    let stopped = caller.stopped(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    Ok(())
}

fn dropped(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let badged = f.badged(endpoint, 9)?;
    let before = entry(Syscall::NBSend, &[(RDI, badged.address()), (RSI, 3)]);
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, &before, &[])?;
    ensure_eq!(endpoint.nb_recv(reply).badge, 0);
    Ok(())
}

fn dropped_among_senders(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let (queued, late) = (f.badged(endpoint, 1)?, f.badged(endpoint, 2)?);
    f.helper(100, move || queued.send(Message::EMPTY))?;
    f.settle()?;
    late.nb_send(Message::EMPTY);
    ensure_eq!(endpoint.nb_recv(reply).badge, 1);
    ensure_eq!(endpoint.nb_recv(reply).badge, 0);
    Ok(())
}

fn badge_kept(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let badged = f.badged(endpoint, 0x77)?;
    f.helper(100, move || badged.send(Message::EMPTY))?;
    f.settle()?;
    f.slot_of(badged).delete()?;
    ensure_eq!(endpoint.nb_recv(reply).badge, 0x77);
    Ok(())
}

fn rights_kept(f: &mut Fixture) -> TestResult {
    // The right to be answered is that of the time of the call.
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let strong = f.with_rights(endpoint, Rights::WRITE.union(Rights::GRANT_REPLY))?;
    let before = calling(strong);
    let caller = f.caller(&before)?;
    caller.start_and_settle(f)?;
    f.slot_of(strong).delete()?;
    endpoint.recv(reply);
    reply.send(Message::EMPTY);
    caller.expect_return(&caller.stopped(f)?, &before, &ANSWERED)
}

fn call_links(f: &mut Fixture) -> TestResult {
    for right in [Rights::GRANT, Rights::GRANT_REPLY, Rights::ALL] {
        for queued in [false, true] {
            let (endpoint, reply) = (f.endpoint()?, f.reply()?);
            let cap = f.with_rights(endpoint, Rights::WRITE.union(right))?;
            let before = calling(cap);
            let caller = f.caller(&before)?;
            caller.start()?;
            if queued {
                f.settle()?;
            }
            endpoint.recv(reply);
            // It waits for the answer and for nothing else.
            ensure!(caller.goes_on_or_waits(f)?);
            reply.send(Message::EMPTY);
            caller.expect_return(&caller.stopped(f)?, &before, &ANSWERED)?;
        }
    }
    Ok(())
}

/// A capability to send but without grant.
fn weak_cap(f: &mut Fixture, endpoint: Endpoint) -> Result<Endpoint, SetupError> {
    f.with_rights(endpoint, Rights::READ_WRITE)
}

fn call_without_grant(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let weak = weak_cap(f, endpoint)?;
    let caller = f.caller(&calling(weak))?;
    caller.start()?;
    ensure_eq!(endpoint.recv(reply).message.label(), 5);
    expect_weak_caller_inactive(f, caller, endpoint, reply)
}

/// As [`expect_inactive`], of a caller that cannot be answered at all.
fn expect_weak_caller_inactive(
    f: &mut Fixture,
    caller: RawThread,
    endpoint: Endpoint,
    reply: Reply,
) -> TestResult {
    reply.send(Message::EMPTY);
    ensure!(caller.goes_on_or_waits(f)?, "the caller was answered");
    ensure_eq!(endpoint.nb_recv(reply).message.label(), 0);
    caller.tcb.resume()?;
    f.settle()?;
    ensure_eq!(endpoint.nb_recv(reply).message.label(), 5);
    Ok(())
}

fn call_without_reply(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let caller = f.caller(&calling(endpoint))?;
    caller.start()?;
    ensure_eq!(endpoint.wait().message.label(), 5);
    expect_inactive(f, caller, endpoint, reply)
}

fn queued_without_grant(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let weak = weak_cap(f, endpoint)?;
    let caller = f.caller(&calling(weak))?;
    caller.start_and_settle(f)?;
    ensure_eq!(endpoint.nb_recv(reply).message.label(), 5);
    expect_weak_caller_inactive(f, caller, endpoint, reply)
}

fn queued_received_by_wait(f: &mut Fixture) -> TestResult {
    for nb in [false, true] {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let caller = f.caller(&calling(endpoint))?;
        caller.start_and_settle(f)?;
        let received = if nb {
            endpoint.nb_wait()
        } else {
            endpoint.wait()
        };
        ensure_eq!(received.message.label(), 5);
        expect_inactive(f, caller, endpoint, reply)?;
    }
    Ok(())
}

/// A passive thread that waits on an endpoint: it was started on a context that it gave back.
struct Server {
    tcb: Tcb,
    endpoint: Endpoint,
}

/// Starts a server of priority 200 whose loop notes 1 for each message and then waits for good
/// without answering.
fn passive_server(f: &mut Fixture, trace: &'static Trace) -> Result<Server, Failure> {
    let (endpoint, reply, never) = (f.endpoint()?, f.reply()?, f.notification()?);
    let params = f.active(200)?;
    let tcb = f.spawn(params, move || {
        endpoint.recv(reply);
        trace.note(1);
        never.wait();
    })?;
    f.settle()?;
    let own = params.sched_context.expect("an active thread has one");
    own.unbind()?;
    Ok(Server { tcb, endpoint })
}

fn call_donates(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let server = passive_server(f, trace)?;
    let params = f.active(100)?;
    let endpoint = server.endpoint;
    f.spawn(params, move || {
        endpoint.call(Message::EMPTY);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    let context = params.sched_context.expect("an active thread has one");
    ensure!(runs_on(server.tcb, 200, context));
    Ok(())
}

fn call_does_not_donate(f: &mut Fixture) -> TestResult {
    let (endpoint, reply, never) = (f.endpoint()?, f.reply()?, f.notification()?);
    let server = f.active(200)?;
    let server_tcb = f.spawn(server, move || {
        endpoint.recv(reply);
        never.wait();
    })?;
    f.settle()?;
    let client = f.active(100)?;
    let client_tcb = f.spawn(client, move || {
        endpoint.call(Message::EMPTY);
    })?;
    f.settle()?;
    let context = |params: ThreadParams| params.sched_context.expect("an active thread has one");
    ensure!(runs_on(server_tcb, 200, context(server)));
    ensure!(runs_on(client_tcb, 100, context(client)));
    Ok(())
}

fn send_does_not_donate(f: &mut Fixture) -> TestResult {
    for blocking in [false, true] {
        let trace = Trace::leak();
        let server = passive_server(f, trace)?;
        let params = f.active(100)?;
        let endpoint = server.endpoint;
        let tcb = f.spawn(params, move || {
            if blocking {
                endpoint.send(Message::EMPTY);
            } else {
                endpoint.nb_send(Message::EMPTY);
            }
            trace.note(2);
        })?;
        f.settle()?;
        // The sender goes on; the server has the message, and nothing to run on.
        ensure_eq!(trace.events(), [2]);
        let context = params.sched_context.expect("an active thread has one");
        ensure!(runs_on(tcb, 100, context));
    }
    Ok(())
}

fn first_phase_donates(f: &mut Fixture) -> TestResult {
    for wait in [false, true] {
        let trace = Trace::leak();
        let server = passive_server(f, trace)?;
        let (elsewhere, reply) = (f.endpoint()?, f.reply()?);
        let (params, endpoint) = (f.active(100)?, server.endpoint);
        f.spawn(params, move || {
            if wait {
                nb_send_wait(endpoint, Message::EMPTY, elsewhere);
            } else {
                nb_send_recv(endpoint, Message::EMPTY, elsewhere, reply);
            }
            trace.note(2);
        })?;
        f.settle()?;
        ensure_eq!(trace.events(), [1]);
        let context = params.sched_context.expect("an active thread has one");
        ensure!(runs_on(server.tcb, 200, context));
        // The sender is in its receive phase without a context.
        elsewhere.nb_send(Message::EMPTY);
        f.settle()?;
        ensure_eq!(trace.events(), [1]);
        context.unbind()?;
    }
    Ok(())
}

fn reply_free_after_send(f: &mut Fixture) -> TestResult {
    // After a plain send the reply object can serve another receiver, and the first receiver is
    // not disturbed.
    let (endpoint, reply, trace) = (f.endpoint()?, f.reply()?, Trace::leak());
    let never = f.notification()?;
    f.helper(200, move || {
        endpoint.recv(reply);
        trace.note(1);
        never.wait();
        trace.note(2);
    })?;
    f.settle()?;
    endpoint.send(Message::EMPTY);
    f.settle()?;
    endpoint.nb_recv(reply);
    never.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    Ok(())
}

fn reply_of_receiver_taken(f: &mut Fixture) -> TestResult {
    for non_blocking in [false, true] {
        let (endpoint, other, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
        let first = entry(
            Syscall::Recv,
            &[(RDI, endpoint.address()), (R12, reply.address())],
        );
        let receiver = f.caller(&first)?;
        receiver.start_and_settle(f)?;
        if non_blocking {
            other.nb_recv(reply);
        } else {
            let wakes = f.badged(other, 4)?;
            f.helper(50, move || wakes.send(Message::EMPTY))?;
            ensure_eq!(other.recv(reply).badge, 4);
        }
        // The receiver has left the queue, and no message reaches it.
        let sender = f.badged(endpoint, 8)?;
        sender.nb_send(Message::EMPTY);
        ensure!(receiver.goes_on_or_waits(f)?, "the receiver still waited");
        // Resumed, it receives again.
        receiver.tcb.resume()?;
        f.settle()?;
        sender.nb_send(Message::EMPTY);
        let stopped = receiver.stopped(f)?;
        receiver.expect_return(&stopped, &first, &[(RDI, 8), (RSI, 0)])?;
    }
    Ok(())
}

fn reply_of_caller_taken(f: &mut Fixture) -> TestResult {
    let (endpoint, other, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    let caller = f.caller(&calling(endpoint))?;
    caller.start()?;
    endpoint.recv(reply);
    other.nb_recv(reply);
    expect_inactive(f, caller, endpoint, reply)
}

fn taken_reply_keeps_context(f: &mut Fixture) -> TestResult {
    let (endpoint, reply, other) = (f.endpoint()?, f.reply()?, f.endpoint()?);
    let never = f.notification()?;
    let params = f.active(200)?;
    let server = f.spawn(params, move || {
        endpoint.recv(reply);
        never.wait();
    })?;
    f.settle()?;
    params
        .sched_context
        .expect("an active thread has one")
        .unbind()?;
    let client = f.active(100)?;
    let client_tcb = f.spawn(client, move || {
        endpoint.call(Message::EMPTY);
    })?;
    f.settle()?;
    let context = client.sched_context.expect("an active thread has one");
    ensure!(runs_on(server, 200, context));
    other.nb_recv(reply);
    ensure!(runs_on(server, 200, context));
    ensure!(!runs_on(client_tcb, 100, context));
    Ok(())
}

/// Lets a thread give its context to a server and then receive from `source`; returns the
/// thread, which waits there without a context if nobody has sent.
fn gives_context_away(
    f: &mut Fixture,
    source: Endpoint,
    reply: Reply,
) -> Result<RawThread, Failure> {
    let server = passive_server(f, Trace::leak())?;
    let before = entry(
        Syscall::NBSendRecv,
        &[
            (RDI, source.address()),
            (RSI, 0),
            (R12, reply.address()),
            (R13, server.endpoint.address()),
        ],
    );
    Ok(f.caller(&before)?)
}

fn queued_caller_donates(f: &mut Fixture) -> TestResult {
    let (source, reply) = (f.endpoint()?, f.reply()?);
    let params = f.active(100)?;
    f.spawn(params, move || {
        source.call(Message::new(7, []));
    })?;
    f.settle()?;
    let receiver = gives_context_away(f, source, reply)?;
    // It runs on, to its end, on what the caller lends it.
    let stopped = receiver.run(f)?;
    ensure_eq!(
        stopped.registers.get(RSI),
        MessageInfo::new(7, 0, 0, 0).raw()
    );
    Ok(())
}

fn queued_sender_does_not_donate(f: &mut Fixture) -> TestResult {
    let (source, reply, trace) = (f.endpoint()?, f.reply()?, Trace::leak());
    f.helper(100, move || {
        source.send(Message::new(7, []));
        trace.note(2);
    })?;
    f.settle()?;
    let receiver = gives_context_away(f, source, reply)?;
    receiver.start()?;
    ensure!(receiver.goes_on_or_waits(f)?, "the receiver ran on");
    ensure_eq!(trace.events(), [2]);
    // It has the message, and stands behind the system call.
    let context = f.context(FULL)?;
    context.bind(receiver.tcb)?;
    let stopped = receiver.stopped(f)?;
    ensure_eq!(
        stopped.registers.get(RSI),
        MessageInfo::new(7, 0, 0, 0).raw()
    );
    Ok(())
}
