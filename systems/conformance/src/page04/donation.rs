//! 04, sections 7.1 to 7.3 and 7.7: on whose time servers, handlers and receivers run. Contexts tell
//! by what they have consumed.

use super::kit::{active, ensure_near, passive, Clock};
use crate::prelude::*;
use sandglass::abi::syscall::Syscall;
use sandglass::cap::{nb_send_recv, nb_send_wait};

pub const CHECKS: &[Check] = &[
    check(
        "04/7.2/a-call-lends-its-context-to-a-passive-server",
        call_lends,
    ),
    check(
        "04/7.2/an-active-server-runs-on-its-own-context",
        active_server,
    ),
    check(
        "04/7.2/a-call-through-a-chain-lends-all-the-way",
        chain_lends,
    ),
    check(
        "04/7.2/a-fault-lends-its-context-to-a-passive-handler",
        fault_lends,
    ),
    check("04/7.2/a-queued-call-lends-when-taken", queued_call_lends),
    check("04/7.2/a-queued-fault-lends-when-taken", queued_fault_lends),
    check("04/7.2/a-queued-timeout-lends-nothing", queued_timeout),
    check("04/7.2/a-queued-send-lends-nothing", queued_send),
    check(
        "04/7.3/a-call-to-who-offers-no-reply-object-lends-nothing",
        call_without_reply,
    ),
    check(
        "04/7.3/a-call-without-grant-lends-nothing",
        call_without_grant,
    ),
    check("04/7.3/grant-reply-alone-lends", call_with_grant_reply),
    check(
        "04/7.3/nb-send-recv-gives-its-context-away",
        nb_send_recv_gives,
    ),
    check(
        "04/7.3/nb-send-wait-gives-its-context-away",
        nb_send_wait_gives,
    ),
    check(
        "04/7.3/reply-recv-to-an-endpoint-gives-its-context-away",
        reply_recv_gives,
    ),
    check(
        "04/7.3/nothing-is-given-to-an-active-receiver",
        nothing_to_active,
    ),
    check("04/7.3/send-and-nb-send-lend-nothing", send_lends_nothing),
    check("04/7.3/a-given-context-does-not-come-back", given_for_good),
    check(
        "04/7.7/a-thread-without-a-context-does-not-run",
        passive_does_not_run,
    ),
];

/// A passive server of priority 120 that answers every call after 300 µs, with the given rights
/// to its endpoint.
fn server(f: &mut Fixture, clock: Clock) -> Result<(Endpoint, Tcb, SchedContext), Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let (tcb, context) = passive(f, 120, move || {
        endpoint.recv(reply);
        loop {
            clock.burn(300);
            reply.reply_recv(endpoint, Message::EMPTY);
        }
    })?;
    context.consumed_us()?;
    Ok((endpoint, tcb, context))
}

fn call_lends(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (endpoint, server, spare) = server(f, clock)?;
    let (client, context) = active(f, 100, move || {
        clock.burn(100);
        endpoint.call(Message::EMPTY);
        trace.note(1);
        clock.burn(100);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    ensure_near("the client's time", context.consumed_us()?, 500)?;
    ensure_eq!(spare.consumed_us()?, 0);
    // The server has none again, the client its own.
    ensure!(runs_on(client, 100, context), "the client has no context");
    spare.bind(server)?;
    Ok(())
}

fn active_server(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (endpoint, server, own) = server(f, clock)?;
    own.bind(server)?;
    let (_, context) = active(f, 100, move || {
        endpoint.call(Message::EMPTY);
        trace.note(1);
        clock.burn(100);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    ensure_near("the client's time", context.consumed_us()?, 100)?;
    ensure_near("the server's time", own.consumed_us()?, 300)
}

fn chain_lends(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (last, _, spare) = server(f, clock)?;
    let (first, reply) = (f.endpoint()?, f.reply()?);
    let (_, other_spare) = passive(f, 110, move || {
        first.recv(reply);
        clock.burn(100);
        last.call(Message::EMPTY);
        trace.note(1);
        clock.burn(100);
        reply.send(Message::EMPTY);
    })?;
    other_spare.consumed_us()?;
    let (_, context) = active(f, 100, move || {
        first.call(Message::EMPTY);
        trace.note(2);
        clock.burn(100);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    ensure_near("the client's time", context.consumed_us()?, 600)?;
    ensure_eq!((spare.consumed_us()?, other_spare.consumed_us()?), (0, 0));
    Ok(())
}

/// A thread that faults after 100 µs, and its handler's endpoint.
fn faulter(
    f: &mut Fixture,
    clock: Clock,
    handler: Endpoint,
) -> Result<(Tcb, SchedContext), Failure> {
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..f.active(100)?
    };
    let tcb = f.spawn(params, move || {
        clock.burn(100);
        conformance_kit::arch::stop()
    })?;
    Ok((tcb, params.sched_context.unwrap_or(f.my_context)))
}

/// The answer returns it, also to a thread that does not go on.
fn fault_lends(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let (_, spare) = passive(f, 120, move || {
        trace.note(endpoint.recv(reply).message.label());
        clock.burn(300);
        reply.send(Message::new(1, []));
        trace.note(0);
    })?;
    spare.consumed_us()?;
    let (tcb, context) = faulter(f, clock, endpoint)?;
    f.settle()?;
    // The handler has given up the context before it could note 0.
    ensure_eq!(trace.events(), [fault::USER_EXCEPTION]);
    ensure_near("the faulter's time", context.consumed_us()?, 400)?;
    ensure_eq!(spare.consumed_us()?, 0);
    ensure!(runs_on(tcb, 100, context), "the faulter has no context");
    Ok(())
}

/// A thread gives its context away in a system call that then takes what is queued at
/// `endpoint`; it notes the label, burns 300 µs, replies and notes 99. The context stays with a
/// thread that waits for good.
fn taker(
    f: &mut Fixture,
    clock: Clock,
    endpoint: Endpoint,
    trace: &'static Trace,
) -> Result<(Tcb, SchedContext), Failure> {
    let (elsewhere, reply) = (f.endpoint()?, f.reply()?);
    passive(f, 130, move || {
        elsewhere.wait();
    })?;
    let taker = active(f, 140, move || {
        let taken = nb_send_recv(elsewhere, Message::EMPTY, endpoint, reply);
        trace.note(taken.message.label());
        clock.burn(300);
        reply.send(Message::new(1, []));
        trace.note(99);
    })?;
    f.settle()?;
    Ok(taker)
}

fn queued_call_lends(f: &mut Fixture) -> TestResult {
    let (clock, trace, endpoint) = (Clock::new(f)?, Trace::leak(), f.endpoint()?);
    let (_, context) = active(f, 100, move || {
        endpoint.call(Message::new(7, []));
        trace.note(1);
    })?;
    f.settle()?;
    context.consumed_us()?;
    taker(f, clock, endpoint, trace)?;
    ensure_eq!(trace.events(), [7, 1]);
    ensure_near("the caller's time", context.consumed_us()?, 300)
}

fn queued_fault_lends(f: &mut Fixture) -> TestResult {
    let (clock, trace, endpoint) = (Clock::new(f)?, Trace::leak(), f.endpoint()?);
    let (tcb, context) = faulter(f, clock, endpoint)?;
    f.settle()?;
    context.consumed_us()?;
    taker(f, clock, endpoint, trace)?;
    ensure_eq!(trace.events(), [fault::USER_EXCEPTION]);
    ensure_near("the faulter's time", context.consumed_us()?, 300)?;
    ensure!(runs_on(tcb, 100, context), "the faulter has no context");
    Ok(())
}

fn queued_timeout(f: &mut Fixture) -> TestResult {
    let (clock, trace, endpoint) = (Clock::new(f)?, Trace::leak(), f.endpoint()?);
    let params = ThreadParams {
        timeout_handler: Some(endpoint),
        ..f.active_on(100, SchedParams::new(200, 1_000))?
    };
    f.spawn(params, || spin())?;
    f.sleep(3_000)?;
    let (tcb, context) = taker(f, clock, endpoint, trace)?;
    ensure_eq!(trace.events(), []);
    context.unbind()?;
    context.bind(tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), [fault::TIMEOUT, 99]);
    Ok(())
}

/// The sender goes on; the receiver has the message and no time.
fn queued_send(f: &mut Fixture) -> TestResult {
    let (clock, trace, endpoint) = (Clock::new(f)?, Trace::leak(), f.endpoint()?);
    active(f, 100, move || {
        endpoint.send(Message::new(7, []));
        trace.note(1);
    })?;
    f.settle()?;
    let (tcb, context) = taker(f, clock, endpoint, trace)?;
    ensure_eq!(trace.events(), [1]);
    context.unbind()?;
    context.bind(tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, 7, 99]);
    Ok(())
}

/// The server has the message, and runs when it has a context; the caller never goes on.
fn call_without_reply(f: &mut Fixture) -> TestResult {
    let (trace, endpoint) = (Trace::leak(), f.endpoint()?);
    let (server, spare) = passive(f, 120, move || trace.note(endpoint.wait().message.label()))?;
    let (client, context) = active(f, 100, move || {
        endpoint.call(Message::new(7, []));
        trace.note(1);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    spare.bind(server)?;
    f.settle()?;
    ensure_eq!(trace.events(), [7]);
    ensure!(runs_on(client, 100, context), "the client lost its context");
    Ok(())
}

/// Calls a passive server through a copy with these rights: what the server and the client note,
/// before the server gets a context and after.
fn call_through(f: &mut Fixture, rights: Rights) -> Result<(Vec<u64>, Vec<u64>), Failure> {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let (server, spare) = passive(f, 120, move || {
        trace.note(endpoint.recv(reply).message.label());
        reply.send(Message::EMPTY);
    })?;
    let through = f.with_rights(endpoint, rights)?;
    active(f, 100, move || {
        through.call(Message::new(7, []));
        trace.note(1);
    })?;
    f.settle()?;
    let before = trace.events();
    spare.bind(server)?;
    f.settle()?;
    Ok((before, trace.events()))
}

fn call_without_grant(f: &mut Fixture) -> TestResult {
    ensure_eq!(call_through(f, Rights::READ_WRITE)?, (vec![], vec![7]));
    Ok(())
}

fn call_with_grant_reply(f: &mut Fixture) -> TestResult {
    for rights in [Rights::GRANT, Rights::GRANT_REPLY, Rights::ALL] {
        let seen = call_through(f, Rights::WRITE.union(rights))?;
        ensure_eq!(seen, (vec![7, 1], vec![7, 1]));
    }
    Ok(())
}

/// A passive receiver of priority 120 at the endpoint: notes the label, burns 300 µs, notes 2, and
/// waits for good. Returns its thread and spare context.
fn receiver(
    f: &mut Fixture,
    clock: Clock,
    endpoint: Endpoint,
    trace: &'static Trace,
) -> Result<(Tcb, SchedContext), Failure> {
    let reply = f.reply()?;
    let made = passive(f, 120, move || {
        trace.note(endpoint.recv(reply).message.label());
        clock.burn(300);
        // There is nobody to reply to.
        reply.send(Message::EMPTY);
        trace.note(2);
    })?;
    made.1.consumed_us()?;
    Ok(made)
}

/// Fails unless the giver's context now belongs to the receiver, which has used it for 300 µs.
fn ensure_given(
    f: &mut Fixture,
    trace: &Trace,
    (receiver, spare): (Tcb, SchedContext),
    (giver, given): (Tcb, SchedContext),
) -> TestResult {
    f.settle()?;
    ensure_eq!(trace.events(), [7, 2]);
    ensure_near("the giver's context", given.consumed_us()?, 300)?;
    ensure_eq!(spare.consumed_us()?, 0);
    ensure!(runs_on(receiver, 120, given), "the receiver has it not");
    // The giver waits without one.
    spare.bind(giver)?;
    Ok(())
}

fn nb_send_recv_gives(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (to, from, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    let receiver = receiver(f, clock, to, trace)?;
    let giver = active(f, 100, move || {
        nb_send_recv(to, Message::new(7, []), from, reply);
    })?;
    ensure_given(f, trace, receiver, giver)
}

fn nb_send_wait_gives(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (to, from) = (f.endpoint()?, f.notification()?);
    let receiver = receiver(f, clock, to, trace)?;
    let giver = active(f, 100, move || {
        nb_send_wait(to, Message::new(7, []), from);
    })?;
    ensure_given(f, trace, receiver, giver)
}

/// The register of the reply object names an endpoint: it is sent to.
fn reply_recv_gives(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (to, from) = (f.endpoint()?, f.notification()?);
    let receiver = receiver(f, clock, to, trace)?;
    let giver = active(f, 100, move || {
        let message = Message::new(7, []);
        sys::send_receive(
            Syscall::ReplyRecv,
            from.address(),
            message.info(),
            message.registers(),
            to.address(),
            0,
        );
    })?;
    ensure_given(f, trace, receiver, giver)
}

fn nothing_to_active(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (to, from) = (f.endpoint()?, f.notification()?);
    let (tcb, own) = receiver(f, clock, to, trace)?;
    own.bind(tcb)?;
    let (giver, context) = active(f, 100, move || {
        nb_send_wait(to, Message::new(7, []), from);
        trace.note(3);
    })?;
    f.settle()?;
    ensure_near("the receiver's time", own.consumed_us()?, 300)?;
    ensure!(runs_on(giver, 100, context), "the sender lost its context");
    from.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [7, 2, 3]);
    Ok(())
}

fn send_lends_nothing(f: &mut Fixture) -> TestResult {
    for blocking in [false, true] {
        let (clock, trace, to) = (Clock::new(f)?, Trace::leak(), f.endpoint()?);
        let (tcb, spare) = receiver(f, clock, to, trace)?;
        let (sender, context) = active(f, 100, move || {
            if blocking {
                to.send(Message::new(7, []));
            } else {
                to.nb_send(Message::new(7, []));
            }
            trace.note(3);
        })?;
        f.settle()?;
        ensure_eq!(trace.events(), [3]);
        ensure!(runs_on(sender, 100, context), "the sender lost its context");
        spare.bind(tcb)?;
        f.settle()?;
        ensure_eq!(trace.events(), [3, 7, 2]);
    }
    Ok(())
}

/// Who got it may call, and gets it back from there; who gave it gets it only by being sent to.
fn given_for_good(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (service, _, _) = server(f, clock)?;
    let (to, from, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    let offered = f.reply()?;
    passive(f, 120, move || {
        to.recv(offered);
        trace.note(1);
        service.call(Message::EMPTY);
        trace.note(2);
        nb_send_wait(from, Message::EMPTY, to);
        trace.note(3);
    })?;
    let (giver, context) = active(f, 100, move || {
        nb_send_recv(to, Message::EMPTY, from, reply);
        trace.note(4);
        clock.burn(100);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2, 4]);
    ensure_near("the context's time", context.consumed_us()?, 400)?;
    ensure!(runs_on(giver, 100, context), "the context did not return");
    Ok(())
}

fn passive_does_not_run(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let tcb = f.spawn(f.passive(253), move || trace.note(1))?;
    f.settle()?;
    f.sleep(1_000)?;
    ensure_eq!(trace.events(), []);
    f.context(FULL)?.bind(tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}
