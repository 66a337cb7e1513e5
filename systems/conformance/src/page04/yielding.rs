//! 04, section 9: Yield and SchedContext_YieldTo.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::kit::{active, ensure_near, run_log, runner, worker, Clock};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/9.1/yield-forfeits-the-rest-of-the-budget", forfeits),
    check("04/9.1/yield-forfeits-only-the-head", forfeits_head),
    check(
        "04/9.1/yield-with-a-ready-refill-goes-to-the-tail",
        next_refill_ready,
    ),
    check("04/9.1/yield-lets-equals-run-first", lets_equals_run),
    check("04/9.1/yield-does-not-let-lower-ones-run", not_lower),
    check("04/9.1/yield-counts-what-was-consumed-only", yield_consumed),
    check("04/9.2/to-a-lower-one-returns-at-once", to_lower),
    check("04/9.2/a-lower-one-goes-to-the-head", to_lower_head),
    check("04/9.2/to-an-equal-lets-it-run-first", to_equal),
    check(
        "04/2.4/yielding-to-who-is-not-schedulable-returns-at-once",
        to_unschedulable,
    ),
    check("04/9.2/to-an-exhausted-one-returns-at-once", to_exhausted),
    check(
        "04/9.2/a-second-yielder-completes-the-first",
        second_yielder,
    ),
    check("04/9.2/deleting-the-context-completes", context_deleted),
    check("04/9.2/deleting-the-thread-completes", thread_deleted),
    check("04/9.2/the-caller-keeps-its-place", caller_keeps_place),
    check("04/9.2/checks-in-their-order", checks),
];

fn forfeits(f: &mut Fixture) -> TestResult {
    for params in [
        SchedParams::new(1_000, 5_000),
        SchedParams::new(1_000, 5_000).sporadic().extra_refills(2),
    ] {
        let (clock, log) = (Clock::new(f)?, run_log());
        let thread = f.active_on(100, params)?;
        let tcb = f.prepare(thread, move || {
            clock.log_until(log, 200);
            sys::yield_now();
            clock.log_forever(log);
        })?;
        clock.start();
        tcb.resume()?;
        clock.sleep_until(6_500)?;
        clock.ensure_runs(log, &[(0, 200), (5_000, 6_000)])?;
    }
    Ok(())
}

/// 200 used at 0 come back at 5000; the 800 that are left at 1000 at 6000, used or not.
fn forfeits_head(f: &mut Fixture) -> TestResult {
    let (clock, log) = (Clock::new(f)?, run_log());
    let thread = f.active_on(100, SchedParams::new(1_000, 5_000).extra_refills(2))?;
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, 1_300);
        sys::yield_now();
        clock.log_forever(log);
    })?;
    clock.start();
    tcb.resume()?;
    clock.hold(200, 1_000)?;
    clock.sleep_until(7_000)?;
    let expected = [(0, 200), (1_000, 1_300), (5_000, 5_200), (6_000, 6_800)];
    clock.ensure_runs(log, &expected)
}

/// A sporadic thread, preempted until its first refill is back: it yields 600 of the old one, and
/// goes behind its equal with the whole budget.
fn next_refill_ready(f: &mut Fixture) -> TestResult {
    let (clock, log) = (Clock::new(f)?, run_log());
    let thread = f.active_on(
        100,
        SchedParams::new(1_000, 5_000).extra_refills(2).sporadic(),
    )?;
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, 6_100);
        sys::yield_now();
        clock.log_forever(log);
    })?;
    let equal = runner(f, clock, 100, SchedParams::new(400, 9_000))?;
    clock.start();
    tcb.resume()?;
    clock.hold(300, 6_000)?;
    // The preempted thread, the head of its priority, must come before this one.
    equal.tcb.resume()?;
    tcb.set_priority(f.me, 100)?;
    clock.sleep_until(8_000)?;
    clock.ensure_runs(equal.log, &[(6_100, 6_500)])?;
    clock.ensure_runs(log, &[(0, 300), (6_000, 6_100), (6_500, 7_500)])
}

fn lets_equals_run(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (one, two) = (worker(f, 50, trace, 1)?, worker(f, 50, trace, 2)?);
    active(f, 50, move || {
        one.go.signal();
        two.go.signal();
        trace.note(10);
        sys::yield_now();
        trace.note(11);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [10, 1, 2, 11]);
    Ok(())
}

fn not_lower(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let lower = worker(f, 253, trace, 1)?;
    lower.go.signal();
    sys::yield_now();
    trace.note(10);
    f.settle()?;
    ensure_eq!(trace.events(), [10, 1]);
    Ok(())
}

fn yield_consumed(f: &mut Fixture) -> TestResult {
    for params in [FULL, SchedParams::new(1_000, 5_000)] {
        let (clock, never) = (Clock::new(f)?, f.notification()?);
        let thread = f.active_on(100, params)?;
        f.spawn(thread, move || {
            clock.burn(200);
            sys::yield_now();
            never.wait();
        })?;
        f.sleep(6_000)?;
        let context = thread.sched_context.unwrap_or(f.my_context);
        ensure_near("consumed", context.consumed_us()?, 200)?;
    }
    Ok(())
}

/// The result is what was consumed, and the count starts anew.
fn to_lower(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (_, context) = active(f, 100, move || {
        clock.burn(400);
        trace.note(1);
        spin();
    })?;
    f.sleep(700)?;
    ensure_eq!(trace.events(), [1]);
    let yield_to = Invocation::new(context, label::SCHED_CONTEXT_YIELD_TO, &[], &[]);
    let words = yield_to.ok()?;
    ensure_eq!(words.len(), 1);
    ensure!((400..900).contains(&words[0]), "{} µs consumed", words[0]);
    yield_to.expect_ok(&[0])
}

fn to_lower_head(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (one, two) = (worker(f, 50, trace, 1)?, worker(f, 50, trace, 2)?);
    one.go.signal();
    two.go.signal();
    one.context.yield_to()?;
    trace.note(10);
    f.settle()?;
    ensure_eq!(trace.events(), [10, 1, 2]);
    Ok(())
}

/// Before other equals, and before the caller, which is told what it consumed then.
fn to_equal(f: &mut Fixture) -> TestResult {
    let (clock, trace, go) = (Clock::new(f)?, Trace::leak(), f.notification()?);
    let first = worker(f, 254, trace, 1)?;
    let (_, context) = active(f, 254, move || loop {
        go.wait();
        trace.note(2);
        clock.burn(300);
    })?;
    f.settle()?;
    context.consumed_us()?;
    first.go.signal();
    go.signal();
    let consumed = context.yield_to()?;
    trace.note(10);
    ensure_eq!(trace.events(), [2, 10]);
    ensure_near("consumed", consumed, 300)?;
    ensure_eq!(context.consumed_us()?, 0);
    f.settle()?;
    ensure_eq!(trace.events(), [2, 10, 1]);
    Ok(())
}

/// Blocked (also of higher priority: a ready one would be running), inactive, or on an
/// unconfigured context.
fn to_unschedulable(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let blocked = worker(f, 254, trace, 1)?;
    blocked.context.consumed_us()?;
    let above = worker(f, 255, trace, 3)?;
    above.context.consumed_us()?;
    let inactive = worker(f, 254, trace, 2)?;
    inactive.tcb.suspend()?;
    inactive.context.consumed_us()?;
    let unconfigured = f.unconfigured_context(7)?;
    let params = ThreadParams {
        sched_context: Some(unconfigured),
        ..f.passive(254)
    };
    f.spawn(params, || ())?;
    for context in [
        blocked.context,
        above.context,
        inactive.context,
        unconfigured,
    ] {
        let yield_to = Invocation::new(context, label::SCHED_CONTEXT_YIELD_TO, &[], &[]);
        yield_to.expect_ok(&[0])?;
    }
    ensure_eq!(trace.events(), []);
    Ok(())
}

/// An equal that waits for its refill does not run, and its time is reported.
fn to_exhausted(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let target = runner(f, clock, 254, SchedParams::new(500, 3_000))?;
    clock.start();
    target.tcb.resume()?;
    clock.sleep_until(1_000)?;
    ensure_near("consumed", target.context.yield_to()?, 500)?;
    clock.ensure_runs(target.log, &[(0, 500)])?;
    clock.sleep_until(3_200)?;
    clock.ensure_runs(target.log, &[(0, 500), (3_000, 3_200)])
}

/// A thread of priority 50, not started, that yields to a context, stores the result and notes
/// its number. Started from above, it is the head of its priority.
fn yielder(
    f: &mut Fixture,
    target: SchedContext,
    result: &'static AtomicU64,
    trace: &'static Trace,
    number: u64,
) -> Result<Tcb, Failure> {
    let params = ThreadParams {
        mcp: u8::MAX,
        ..f.active(50)?
    };
    Ok(f.prepare(params, move || {
        result.store(target.yield_to().unwrap_or(u64::MAX), Relaxed);
        trace.note(number);
    })?)
}

/// Two threads yield to a third, which is preempted in between. The first is told what was
/// consumed until then, the second what was consumed since.
fn second_yielder(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let (first, second): (&AtomicU64, &AtomicU64) = (shared(), shared());
    let (gate, trace) = (f.notification()?, Trace::leak());
    let (_, target) = active(f, 50, move || {
        gate.wait();
        clock.burn(1_000);
        trace.note(1);
    })?;
    f.settle()?;
    target.consumed_us()?;
    let early = yielder(f, target, first, trace, 2)?;
    let late = yielder(f, target, second, trace, 3)?;
    gate.signal();
    early.resume()?;
    clock.start();
    clock.sleep_until(400)?;
    late.resume()?;
    clock.sleep_until(2_500)?;
    ensure_near("the first's result", first.load(Relaxed), 400)?;
    ensure_near("the second's result", second.load(Relaxed), 600)?;
    ensure_eq!(trace.events(), [1, 3, 2]);
    Ok(())
}

/// A spinning thread of priority 50, one that has yielded to it, and what that was told; it is
/// 400 µs after that.
fn yielded(
    f: &mut Fixture,
) -> Result<(Clock, Tcb, SchedContext, Tcb, &'static AtomicU64), Failure> {
    let clock = Clock::new(f)?;
    let result: &AtomicU64 = shared();
    result.store(12_345, Relaxed);
    let (target, context) = active(f, 50, || spin())?;
    let yielder = yielder(f, context, result, Trace::leak(), 1)?;
    yielder.resume()?;
    clock.start();
    clock.sleep_until(400)?;
    ensure_eq!(result.load(Relaxed), 12_345);
    Ok((clock, target, context, yielder, result))
}

fn context_deleted(f: &mut Fixture) -> TestResult {
    let (_, _, context, _, result) = yielded(f)?;
    f.slot_of(context).delete()?;
    f.settle()?;
    ensure_near("the result", result.load(Relaxed), 400)
}

/// What it consumed is reported once: to the yielder.
fn thread_deleted(f: &mut Fixture) -> TestResult {
    let (_, target, context, _, result) = yielded(f)?;
    f.slot_of(target).delete()?;
    ensure_eq!(context.consumed_us()?, 0);
    f.settle()?;
    ensure_near("the result", result.load(Relaxed), 400)
}

/// The caller is the next of its priority, before those that were there.
fn caller_keeps_place(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (other, target) = (worker(f, 50, trace, 1)?, worker(f, 50, trace, 2)?);
    let params = ThreadParams {
        mcp: u8::MAX,
        ..f.active(50)?
    };
    f.spawn(params, move || {
        other.go.signal();
        target.go.signal();
        trace.note(10);
        if target.context.yield_to().is_ok() {
            trace.note(11);
        }
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [10, 2, 11, 1]);
    Ok(())
}

/// No thread; the caller's own; a thread above the caller's MCP.
fn checks(f: &mut Fixture) -> TestResult {
    let (free, above) = (f.context(FULL)?, worker(f, 255, Trace::leak(), 1)?);
    let yield_to = Invocation::new(free, label::SCHED_CONTEXT_YIELD_TO, &[], &[]);
    yield_to.expect_error(IllegalOperation, &[])?;
    yield_to
        .on(f.my_context)
        .expect_error(IllegalOperation, &[])?;
    f.me.set_mc_priority(f.me, 254)?;
    yield_to
        .on(above.context)
        .expect_error(IllegalOperation, &[])?;
    f.me.set_mc_priority(boot::TCB, 255)?;
    yield_to.on(above.context).ok()?;
    Ok(())
}
