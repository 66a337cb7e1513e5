//! 04, section 5.5: binding contexts to threads and notifications, and taking them away.

use super::kit::{run_log, runner, worker, Clock};
use crate::prelude::*;
use sandglass::cap::SchedArguments;

pub const CHECKS: &[Check] = &[
    check("04/5.5/a-bound-thread-goes-to-the-head", bind_to_the_head),
    check(
        "04/5.5/a-bound-thread-of-higher-priority-runs-at-once",
        bind_preempts,
    ),
    check("04/5.5/a-bound-thread-of-equal-priority-waits", bind_equal),
    check(
        "04/5.5/bound-to-an-exhausted-context-a-thread-waits-for-it",
        bind_exhausted,
    ),
    check(
        "04/5.5/a-blocked-thread-needs-a-released-context",
        bind_blocked,
    ),
    check(
        "04/5.5/binding-a-blocked-thread-does-not-wake-it",
        bind_does_not_wake,
    ),
    check(
        "04/5.5/binding-to-a-notification-only-links",
        bind_notification_links,
    ),
    check("04/5.5/one-thread-and-one-notification-at-once", bind_both),
    check(
        "04/5.5/an-unbound-thread-keeps-its-state",
        unbind_keeps_state,
    ),
    check(
        "04/5.5/an-unbound-thread-stays-blocked",
        unbind_keeps_blocked,
    ),
    check("04/5.5/unbinding-takes-thread-and-notification", unbind_all),
    check(
        "04/5.5/an-unbound-context-keeps-its-refills",
        unbind_keeps_refills,
    ),
    check(
        "04/5.5/set-sched-params-binds-and-unbinds",
        set_sched_params,
    ),
    check("04/5.5/the-current-thread-cannot-be-unbound", unbind_self),
];

/// A started thread of this priority without a context, which notes 9.
fn unbound(
    f: &mut Fixture,
    priority: u8,
    trace: &'static Trace,
) -> Result<(Tcb, SchedContext), Failure> {
    let tcb = f.spawn(f.passive(priority), move || trace.note(9))?;
    Ok((tcb, f.context(FULL)?))
}

fn bind_to_the_head(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let ready = worker(f, 50, trace, 1)?;
    let (tcb, context) = unbound(f, 50, trace)?;
    ready.go.signal();
    context.bind(tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), [9, 1]);
    Ok(())
}

fn bind_preempts(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (tcb, context) = unbound(f, 255, trace)?;
    trace.note(1);
    context.bind(tcb)?;
    trace.note(2);
    ensure_eq!(trace.events(), [1, 9, 2]);
    Ok(())
}

/// The current thread is put before it.
fn bind_equal(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (tcb, context) = unbound(f, 254, trace)?;
    context.bind(tcb)?;
    trace.note(1);
    f.settle()?;
    ensure_eq!(trace.events(), [1, 9]);
    Ok(())
}

fn bind_exhausted(f: &mut Fixture) -> TestResult {
    let (clock, log) = (Clock::new(f)?, run_log());
    let first = runner(f, clock, 100, SchedParams::new(500, 3_000))?;
    let second = f.spawn(f.passive(100), move || clock.log_forever(log))?;
    clock.start();
    first.tcb.resume()?;
    clock.sleep_until(1_000)?;
    first.context.unbind_tcb(first.tcb)?;
    first.context.bind(second)?;
    clock.sleep_until(4_000)?;
    clock.ensure_runs(first.log, &[(0, 500)])?;
    clock.ensure_runs(log, &[(3_000, 3_500)])
}

fn bind_blocked(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let first = runner(f, clock, 100, SchedParams::new(500, 3_000))?;
    let waiting = worker(f, 100, Trace::leak(), 1)?;
    waiting.context.unbind_tcb(waiting.tcb)?;
    clock.start();
    first.tcb.resume()?;
    clock.sleep_until(1_000)?;
    first.context.unbind_tcb(first.tcb)?;
    let bind = Invocation::new(
        first.context,
        label::SCHED_CONTEXT_BIND,
        &[],
        &[waiting.tcb.cptr()],
    );
    bind.expect_error(IllegalOperation, &[])?;
    bind.on(f.unconfigured_context(7)?)
        .expect_error(IllegalOperation, &[])?;
    // Released, it may.
    clock.sleep_until(3_100)?;
    bind.expect_ok(&[])
}

fn bind_does_not_wake(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let waiting = worker(f, 100, trace, 1)?;
    waiting.context.unbind_tcb(waiting.tcb)?;
    waiting.context.bind(waiting.tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    waiting.go.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

/// Nobody runs by it, and who waits already gets the context only with a signal.
fn bind_notification_links(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let waiting = worker(f, 100, trace, 1)?;
    waiting.context.unbind_tcb(waiting.tcb)?;
    waiting.context.bind_notification(waiting.go)?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    // The context is still free.
    let other = f.tcb()?;
    waiting.context.bind(other)?;
    waiting.context.unbind_tcb(other)?;
    waiting.go.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn bind_both(f: &mut Fixture) -> TestResult {
    let (context, notification, tcb) = (f.context(FULL)?, f.notification()?, f.tcb()?);
    context.bind_notification(notification)?;
    context.bind(tcb)?;
    let bind = Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[tcb.cptr()]);
    bind.expect_error(IllegalOperation, &[])?;
    bind.with_cap(0, f.tcb()?)
        .expect_error(IllegalOperation, &[])?;
    bind.with_cap(0, f.notification()?)
        .expect_error(IllegalOperation, &[])?;
    let other = f.context(FULL)?;
    bind.on(other).expect_error(IllegalOperation, &[])?;
    bind.on(other)
        .with_cap(0, notification)
        .expect_error(IllegalOperation, &[])?;
    context.unbind_notification(notification)?;
    bind.on(other).with_cap(0, notification).expect_ok(&[])
}

/// It goes on where it was.
fn unbind_keeps_state(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, FULL)?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(500)?;
    runner.context.unbind_tcb(runner.tcb)?;
    clock.sleep_until(1_000)?;
    runner.context.bind(runner.tcb)?;
    clock.sleep_until(1_500)?;
    clock.ensure_runs(runner.log, &[(0, 500), (1_000, 1_500)])
}

/// A signal for it is delivered, and it runs once it has a context again.
fn unbind_keeps_blocked(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let waiting = worker(f, 100, trace, 1)?;
    waiting.context.unbind_tcb(waiting.tcb)?;
    waiting.go.signal();
    f.settle()?;
    ensure_eq!(trace.events(), []);
    ensure_eq!(waiting.go.poll(), 0);
    waiting.context.bind(waiting.tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn unbind_all(f: &mut Fixture) -> TestResult {
    let (context, notification, tcb) = (f.context(FULL)?, f.notification()?, f.tcb()?);
    context.bind_notification(notification)?;
    context.bind(tcb)?;
    context.unbind()?;
    let unbind = Invocation::new(
        context,
        label::SCHED_CONTEXT_UNBIND_OBJECT,
        &[],
        &[tcb.cptr()],
    );
    unbind.expect_error(IllegalOperation, &[])?;
    unbind
        .with_cap(0, notification)
        .expect_error(IllegalOperation, &[])?;
    // Unbinding what is not bound is no error.
    context.unbind()?;
    let other = f.context(FULL)?;
    other.bind(tcb)?;
    other.bind_notification(notification)?;
    Ok(())
}

fn unbind_keeps_refills(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(
        f,
        clock,
        100,
        SchedParams::new(1_000, 5_000).extra_refills(1),
    )?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(300)?;
    runner.context.unbind()?;
    clock.sleep_until(1_300)?;
    runner.context.bind(runner.tcb)?;
    clock.sleep_until(7_200)?;
    let expected = [(0, 300), (1_300, 2_000), (5_000, 5_300), (6_300, 7_000)];
    clock.ensure_runs(runner.log, &expected)
}

fn set_sched_params(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (tcb, context) = unbound(f, 50, trace)?;
    let arguments = SchedArguments {
        mcp: 0,
        priority: 50,
        sched_context: Some(context),
        fault_handler: None,
    };
    tcb.set_sched_params(f.me, arguments)?;
    tcb.set_sched_params(
        f.me,
        SchedArguments {
            sched_context: None,
            ..arguments
        },
    )?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    tcb.set_sched_params(f.me, arguments)?;
    f.settle()?;
    ensure_eq!(trace.events(), [9]);
    Ok(())
}

fn unbind_self(f: &mut Fixture) -> TestResult {
    let unbind = Invocation::new(f.my_context, label::SCHED_CONTEXT_UNBIND, &[], &[]);
    unbind.expect_error(IllegalOperation, &[])?;
    let unbind_me = Invocation::new(
        f.my_context,
        label::SCHED_CONTEXT_UNBIND_OBJECT,
        &[],
        &[f.me.cptr()],
    );
    unbind_me.expect_error(IllegalOperation, &[])?;
    // Another may, and this thread then stops.
    let (me, context, trace) = (f.me, f.my_context, Trace::leak());
    f.helper(255, move || {
        trace.note(u64::from(context.unbind_tcb(me).is_ok()));
        trace.note(u64::from(context.bind(me).is_ok()));
    })?;
    ensure_eq!(trace.events(), [1, 1]);
    Ok(())
}
