//! 04, section 7.4: replies, to whom they return a context and what if that has no budget.

use super::kit::{active, ensure_near, passive, run_log, Clock};
use crate::prelude::*;
use sandglass::testing::RunLog;

pub const CHECKS: &[Check] = &[
    check("04/7.4/anybody-may-reply", anybody_replies),
    check("04/7.4/a-reply-to-nobody-does-nothing", reply_to_nobody),
    check("04/7.4/a-second-reply-does-nothing", second_reply),
    check(
        "04/7.4/who-is-replied-to-without-budget-waits",
        reply_without_budget,
    ),
    check(
        "04/7.4/who-is-replied-to-without-budget-times-out",
        reply_times_out,
    ),
    check(
        "04/7.1/who-has-a-context-is-given-no-other",
        caller_with_context,
    ),
];

/// The replier keeps its own context; the server, which did not reply, has none any more.
fn anybody_replies(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (endpoint, reply, never) = (f.endpoint()?, f.reply()?, f.notification()?);
    let (server, spare) = passive(f, 120, move || {
        endpoint.recv(reply);
        trace.note(1);
        never.wait();
        trace.note(3);
    })?;
    let (client, context) = active(f, 100, move || {
        trace.note(endpoint.call(Message::EMPTY).word(0));
    })?;
    f.settle()?;
    ensure!(runs_on(server, 120, context), "the server has no context");
    reply.send(Message::new(0, [2]));
    never.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    ensure!(runs_on(client, 100, context), "the client has no context");
    spare.bind(server)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2, 3]);
    Ok(())
}

/// Nor to a thread that still waits for a call.
fn reply_to_nobody(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    reply.send(Message::new(0, [1]));
    active(f, 120, move || {
        trace.note(endpoint.recv(reply).message.label());
    })?;
    f.settle()?;
    let send = Invocation::new(reply, 9, &[1, 2], &[]);
    send.expect_ok(&[])?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    endpoint.nb_send(Message::new(7, []));
    f.settle()?;
    ensure_eq!(trace.events(), [7]);
    Ok(())
}

fn second_reply(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let never = f.notification()?;
    active(f, 100, move || {
        trace.note(endpoint.call(Message::EMPTY).word(0));
        trace.note(never.wait());
    })?;
    f.settle()?;
    endpoint.recv(reply);
    reply.send(Message::new(0, [1]));
    reply.send(Message::new(0, [2]));
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

/// A client of 1000 of 5000 µs calls a server that uses all of them; the check replies at 2000.
/// Returns when the client ran, after `until` µs.
fn reply_late(
    f: &mut Fixture,
    clock: Clock,
    handler: Option<Endpoint>,
) -> Result<&'static RunLog, Failure> {
    let (endpoint, reply, log) = (f.endpoint()?, f.reply()?, run_log());
    passive(f, 120, move || {
        endpoint.recv(reply);
        spin();
    })?;
    let params = ThreadParams {
        timeout_handler: handler,
        ..f.active_on(100, SchedParams::new(1_000, 5_000).badge(77))?
    };
    let client = f.prepare(params, move || {
        clock.log_until(log, 300);
        endpoint.call(Message::EMPTY);
        clock.log_forever(log);
    })?;
    clock.start();
    client.resume()?;
    clock.sleep_until(2_000)?;
    reply.send(Message::EMPTY);
    Ok(log)
}

fn reply_without_budget(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let log = reply_late(f, clock, None)?;
    clock.sleep_until(6_500)?;
    clock.ensure_runs(log, &[(0, 300), (5_000, 6_000)])
}

/// At once, though it has not run; the answer to that makes it wait.
fn reply_times_out(f: &mut Fixture) -> TestResult {
    let (clock, handler, reply) = (Clock::new(f)?, f.endpoint()?, f.reply()?);
    let log = reply_late(f, clock, Some(handler))?;
    let message = handler.recv(reply).message;
    ensure_near("the timeout", clock.now(), 2_000)?;
    ensure_eq!((message.label(), message.len()), (fault::TIMEOUT, 2));
    ensure_eq!(message.word(0), 77);
    ensure_near("consumed", message.word(1), 1_000)?;
    reply.send(Message::EMPTY);
    // No second one before it has run out of the next.
    handler.recv(reply);
    ensure_near("the second timeout", clock.now(), 6_000)?;
    clock.ensure_runs(log, &[(0, 300), (5_000, 6_000)])
}

/// A caller that was given one while it waited keeps that; the server keeps what it was lent.
fn caller_with_context(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let hold = f.notification()?;
    let (server, spare) = passive(f, 120, move || {
        endpoint.recv(reply);
        hold.wait();
        reply.send(Message::EMPTY);
        trace.note(1);
    })?;
    let (client, lent) = active(f, 100, move || {
        endpoint.call(Message::EMPTY);
        trace.note(2);
    })?;
    f.settle()?;
    spare.bind(client)?;
    hold.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    ensure!(runs_on(client, 100, spare), "the client's own is gone");
    ensure!(runs_on(server, 120, lent), "the server's is gone");
    Ok(())
}
