//! 01, section 5.5: notifications.

use conformance_kit::arch::order::{R12, R13, RDI};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/5.5/badges-of-signals-are-or-ed", badges_or_ed),
    check("01/5.5/a-wait-consumes-all-badges", wait_consumes),
    check("01/5.5/a-wait-writes-only-the-badge", wait_writes_badge),
    check(
        "01/5.5/a-signal-that-wakes-writes-only-the-badge",
        waking_writes_badge,
    ),
    check(
        "01/5.5/a-non-blocking-wait-finds-badge-0",
        poll_finds_nothing,
    ),
    check("01/5.5/a-signal-wakes-one-waiter", wakes_one),
    check(
        "01/5.5/waiters-queue-by-priority-then-by-arrival",
        waiter_order,
    ),
    check("01/5.5/a-signal-of-badge-0-wakes", unbadged_signal),
    check(
        "01/5.5/a-bound-thread-that-is-not-receiving-finds-it-pending",
        bound_not_receiving,
    ),
    check(
        "01/5.5/waiting-for-a-notification-keeps-a-bound-one-pending",
        bound_waits_elsewhere,
    ),
];

const WAITS: [Syscall; 7] = [
    Syscall::Wait,
    Syscall::NBWait,
    Syscall::Recv,
    Syscall::NBRecv,
    Syscall::ReplyRecv,
    Syscall::NBSendRecv,
    Syscall::NBSendWait,
];

fn badges_or_ed(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    for badge in [0x1, 0x8000_0000_0000_0000, 0x1, 0x30] {
        f.badged(notification, badge)?.signal();
    }
    ensure_eq!(notification.poll(), 0x8000_0000_0000_0031);
    Ok(())
}

fn wait_consumes(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 6)?;
    for wait in [Notification::wait, Notification::poll] {
        badged.signal();
        badged.signal();
        ensure_eq!(wait(notification), 6);
        ensure_eq!(notification.poll(), 0);
    }
    Ok(())
}

/// Registers of a receive from a notification without a first phase of effect.
fn waiting(call: Syscall, notification: Notification) -> UserContext {
    entry(call, &[(RDI, notification.address()), (R12, 0), (R13, 0)])
}

fn wait_writes_badge(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 6)?;
    for call in WAITS {
        badged.signal();
        let before = waiting(call, notification);
        let (thread, buffer) = (f.caller(&before)?, f.buffer()?);
        buffer.fill(0x99);
        thread.use_buffer(buffer)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[(RDI, 6)])?;
        ensure!(buffer.changed_words(0x99).is_empty());
    }
    Ok(())
}

fn waking_writes_badge(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 6)?;
    for call in WAITS {
        if matches!(call, Syscall::NBWait | Syscall::NBRecv) {
            continue;
        }
        let before = waiting(call, notification);
        let thread = f.caller(&before)?;
        thread.start_and_settle(f)?;
        badged.signal();
        thread.expect_return(&thread.stopped(f)?, &before, &[(RDI, 6)])?;
        ensure_eq!(notification.poll(), 0);
    }
    Ok(())
}

fn poll_finds_nothing(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    for waiter in [false, true] {
        if waiter {
            f.helper(100, move || {
                notification.wait();
            })?;
            f.settle()?;
        }
        for call in [Syscall::NBWait, Syscall::NBRecv] {
            let before = waiting(call, notification);
            let thread = f.caller(&before)?;
            let stopped = thread.run(f)?;
            thread.expect_return(&stopped, &before, &[(RDI, 0)])?;
        }
    }
    Ok(())
}

fn wakes_one(f: &mut Fixture) -> TestResult {
    let (notification, trace) = (f.notification()?, Trace::leak());
    for index in 0..3 {
        f.helper(100, move || {
            notification.wait();
            trace.note(index);
        })?;
        f.settle()?;
    }
    for count in 1..=3 {
        notification.signal();
        f.settle()?;
        ensure_eq!(trace.len(), count);
    }
    Ok(())
}

fn waiter_order(f: &mut Fixture) -> TestResult {
    let (notification, trace) = (f.notification()?, Trace::leak());
    for (index, priority) in [50, 80, 50, 80, 120, 10].into_iter().enumerate() {
        f.helper(priority, move || {
            notification.wait();
            trace.note(index as u64);
        })?;
        f.settle()?;
    }
    for _ in 0..6 {
        notification.signal();
        f.settle()?;
    }
    ensure_eq!(trace.events(), [4, 1, 3, 0, 2, 5]);
    Ok(())
}

fn unbadged_signal(f: &mut Fixture) -> TestResult {
    let (notification, trace) = (f.notification()?, Trace::leak());
    notification.signal();
    // It is active, with an empty badge: a wait does not block.
    f.helper(100, move || trace.note(notification.wait() + 1))?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn bound_not_receiving(f: &mut Fixture) -> TestResult {
    // Inactive, and running.
    let (notification, tcb) = (f.notification()?, f.tcb()?);
    tcb.bind_notification(notification)?;
    f.badged(notification, 3)?.signal();
    tcb.unbind_notification()?;
    ensure_eq!(notification.poll(), 3);

    f.me.bind_notification(notification)?;
    f.badged(notification, 5)?.signal();
    ensure_eq!(notification.poll(), 5);
    Ok(f.me.unbind_notification()?)
}

fn bound_waits_elsewhere(f: &mut Fixture) -> TestResult {
    let (bound, other, trace) = (f.notification()?, f.notification()?, Trace::leak());
    let tcb = f.helper(100, move || {
        other.wait();
        trace.note(1);
    })?;
    tcb.bind_notification(bound)?;
    f.settle()?;
    f.badged(bound, 3)?.signal();
    f.settle()?;
    ensure!(trace.is_empty(), "a wait on another notification was ended");
    tcb.unbind_notification()?;
    ensure_eq!(bound.poll(), 3);
    Ok(())
}
