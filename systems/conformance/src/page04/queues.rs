//! 04, sections 8.1, 8.2, 8.4 and 8.5: the order of the ready queues, and each decision that changes
//! it. (In which order threads of *one* priority go on whose budgets came back while others ran
//! is not checked.)

use super::kit::{active, run_log, runner, worker, Clock, Worker};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "04/8.5/the-highest-priority-runs-first",
        highest_priority_first,
    ),
    check(
        "04/8.5/every-priority-is-above-the-one-below",
        every_priority,
    ),
    check(
        "04/8.5/a-woken-thread-of-higher-priority-preempts",
        woken_higher,
    ),
    check(
        "04/8.5/a-woken-thread-of-equal-priority-does-not-preempt",
        woken_equal,
    ),
    check(
        "04/8.5/equals-woken-one-by-one-go-to-the-tail",
        woken_equals,
    ),
    check(
        "04/8.5/woken-threads-of-lower-priority-go-to-the-head",
        woken_lower,
    ),
    check(
        "04/8.5/a-preempted-thread-stays-first-among-its-equals",
        preempted_first,
    ),
    check(
        "04/8.5/a-blocked-thread-makes-room-for-the-next-equal",
        blocked_makes_room,
    ),
    check(
        "04/8.2/threads-woken-together-run-last-first",
        woken_together,
    ),
    check(
        "04/8.2/a-reply-and-a-received-send-wake-two",
        reply_and_receive,
    ),
    check(
        "04/8.2/a-call-switches-past-the-caller's-equals",
        call_switches,
    ),
    check(
        "04/8.2/a-reply-that-goes-on-lets-its-caller-wait",
        reply_switches,
    ),
    check("04/8.4/a-postponed-thread-lets-lower-ones-run", postponed),
    check(
        "04/8.4/an-exhausted-thread-of-high-priority-is-no-candidate",
        exhausted_no_candidate,
    ),
    check("04/8.1/releases-come-in-the-order-of-time", release_order),
    check(
        "04/8.5/a-released-thread-of-higher-priority-preempts",
        released_higher,
    ),
    check(
        "04/8.5/a-released-thread-of-equal-priority-does-not-preempt",
        released_equal,
    ),
    check(
        "04/8.5/a-released-thread-of-lower-priority-does-not-disturb",
        released_lower,
    ),
    check("04/8.5/a-released-thread-ends-idleness", released_idle),
    check("04/8.5/a-woken-thread-ends-idleness", woken_idle),
];

fn highest_priority_first(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    for priority in [50, 200, 1, 253, 100] {
        f.helper(priority, move || trace.note(u64::from(priority)))?;
    }
    f.settle()?;
    ensure_eq!(trace.events(), [253, 200, 100, 50, 1]);
    Ok(())
}

fn every_priority(f: &mut Fixture) -> TestResult {
    // In the order of multiples of 37, which has no factor in common with 253.
    for part in 0..5_u64 {
        let trace = Trace::leak();
        let priorities = (0..50).map(|i| 1 + (part * 50 + i) * 37 % 253);
        let mut expected: Vec<_> = priorities.collect();
        for &priority in &expected {
            f.helper(priority as u8, move || trace.note(priority))?;
        }
        expected.sort_unstable_by(|a, b| b.cmp(a));
        f.settle()?;
        ensure_eq!(trace.events(), expected);
    }
    Ok(())
}

/// Workers with the numbers from 1 on.
fn workers<const N: usize>(
    f: &mut Fixture,
    trace: &'static Trace,
    priorities: [u8; N],
) -> Result<[Worker; N], Failure> {
    let mut all = Vec::new();
    for (number, priority) in (1..).zip(priorities) {
        all.push(worker(f, priority, trace, number)?);
    }
    all.try_into().map_err(|_| Failure::from("not all workers"))
}

fn woken_higher(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let [above] = workers(f, trace, [255])?;
    trace.note(10);
    above.go.signal();
    trace.note(11);
    ensure_eq!(trace.events(), [10, 1, 11]);
    Ok(())
}

fn woken_equal(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let [equal] = workers(f, trace, [254])?;
    equal.go.signal();
    trace.note(10);
    f.settle()?;
    ensure_eq!(trace.events(), [10, 1]);
    Ok(())
}

fn woken_equals(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let [one, two, three] = workers(f, trace, [254; 3])?;
    for next in [two, three, one] {
        next.go.signal();
    }
    f.settle()?;
    ensure_eq!(trace.events(), [2, 3, 1]);
    Ok(())
}

fn woken_lower(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let [one, two, three] = workers(f, trace, [50; 3])?;
    for next in [two, three, one] {
        next.go.signal();
    }
    f.settle()?;
    ensure_eq!(trace.events(), [1, 3, 2]);
    Ok(())
}

/// A thread of priority 50 with an equal behind it is preempted by its own signal.
fn preempted_first(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let [equal, above] = workers(f, trace, [50, 60])?;
    active(f, 50, move || {
        equal.go.signal();
        trace.note(10);
        above.go.signal();
        trace.note(11);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [10, 2, 11, 1]);
    Ok(())
}

fn blocked_makes_room(f: &mut Fixture) -> TestResult {
    let (trace, gate) = (Trace::leak(), f.notification()?);
    let [one, two] = workers(f, trace, [50; 2])?;
    active(f, 50, move || {
        one.go.signal();
        two.go.signal();
        trace.note(10);
        gate.wait();
        trace.note(11);
        one.go.signal();
        trace.note(12);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [10, 1, 2]);
    two.go.signal();
    gate.signal();
    f.settle()?;
    // Woken from above, the one that was woken last is the head; its own signal goes to the tail.
    ensure_eq!(trace.events(), [10, 1, 2, 11, 12, 2, 1]);
    Ok(())
}

/// The deletion of an endpoint wakes all who wait there, in their order; each is put before the
/// one before it.
fn woken_together(f: &mut Fixture) -> TestResult {
    let (trace, endpoint) = (Trace::leak(), f.endpoint()?);
    for number in 1..=3 {
        active(f, 50, move || {
            endpoint.send(Message::EMPTY);
            trace.note(number);
        })?;
        f.settle()?;
    }
    f.slot_of(endpoint).delete()?;
    f.settle()?;
    ensure_eq!(trace.events(), [3, 2, 1]);
    Ok(())
}

/// A server of priority 60 answers one and takes the message of another in one system call: the
/// second goes before the first.
fn reply_and_receive(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let go = f.notification()?;
    active(f, 60, move || {
        endpoint.recv(reply);
        go.wait();
        reply.reply_recv(endpoint, Message::EMPTY);
        trace.note(10);
    })?;
    f.settle()?;
    active(f, 50, move || {
        endpoint.call(Message::EMPTY);
        trace.note(1);
    })?;
    f.settle()?;
    active(f, 50, move || {
        endpoint.send(Message::EMPTY);
        trace.note(2);
    })?;
    f.settle()?;
    go.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [10, 2, 1]);
    Ok(())
}

/// The callee, an equal of the caller and of another that is ready, runs at once: it is the
/// candidate, and the caller blocks.
fn call_switches(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    active(f, 50, move || loop {
        endpoint.recv(reply);
        trace.note(10);
        reply.send(Message::EMPTY);
        trace.note(11);
    })?;
    let [equal] = workers(f, trace, [50])?;
    active(f, 50, move || {
        equal.go.signal();
        endpoint.call(Message::EMPTY);
        trace.note(12);
    })?;
    f.settle()?;
    // The caller, answered, goes behind the equal.
    ensure_eq!(trace.events(), [10, 11, 1, 12]);
    Ok(())
}

/// With Send the replier goes on, with ReplyRecv it waits, and the caller runs.
fn reply_switches(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    active(f, 50, move || {
        endpoint.recv(reply);
        loop {
            trace.note(10);
            reply.reply_recv(endpoint, Message::EMPTY);
        }
    })?;
    let [equal] = workers(f, trace, [50])?;
    active(f, 50, move || {
        equal.go.signal();
        endpoint.call(Message::EMPTY);
        trace.note(12);
        endpoint.call(Message::EMPTY);
        trace.note(13);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [10, 12, 10, 13, 1]);
    Ok(())
}

fn postponed(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let high = runner(f, clock, 100, SchedParams::new(500, 2_000))?;
    let middle = runner(f, clock, 90, SchedParams::new(500, 4_000))?;
    let low = runner(f, clock, 80, FULL)?;
    clock.start();
    for next in [low, middle, high] {
        next.tcb.resume()?;
    }
    clock.sleep_until(5_000)?;
    clock.ensure_runs(high.log, &[(0, 500), (2_000, 2_500), (4_000, 4_500)])?;
    clock.ensure_runs(middle.log, &[(500, 1_000), (4_500, 5_000)])?;
    clock.ensure_runs(low.log, &[(1_000, 2_000), (2_500, 4_000)])
}

/// It waits for a signal with an exhausted budget, and is woken before its refill.
fn exhausted_no_candidate(f: &mut Fixture) -> TestResult {
    let (clock, log, gate) = (Clock::new(f)?, run_log(), f.notification()?);
    let thread = f.active_on(100, SchedParams::new(500, 3_000))?;
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, 475);
        gate.wait();
        clock.log_forever(log);
    })?;
    let low = runner(f, clock, 50, FULL)?;
    clock.start();
    low.tcb.resume()?;
    tcb.resume()?;
    clock.sleep_until(1_000)?;
    // The 25 left are enough to wait by, and to go on by.
    gate.signal();
    clock.sleep_until(4_100)?;
    clock.ensure_runs(log, &[(0, 475), (1_000, 1_025)])?;
    clock.ensure_runs(low.log, &[(475, 1_000)])
}

/// Of threads that wait for their refills, each of another priority, each runs when its time
/// comes.
fn release_order(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let periods = [3_000, 2_000, 4_000, 2_500];
    let mut all = Vec::new();
    for (priority, period) in (50..).zip(periods) {
        all.push(runner(f, clock, priority, SchedParams::new(100, period))?);
    }
    clock.start();
    for runner in &all {
        runner.tcb.resume()?;
    }
    clock.sleep_until(4_900)?;
    for (i, (runner, period)) in (0..).zip(all.iter().zip(periods)) {
        let first = 100 * (3 - i);
        let expected = [(first, first + 100), (first + period, first + period + 100)];
        clock.ensure_runs(runner.log, &expected)?;
    }
    Ok(())
}

fn released_higher(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let high = runner(f, clock, 100, SchedParams::new(200, 1_000))?;
    let low = runner(f, clock, 50, FULL)?;
    clock.start();
    low.tcb.resume()?;
    high.tcb.resume()?;
    clock.sleep_until(2_900)?;
    clock.ensure_runs(high.log, &[(0, 200), (1_000, 1_200), (2_000, 2_200)])?;
    clock.ensure_runs(low.log, &[(200, 1_000), (1_200, 2_000), (2_200, 2_900)])
}

/// It runs when the slice of the other is over.
fn released_equal(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let periodic = runner(f, clock, 100, SchedParams::new(200, 1_000))?;
    let other = runner(f, clock, 100, SchedParams::new(1_500, 1_500))?;
    clock.start();
    other.tcb.resume()?;
    periodic.tcb.resume()?;
    clock.sleep_until(3_300)?;
    clock.ensure_runs(periodic.log, &[(0, 200), (1_700, 1_900)])?;
    clock.ensure_runs(other.log, &[(200, 1_700), (1_900, 3_300)])
}

fn released_lower(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let low = runner(f, clock, 50, SchedParams::new(200, 1_000))?;
    let high = runner(f, clock, 100, FULL)?;
    clock.start();
    low.tcb.resume()?;
    clock.sleep_until(500)?;
    high.tcb.resume()?;
    clock.sleep_until(2_500)?;
    high.tcb.suspend()?;
    clock.sleep_until(4_000)?;
    clock.ensure_runs(high.log, &[(500, 2_500)])?;
    // Its period starts when it runs.
    clock.ensure_runs(low.log, &[(0, 200), (2_500, 2_700), (3_500, 3_700)])
}

fn released_idle(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let one = runner(f, clock, 50, SchedParams::new(100, 1_000))?;
    let two = runner(f, clock, 60, SchedParams::new(100, 700))?;
    clock.start();
    two.tcb.resume()?;
    one.tcb.resume()?;
    clock.sleep_until(2_000)?;
    clock.ensure_runs(two.log, &[(0, 100), (700, 800), (1_400, 1_500)])?;
    clock.ensure_runs(one.log, &[(100, 200), (1_100, 1_200)])
}

/// By the timer's thread, of which the check hears at once.
fn woken_idle(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    clock.start();
    for at in [500, 1_700, 1_900] {
        clock.sleep_until(at)?;
        super::kit::ensure_near("the alarm", clock.now(), at)?;
    }
    Ok(())
}
