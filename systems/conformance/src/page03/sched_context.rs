//! 03, section 6.2: invocations of scheduling contexts.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::prelude::*;

use super::common::{
    refused_in_first_phase, refuses_other_labels, truncated, works_without_answer,
};

pub const CHECKS: &[Check] = &[
    check("03/6.2/unknown-labels", other_labels),
    check("03/6.2/bind-refusals", bind_refusals),
    check("03/6.2/bind-to-blocked-threads", bind_blocked),
    check("03/6.2/bind-to-thread-and-notification", bind_both),
    check("03/6.2/bind-lets-the-thread-run", bind_effect),
    check("03/6.2/unbind-of-the-current-thread", unbind_current),
    check("03/6.2/unbind-takes-all", unbind_all),
    check("03/6.2/unbind-takes-the-reply-stack", unbind_replies),
    check("03/6.2/unbind-object-refusals", unbind_object_refusals),
    check("03/6.2/unbind-object-takes-one", unbind_object_one),
    check(
        "03/6.2/unbind-object-keeps-the-reply-stack",
        unbind_object_replies,
    ),
    check("03/6.2/consumed-reports-and-resets", consumed),
    check("03/6.2/yield-to-refusals", yield_refusals),
    check("03/6.2/yield-to-a-lower-priority", yield_lower),
    check("03/6.2/yield-to-an-equal-priority", yield_equal),
    check("03/6.2/by-send", by_send),
    check("03/6.2/not-in-a-first-phase", not_in_first_phase),
];

/// Own labels of a context.
const OWN: [u64; 5] = [
    label::SCHED_CONTEXT_BIND,
    label::SCHED_CONTEXT_UNBIND,
    label::SCHED_CONTEXT_UNBIND_OBJECT,
    label::SCHED_CONTEXT_CONSUMED,
    label::SCHED_CONTEXT_YIELD_TO,
];

fn bind(context: SchedContext, to: impl Capability) -> Invocation {
    Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[to.cptr()])
}

fn unbind(context: SchedContext) -> Invocation {
    Invocation::new(context, label::SCHED_CONTEXT_UNBIND, &[], &[])
}

fn unbind_object(context: SchedContext, from: impl Capability) -> Invocation {
    let caps = [from.cptr()];
    Invocation::new(context, label::SCHED_CONTEXT_UNBIND_OBJECT, &[], &caps)
}

fn yield_to(context: SchedContext) -> Invocation {
    Invocation::new(context, label::SCHED_CONTEXT_YIELD_TO, &[], &[])
}

/// Whether the thread, which is not blocked, has a context: only then none can be bound.
fn has_context(f: &mut Fixture, tcb: Tcb) -> Result<bool, Failure> {
    let probe = f.unconfigured_context(7)?;
    let free = bind(probe, tcb).call().label == 0;
    unbind(probe).expect_ok(&[])?;
    Ok(!free)
}

/// Whether the notification has a context.
fn notification_has_context(f: &mut Fixture, to: Notification) -> Result<bool, Failure> {
    let probe = f.unconfigured_context(7)?;
    let free = bind(probe, to).call().label == 0;
    unbind(probe).expect_ok(&[])?;
    Ok(!free)
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let (context, tcb) = (f.context(FULL)?, f.tcb()?);
    let any = Invocation::new(context, label::INVALID, &[1; 7], &[tcb.cptr(); 3]);
    refuses_other_labels(&any, &OWN)
}

fn bind_refusals(f: &mut Fixture) -> TestResult {
    let (context, tcb, notification) = (f.context(FULL)?, f.tcb()?, f.notification()?);
    truncated(&bind(context, tcb))?;
    let wrong = [
        f.null()?,
        f.endpoint()?.cptr(),
        context.cptr(),
        boot::CNODE.cptr(),
        f.reply()?.cptr(),
    ];
    for wrong in wrong {
        bind(context, wrong).expect_error(InvalidCapability, &[1])?;
    }
    bind(context, tcb).expect_ok(&[])?;
    bind(context, notification).expect_ok(&[])?;
    // The context has a thread, the thread a context; and so for notifications.
    let another = f.context(FULL)?;
    for (context, object) in [
        (context, tcb.cptr()),
        (context, f.tcb()?.cptr()),
        (another, tcb.cptr()),
        (context, notification.cptr()),
        (context, f.notification()?.cptr()),
        (another, notification.cptr()),
    ] {
        bind(context, object).expect_error(IllegalOperation, &[])?;
    }
    // What is wrong is found before that.
    bind(context, f.endpoint()?).expect_error(InvalidCapability, &[1])?;
    truncated(&bind(context, tcb))?;
    bind(another, f.tcb()?).expect_ok(&[])
}

/// A thread that waits, and has lost its context.
fn blocked(f: &mut Fixture) -> Result<Tcb, Failure> {
    let (context, notification) = (f.context(FULL)?, f.notification()?);
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let tcb = f.spawn(params, move || {
        notification.wait();
    })?;
    f.settle()?;
    unbind_object(context, tcb).expect_ok(&[])?;
    Ok(tcb)
}

fn bind_blocked(f: &mut Fixture) -> TestResult {
    let tcb = blocked(f)?;
    let slice = SchedParams::new(50, 1_000_000);
    let (unconfigured, depleted) = (f.unconfigured_context(7)?, f.context(slice)?);
    let params = ThreadParams {
        sched_context: Some(depleted),
        ..f.passive(100)
    };
    let spinner = f.spawn(params, || spin())?;
    f.settle()?;
    unbind_object(depleted, spinner).expect_ok(&[])?;
    for context in [unconfigured, depleted] {
        bind(context, tcb).expect_error(IllegalOperation, &[])?;
        // A thread that is not blocked takes either.
        let inactive = f.tcb()?;
        bind(context, inactive).expect_ok(&[])?;
        unbind(context).expect_ok(&[])?;
        bind(context, f.notification()?).expect_ok(&[])?;
    }
    f.control.configure(depleted, slice)?;
    bind(depleted, tcb).expect_ok(&[])
}

fn bind_both(f: &mut Fixture) -> TestResult {
    for thread_first in [true, false] {
        let (context, tcb, notification) = (f.context(FULL)?, f.tcb()?, f.notification()?);
        let objects = [tcb.cptr(), notification.cptr()];
        bind(context, objects[usize::from(!thread_first)]).expect_ok(&[])?;
        bind(context, objects[usize::from(thread_first)]).expect_ok(&[])?;
        ensure!(has_context(f, tcb)?);
        ensure!(notification_has_context(f, notification)?);
    }
    Ok(())
}

fn bind_effect(f: &mut Fixture) -> TestResult {
    let (trace, context) = (Trace::leak(), f.context(FULL)?);
    let tcb = f.spawn(f.passive(100), move || trace.note(1))?;
    f.settle()?;
    ensure_eq!(trace.len(), 0);
    bind(context, tcb).expect_ok(&[])?;
    f.settle()?;
    ensure_eq!(trace.len(), 1);
    Ok(())
}

fn unbind_current(f: &mut Fixture) -> TestResult {
    let (context, me) = (f.my_context, f.me);
    unbind(context).expect_error(IllegalOperation, &[])?;
    unbind_object(context, me).expect_error(IllegalOperation, &[])
}

fn unbind_all(f: &mut Fixture) -> TestResult {
    let (context, notification, trace) = (f.context(FULL)?, f.notification()?, Trace::leak());
    // Nothing to unbind.
    unbind(context).expect_ok(&[])?;
    let tcb = f.spawn(f.passive(100), move || trace.note(1))?;
    bind(context, tcb).expect_ok(&[])?;
    bind(context, notification).expect_ok(&[])?;
    unbind(context).expect_ok(&[])?;
    f.settle()?;
    ensure_eq!(trace.len(), 0);
    ensure!(!has_context(f, tcb)?);
    ensure!(!notification_has_context(f, notification)?);
    bind(context, f.tcb()?).expect_ok(&[])?;
    bind(context, f.notification()?).expect_ok(&[])
}

/// A client and the passive server that runs on its context, and waits for nothing but `reply`
/// to be used.
struct Lent {
    context: SchedContext,
    client: Tcb,
    server: Tcb,
    reply: Reply,
}

fn lend(f: &mut Fixture) -> Result<Lent, Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let (park, own) = (f.notification()?, f.context(FULL)?);
    let params = ThreadParams {
        sched_context: Some(own),
        ..f.passive(110)
    };
    let server = f.spawn(params, move || {
        endpoint.recv(reply);
        park.wait();
    })?;
    f.settle()?;
    unbind_object(own, server).expect_ok(&[])?;
    let context = f.context(FULL)?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let client = f.spawn(params, move || {
        endpoint.call(Message::EMPTY);
    })?;
    f.settle()?;
    unbind_object(context, client).expect_error(IllegalOperation, &[])?;
    Ok(Lent {
        context,
        client,
        server,
        reply,
    })
}

fn unbind_replies(f: &mut Fixture) -> TestResult {
    let lent = lend(f)?;
    unbind(lent.context).expect_ok(&[])?;
    lent.reply.send(Message::EMPTY);
    ensure!(!has_context(f, lent.client)?, "the context came back");
    Ok(())
}

fn unbind_object_replies(f: &mut Fixture) -> TestResult {
    let lent = lend(f)?;
    unbind_object(lent.context, lent.server).expect_ok(&[])?;
    lent.reply.send(Message::EMPTY);
    unbind_object(lent.context, lent.client).expect_ok(&[])
}

fn unbind_object_refusals(f: &mut Fixture) -> TestResult {
    let (context, tcb, notification) = (f.context(FULL)?, f.tcb()?, f.notification()?);
    truncated(&unbind_object(context, tcb))?;
    let wrong = [
        f.null()?,
        f.endpoint()?.cptr(),
        context.cptr(),
        f.reply()?.cptr(),
    ];
    for bound in [false, true] {
        for wrong in wrong {
            unbind_object(context, wrong).expect_error(InvalidCapability, &[1])?;
        }
        for other in [f.tcb()?.cptr(), f.notification()?.cptr(), f.me.cptr()] {
            unbind_object(context, other).expect_error(IllegalOperation, &[])?;
        }
        if !bound {
            unbind_object(context, tcb).expect_error(IllegalOperation, &[])?;
            unbind_object(context, notification).expect_error(IllegalOperation, &[])?;
            bind(context, tcb).expect_ok(&[])?;
            bind(context, notification).expect_ok(&[])?;
        }
    }
    Ok(())
}

fn unbind_object_one(f: &mut Fixture) -> TestResult {
    let (context, tcb, notification) = (f.context(FULL)?, f.tcb()?, f.notification()?);
    bind(context, tcb).expect_ok(&[])?;
    bind(context, notification).expect_ok(&[])?;
    unbind_object(context, tcb).expect_ok(&[])?;
    ensure!(!has_context(f, tcb)?);
    ensure!(notification_has_context(f, notification)?);
    bind(context, tcb).expect_ok(&[])?;
    unbind_object(context, notification).expect_ok(&[])?;
    ensure!(has_context(f, tcb)?);
    ensure!(!notification_has_context(f, notification)?);
    Ok(())
}

/// A context on which a thread has run for this many µs, and then stopped.
fn used(f: &mut Fixture, us: u64) -> Result<SchedContext, Failure> {
    let (context, ticks) = (f.context(FULL)?, f.ticks(us));
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    f.spawn(params, move || {
        let end = time::ticks() + ticks;
        while time::ticks() < end {}
    })?;
    f.settle()?;
    Ok(context)
}

fn consumed(f: &mut Fixture) -> TestResult {
    let context = used(f, 500)?;
    let consumed = Invocation::new(context, label::SCHED_CONTEXT_CONSUMED, &[], &[]);
    let words = consumed.ok()?;
    ensure_eq!(words.len(), 1);
    ensure!((500..700).contains(&words[0]), "{} µs, not 500", words[0]);
    consumed.expect_ok(&[0])?;
    // Configuring it anew keeps the counter.
    let context = used(f, 300)?;
    f.control.configure(context, FULL)?;
    let again = consumed.on(context).ok()?;
    ensure!((300..500).contains(&again[0]), "{} µs, not 300", again[0]);
    Ok(())
}

fn yield_refusals(f: &mut Fixture) -> TestResult {
    let (context, me) = (f.context(FULL)?, f.me);
    yield_to(context).expect_error(IllegalOperation, &[])?;
    // A notification is no thread.
    bind(context, f.notification()?).expect_ok(&[])?;
    yield_to(context).expect_error(IllegalOperation, &[])?;
    yield_to(f.my_context).expect_error(IllegalOperation, &[])?;
    let tcb = f.tcb()?;
    bind(context, tcb).expect_ok(&[])?;
    me.set_mc_priority(boot::TCB, 100)?;
    tcb.set_priority(boot::TCB, 101)?;
    yield_to(context).expect_error(IllegalOperation, &[])?;
    tcb.set_priority(boot::TCB, 100)?;
    yield_to(context).expect_ok(&[0])
}

fn yield_lower(f: &mut Fixture) -> TestResult {
    let context = used(f, 400)?;
    let words = yield_to(context).ok()?;
    ensure_eq!(words.len(), 1);
    ensure!((400..600).contains(&words[0]), "{} µs, not 400", words[0]);
    // The counter is reset.
    yield_to(context).expect_ok(&[0])
}

fn yield_equal(f: &mut Fixture) -> TestResult {
    let (context, answer) = (f.context(FULL)?, shared::<AtomicU64>());
    let (trace, ticks) = (Trace::leak(), f.ticks(200));
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    f.spawn(params, move || {
        let end = time::ticks() + ticks;
        while time::ticks() < end {}
        trace.note(1);
    })?;
    let params = ThreadParams {
        mcp: 100,
        ..f.active(100)?
    };
    let yielding = f.prepare(params, move || {
        answer.store(context.consumed_us().unwrap_or(u64::MAX), Relaxed);
        answer.store(context.yield_to().unwrap_or(u64::MAX), Relaxed);
        trace.note(2);
    })?;
    yielding.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    let us = answer.load(Relaxed);
    ensure!((200..400).contains(&us), "{us} µs, not 200");
    Ok(())
}

fn by_send(f: &mut Fixture) -> TestResult {
    let (context, tcb) = (f.context(FULL)?, f.tcb()?);
    works_without_answer(f, &bind(context, tcb), |f| {
        let bound = has_context(f, tcb)?;
        unbind(context).expect_ok(&[])?;
        Ok(bound)
    })?;
    for take in [unbind(context), unbind_object(context, tcb)] {
        bind(context, tcb).expect_ok(&[])?;
        works_without_answer(f, &take, |f| {
            let bound = has_context(f, tcb)?;
            bind(context, tcb).call();
            Ok(!bound)
        })?;
        unbind(context).expect_ok(&[])?;
    }
    // The results of both go nowhere; their effect is there (01, section 6).
    let consumed = yield_to(context).with_label(label::SCHED_CONTEXT_CONSUMED);
    for reporting in [&consumed, &yield_to(context)] {
        for call in SENDING {
            let used = used(f, 100)?;
            reporting.on(used).send(call)?;
            consumed.on(used).expect_ok(&[0])?;
        }
    }
    Ok(())
}

fn not_in_first_phase(f: &mut Fixture) -> TestResult {
    let (context, tcb) = (f.context(FULL)?, f.tcb()?);
    refused_in_first_phase(f, &bind(context, tcb), |f| has_context(f, tcb))?;
    bind(context, tcb).expect_ok(&[])?;
    for take in [unbind(context), unbind_object(context, tcb)] {
        refused_in_first_phase(f, &take, |f| Ok(!has_context(f, tcb)?))?;
    }
    // A little of this time may be others', such as the watchdog's.
    let used = used(f, 200)?;
    let consumed = yield_to(used).with_label(label::SCHED_CONTEXT_CONSUMED);
    for call in FIRST_PHASE {
        yield_to(used).send_first(f, call)?;
        consumed.send_first(f, call)?;
    }
    ensure!(consumed.ok()?[0] >= 100, "the counter was reset");
    Ok(())
}
