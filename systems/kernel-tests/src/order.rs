//! Priorities, and the order among equals (ABI 04, section 8).

use sandglass::cap::{Endpoint, Notification};
use sandglass::testing::{Suite, TestResult, Trace};
use sandglass::{boot, ensure_eq, Message};

use crate::fixture::Fixture;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "order",
        &[
            ("the_highest_priority_runs_first", by_priority),
            ("woken_threads_of_one_priority_run_in_order", fifo),
            ("a_woken_higher_priority_preempts", preempts),
            ("a_woken_equal_priority_does_not_preempt", equal),
            ("a_raised_priority_takes_effect_at_once", raised),
            ("senders_are_served_by_priority", senders),
            ("receivers_are_served_by_priority", receivers),
            ("a_changed_priority_moves_a_waiting_thread", changed),
            ("waiters_are_woken_by_priority", waiters),
        ],
    );
}

fn by_priority(fixture: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    for priority in [50, 200, 1, 254, 100] {
        fixture.spawn_full(priority, move || trace.note(u64::from(priority)))?;
    }
    fixture.settle();
    ensure_eq!(trace.events(), [254, 200, 100, 50, 1]);
    Ok(())
}

/// Threads that wait, each for its own notification, on one priority.
fn sleepers(
    fixture: &mut Fixture,
    trace: &'static Trace,
    count: u64,
) -> Result<alloc::vec::Vec<Notification>, sandglass::SetupError> {
    let mut notifications = alloc::vec::Vec::new();
    for number in 0..count {
        let notification = fixture.process.resources.notification()?;
        fixture.spawn_full(100, move || {
            notification.wait();
            trace.note(number);
        })?;
        notifications.push(notification);
    }
    fixture.settle();
    Ok(notifications)
}

/// Woken while another thread of their priority runs, threads run in the order of their waking.
fn fifo(fixture: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let wake = sleepers(fixture, trace, 4)?;
    fixture.spawn_full(100, move || {
        for number in [2, 0, 3, 1] {
            wake[number].signal();
        }
        trace.note(9);
    })?;
    fixture.settle();
    ensure_eq!(trace.events(), [9, 2, 0, 3, 1]);
    Ok(())
}

fn preempts(fixture: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let wake = sleepers(fixture, trace, 1)?;
    // Two of one priority: the preempted one goes on before the other. Made ready by a thread of
    // higher priority, the last is first (ABI 04, section 8.5: "enqueue at head").
    for number in [10, 20] {
        let wake = wake[0];
        fixture.spawn_full(99, move || {
            trace.note(number);
            wake.signal();
            trace.note(number + 1);
        })?;
    }
    fixture.settle();
    let events = trace.events();
    ensure_eq!(events[..3], [20, 0, 21]);
    ensure_eq!(events[3..], [10, 11]);
    Ok(())
}

fn equal(fixture: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let wake = sleepers(fixture, trace, 1)?;
    fixture.spawn_full(100, move || {
        wake[0].signal();
        trace.note(7);
    })?;
    fixture.settle();
    ensure_eq!(trace.events(), [7, 0]);
    Ok(())
}

fn raised(fixture: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let low = fixture.spawn_full(10, move || trace.note(1))?;
    fixture.spawn_full(20, move || trace.note(2))?;
    low.set_priority(boot::TCB, 30)?;
    fixture.settle();
    ensure_eq!(trace.events(), [1, 2]);
    Ok(())
}

/// Threads of the given priorities that send their number, in this order.
fn spawn_senders(
    fixture: &mut Fixture,
    endpoint: Endpoint,
    priorities: &[u8],
) -> Result<alloc::vec::Vec<sandglass::cap::Tcb>, sandglass::SetupError> {
    let mut threads = alloc::vec::Vec::new();
    for (number, &priority) in (0..).zip(priorities) {
        let sender =
            fixture.spawn_full(priority, move || endpoint.send(Message::new(number, [])))?;
        threads.push(sender);
        fixture.settle();
    }
    Ok(threads)
}

/// Takes `count` messages, and returns their labels.
fn take(endpoint: Endpoint, count: usize) -> alloc::vec::Vec<u64> {
    (0..count)
        .map(|_| endpoint.wait().message.label())
        .collect()
}

fn senders(fixture: &mut Fixture) -> TestResult {
    let endpoint = fixture.process.resources.endpoint()?;
    spawn_senders(fixture, endpoint, &[10, 30, 20, 30, 10])?;
    ensure_eq!(take(endpoint, 5), [1, 3, 2, 0, 4]);
    Ok(())
}

fn changed(fixture: &mut Fixture) -> TestResult {
    let endpoint = fixture.process.resources.endpoint()?;
    let threads = spawn_senders(fixture, endpoint, &[10, 20, 30, 40])?;
    threads[0].set_priority(boot::TCB, 35)?;
    threads[3].set_priority(boot::TCB, 30)?;
    // Behind the one that waited with that priority.
    ensure_eq!(take(endpoint, 4), [0, 2, 3, 1]);
    Ok(())
}

fn receivers(fixture: &mut Fixture) -> TestResult {
    let endpoint = fixture.process.resources.endpoint()?;
    let trace = Trace::leak();
    for (number, priority) in (0..).zip([10, 30, 20, 30]) {
        fixture.spawn_full(priority, move || {
            let label = endpoint.wait().message.label();
            trace.note(number << 8 | label);
        })?;
        fixture.settle();
    }
    for label in 0..4 {
        endpoint.send(Message::new(label, []));
    }
    fixture.settle();
    // The messages' labels are the order in which they were served. All were made ready before
    // any ran, so of one priority the last ran first.
    ensure_eq!(trace.events(), [3 << 8 | 1, 1 << 8, 2 << 8 | 2, 3]);
    Ok(())
}

fn waiters(fixture: &mut Fixture) -> TestResult {
    let notification = fixture.process.resources.notification()?;
    let trace = Trace::leak();
    for (number, priority) in (0..).zip([10, 30, 20, 30]) {
        fixture.spawn_full(priority, move || {
            notification.wait();
            trace.note(number);
        })?;
        fixture.settle();
    }
    for _ in 0..4 {
        notification.signal();
        fixture.settle();
    }
    ensure_eq!(trace.events(), [1, 3, 2, 0]);
    Ok(())
}
