//! 04, sections 8.1 and 8.3: changing priorities, and the queues of endpoints and notifications.

use super::kit::{active, runner, worker, Clock};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "04/8.3/raised-above-the-caller-a-ready-thread-runs-at-once",
        raised_above,
    ),
    check(
        "04/8.3/raised-to-the-caller's-priority-a-thread-waits",
        raised_to_equal,
    ),
    check(
        "04/8.3/a-ready-thread-goes-to-the-head-of-its-new-priority",
        to_the_head,
    ),
    check(
        "04/8.3/setting-the-same-priority-moves-to-the-head",
        same_priority,
    ),
    check(
        "04/8.3/who-lowers-itself-below-a-ready-thread-stops",
        lowers_itself,
    ),
    check(
        "04/8.3/who-lowers-itself-to-a-ready-thread's-goes-on",
        lowers_to_equal,
    ),
    check(
        "04/8.3/who-raises-itself-is-not-preempted-any-more",
        raises_itself,
    ),
    check("04/8.3/a-lowered-thread-is-preempted", lowered),
    check(
        "04/8.3/a-blocked-thread-wakes-with-its-new-priority",
        blocked,
    ),
    check(
        "04/8.3/an-inactive-thread-starts-with-its-new-priority",
        inactive,
    ),
    check(
        "04/8.3/a-thread-waiting-for-its-refill-comes-with-its-new-priority",
        waiting_for_refill,
    ),
    check(
        "04/8.3/a-thread-waiting-for-a-reply-comes-with-its-new-priority",
        waiting_for_reply,
    ),
    check(
        "04/8.1/senders-queue-by-priority-first-come-first-served",
        senders,
    ),
    check(
        "04/8.1/callers-and-senders-share-a-queue",
        callers_and_senders,
    ),
    check(
        "04/8.1/receivers-queue-by-priority-first-come-first-served",
        receivers,
    ),
    check(
        "04/8.1/waiters-queue-by-priority-first-come-first-served",
        waiters,
    ),
    check(
        "04/8.3/a-queued-sender-moves-behind-its-new-equals",
        senders_move,
    ),
    check(
        "04/8.3/a-queued-receiver-moves-behind-its-new-equals",
        receivers_move,
    ),
    check(
        "04/8.3/a-queued-waiter-moves-behind-its-new-equals",
        waiters_move,
    ),
    check(
        "04/8.3/a-queued-thread-set-to-its-priority-moves-behind-its-equals",
        same_in_queue,
    ),
    check(
        "04/8.3/set-sched-params-sets-the-priority-alike",
        by_sched_params,
    ),
];

fn raised_above(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let ready = worker(f, 50, trace, 1)?;
    ready.go.signal();
    trace.note(10);
    ready.tcb.set_priority(f.me, 255)?;
    trace.note(11);
    ensure_eq!(trace.events(), [10, 1, 11]);
    Ok(())
}

/// It is put at the head of that priority, and the caller before it.
fn raised_to_equal(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (equal, raised) = (worker(f, 254, trace, 1)?, worker(f, 50, trace, 2)?);
    equal.go.signal();
    raised.go.signal();
    raised.tcb.set_priority(f.me, 254)?;
    trace.note(10);
    f.settle()?;
    ensure_eq!(trace.events(), [10, 2, 1]);
    Ok(())
}

fn to_the_head(f: &mut Fixture) -> TestResult {
    for from in [40, 60] {
        let trace = Trace::leak();
        let (one, two) = (worker(f, 50, trace, 1)?, worker(f, from, trace, 2)?);
        two.go.signal();
        one.go.signal();
        two.tcb.set_priority(f.me, 50)?;
        f.settle()?;
        ensure_eq!(trace.events(), [2, 1]);
    }
    Ok(())
}

fn same_priority(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (one, two) = (worker(f, 50, trace, 1)?, worker(f, 50, trace, 2)?);
    one.go.signal();
    two.go.signal();
    one.tcb.set_priority(f.me, 50)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    Ok(())
}

/// A thread of priority 60 sets its own to `to`, while one of 50 is ready.
fn sets_itself(f: &mut Fixture, to: u8) -> Result<Vec<u64>, Failure> {
    let trace = Trace::leak();
    let ready = worker(f, 50, trace, 1)?;
    // A thread is named by its capability, which it must know before it starts.
    let own: &core::sync::atomic::AtomicU64 = shared();
    let params = ThreadParams {
        mcp: 255,
        ..f.active(60)?
    };
    let tcb = f.prepare(params, move || {
        let tcb = Tcb::at(own.load(core::sync::atomic::Ordering::Relaxed));
        ready.go.signal();
        trace.note(10);
        if tcb.set_priority(tcb, to).is_ok() {
            trace.note(11);
        }
        ready.go.signal();
        trace.note(12);
    })?;
    own.store(tcb.address(), core::sync::atomic::Ordering::Relaxed);
    tcb.resume()?;
    f.settle()?;
    Ok(trace.events())
}

fn lowers_itself(f: &mut Fixture) -> TestResult {
    // The second signal wakes the higher one at once.
    ensure_eq!(sets_itself(f, 40)?, [10, 1, 11, 1, 12]);
    Ok(())
}

/// The second signal is pending when the ready one waits again.
fn lowers_to_equal(f: &mut Fixture) -> TestResult {
    ensure_eq!(sets_itself(f, 50)?, [10, 11, 12, 1, 1]);
    Ok(())
}

fn raises_itself(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let above = worker(f, 255, trace, 1)?;
    f.me.set_priority(f.me, 255)?;
    above.go.signal();
    trace.note(10);
    f.me.set_priority(f.me, 254)?;
    trace.note(11);
    ensure_eq!(trace.events(), [10, 1, 11]);
    Ok(())
}

/// A running thread is lowered by one that runs above it for a moment.
fn lowered(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let (one, two) = (runner(f, clock, 60, FULL)?, runner(f, clock, 50, FULL)?);
    clock.start();
    two.tcb.resume()?;
    one.tcb.resume()?;
    clock.sleep_until(500)?;
    one.tcb.set_priority(f.me, 40)?;
    clock.sleep_until(1_000)?;
    one.tcb.set_priority(f.me, 60)?;
    clock.sleep_until(1_500)?;
    clock.ensure_runs(one.log, &[(0, 500), (1_000, 1_500)])?;
    clock.ensure_runs(two.log, &[(500, 1_000)])
}

fn blocked(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (one, two) = (worker(f, 50, trace, 1)?, worker(f, 60, trace, 2)?);
    one.tcb.set_priority(f.me, 70)?;
    one.go.signal();
    two.go.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    Ok(())
}

fn inactive(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let params = f.active(50)?;
    let tcb = f.prepare(params, move || trace.note(1))?;
    tcb.set_priority(f.me, 255)?;
    trace.note(10);
    tcb.resume()?;
    trace.note(11);
    ensure_eq!(trace.events(), [10, 1, 11]);
    Ok(())
}

/// From below another to above it, and back.
fn waiting_for_refill(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let periodic = runner(f, clock, 60, SchedParams::new(200, 1_000))?;
    let other = runner(f, clock, 50, FULL)?;
    clock.start();
    other.tcb.resume()?;
    periodic.tcb.resume()?;
    clock.sleep_until(500)?;
    periodic.tcb.set_priority(f.me, 40)?;
    clock.sleep_until(1_500)?;
    clock.ensure_runs(periodic.log, &[(0, 200)])?;
    ensure_eq!(clock.runs(periodic.log).len(), 1);
    periodic.tcb.set_priority(f.me, 60)?;
    clock.sleep_until(1_800)?;
    periodic.tcb.set_priority(f.me, 40)?;
    periodic.tcb.set_priority(f.me, 70)?;
    clock.sleep_until(2_900)?;
    clock.ensure_runs(periodic.log, &[(0, 200), (1_500, 1_700), (2_500, 2_700)])
}

fn waiting_for_reply(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let other = worker(f, 60, trace, 2)?;
    let (caller, _) = active(f, 50, move || {
        endpoint.call(Message::EMPTY);
        trace.note(1);
    })?;
    endpoint.recv(reply);
    caller.set_priority(f.me, 70)?;
    other.go.signal();
    reply.send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    Ok(())
}

/// Priorities of threads 1 to 6 in the order of their coming, and the order of their going.
const ARRIVALS: [u8; 6] = [50, 70, 50, 60, 70, 40];
const DEPARTURES: [u64; 6] = [2, 5, 4, 1, 3, 6];

/// Starts a thread of each of these priorities, one after the other; each sends or calls with its
/// number as the label.
fn queue_senders(
    f: &mut Fixture,
    endpoint: Endpoint,
    priorities: &[u8],
    calls: impl Fn(u64) -> bool,
) -> Result<Vec<Tcb>, Failure> {
    let mut threads = Vec::new();
    for (number, &priority) in (1..).zip(priorities) {
        let is_call = calls(number);
        threads.push(
            active(f, priority, move || {
                let message = Message::new(number, []);
                if is_call {
                    endpoint.call(message);
                } else {
                    endpoint.send(message);
                }
            })?
            .0,
        );
        f.settle()?;
    }
    Ok(threads)
}

/// The labels of `count` messages taken from the endpoint.
fn take(f: &mut Fixture, endpoint: Endpoint, count: usize) -> Result<Vec<u64>, Failure> {
    let mut labels = Vec::new();
    for _ in 0..count {
        let reply = f.reply()?;
        labels.push(endpoint.nb_recv(reply).message.label());
    }
    Ok(labels)
}

fn senders(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    queue_senders(f, endpoint, &ARRIVALS, |_| false)?;
    ensure_eq!(take(f, endpoint, 6)?, DEPARTURES);
    Ok(())
}

fn callers_and_senders(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    queue_senders(f, endpoint, &ARRIVALS, |number| number % 2 == 0)?;
    ensure_eq!(take(f, endpoint, 6)?, DEPARTURES);
    Ok(())
}

/// Starts a thread of each of these priorities, one after the other; each waits and then notes
/// its number and what it got.
fn queue_waiters(
    f: &mut Fixture,
    priorities: &[u8],
    trace: &'static Trace,
    wait: impl Fn() -> u64 + Copy + Send + 'static,
) -> Result<Vec<Tcb>, Failure> {
    let mut threads = Vec::new();
    for (number, &priority) in (1..).zip(priorities) {
        threads.push(active(f, priority, move || trace.note(number * 100 + wait()))?.0);
        f.settle()?;
    }
    Ok(threads)
}

/// Who got what: the n-th message went to the n-th of `order`, whenever they noted it.
fn ensure_served(trace: &Trace, order: &[u64]) -> TestResult {
    let mut events = trace.events();
    events.sort_unstable_by_key(|event| event % 100);
    let expected: Vec<u64> = (1..)
        .zip(order)
        .map(|(n, thread)| thread * 100 + n)
        .collect();
    ensure_eq!(events, expected);
    Ok(())
}

fn receivers(f: &mut Fixture) -> TestResult {
    let (trace, endpoint) = (Trace::leak(), f.endpoint()?);
    queue_waiters(f, &ARRIVALS, trace, move || endpoint.wait().message.label())?;
    for label in 1..=6 {
        endpoint.nb_send(Message::new(label, []));
    }
    f.settle()?;
    ensure_served(trace, &DEPARTURES)
}

fn waiters(f: &mut Fixture) -> TestResult {
    let (trace, notification) = (Trace::leak(), f.notification()?);
    queue_waiters(f, &ARRIVALS, trace, move || notification.wait())?;
    for badge in 1..=6 {
        f.badged(notification, badge)?.signal();
    }
    f.settle()?;
    ensure_served(trace, &DEPARTURES)
}

/// Thread 1 rises to 70 and comes behind 2 and 5; 2 falls to 50 and comes behind 3.
const MOVED: [u64; 6] = [5, 1, 4, 3, 2, 6];

fn move_two(f: &mut Fixture, threads: &[Tcb]) -> TestResult {
    threads[0].set_priority(f.me, 70)?;
    threads[1].set_priority(f.me, 50)?;
    Ok(())
}

fn senders_move(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let threads = queue_senders(f, endpoint, &ARRIVALS, |number| number == 2)?;
    move_two(f, &threads)?;
    ensure_eq!(take(f, endpoint, 6)?, MOVED);
    Ok(())
}

fn receivers_move(f: &mut Fixture) -> TestResult {
    let (trace, endpoint) = (Trace::leak(), f.endpoint()?);
    let wait = move || endpoint.wait().message.label();
    let threads = queue_waiters(f, &ARRIVALS, trace, wait)?;
    move_two(f, &threads)?;
    for label in 1..=6 {
        endpoint.nb_send(Message::new(label, []));
    }
    f.settle()?;
    ensure_served(trace, &MOVED)
}

fn waiters_move(f: &mut Fixture) -> TestResult {
    let (trace, notification) = (Trace::leak(), f.notification()?);
    let threads = queue_waiters(f, &ARRIVALS, trace, move || notification.wait())?;
    move_two(f, &threads)?;
    for badge in 1..=6 {
        f.badged(notification, badge)?.signal();
    }
    f.settle()?;
    ensure_served(trace, &MOVED)
}

fn same_in_queue(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let threads = queue_senders(f, endpoint, &[50; 3], |_| false)?;
    threads[0].set_priority(f.me, 50)?;
    ensure_eq!(take(f, endpoint, 3)?, [2, 3, 1]);
    Ok(())
}

fn by_sched_params(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let ready = worker(f, 50, trace, 1)?;
    ready.go.signal();
    let arguments = sandglass::cap::SchedArguments {
        mcp: 0,
        priority: 255,
        sched_context: Some(ready.context),
        fault_handler: None,
    };
    ready.tcb.set_sched_params(f.me, arguments)?;
    trace.note(10);
    ensure_eq!(trace.events(), [1, 10]);
    Ok(())
}
