//! 04, sections 10, 11 and 14: stopping and starting threads, the one domain, and interrupts.

use super::kit::{active, ensure_near, passive, runner, worker, Clock};
use conformance_kit::arch::Alarm;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "04/10/a-suspended-thread-goes-on-where-it-was",
        suspend_running,
    ),
    check(
        "04/10/a-suspended-thread-that-was-ready-does-not-run",
        suspend_ready,
    ),
    check(
        "04/10/a-suspended-thread-misses-its-release",
        suspend_released,
    ),
    check("04/10/a-suspended-sender-leaves-its-queue", suspend_sender),
    check(
        "04/10/a-suspended-receiver-leaves-its-queue",
        suspend_receiver,
    ),
    check("04/10/a-suspended-waiter-leaves-its-queue", suspend_waiter),
    check("04/10/suspending-oneself-stops-at-once", suspend_self),
    check("04/10/suspending-twice-is-no-error", suspend_twice),
    check("04/10/a-resumed-thread-calls-again", resume_restarts),
    check(
        "04/10/resuming-a-blocked-thread-restarts-its-wait",
        resume_blocked,
    ),
    check("04/10/resuming-a-ready-thread-does-nothing", resume_ready),
    check("04/10/a-resumed-thread-is-a-candidate", resume_candidate),
    check(
        "04/10/a-resumed-thread-without-budget-waits",
        resume_exhausted,
    ),
    check(
        "04/10/a-resumed-thread-without-a-context-waits-for-one",
        resume_passive,
    ),
    check(
        "04/10/suspending-a-faulter-forgets-its-fault",
        suspend_faulter,
    ),
    check("04/11/the-one-domain-is-zero", set_domain),
    check("04/11/set-puts-a-thread-at-the-head", set_to_the_head),
    check(
        "04/11/set-leaves-a-thread-to-wait-for-its-refill",
        set_released,
    ),
    check("04/11/configure-checks-its-arguments", configure_schedule),
    check("04/11/start-checks-its-argument", set_start),
    check(
        "04/11/the-schedule-does-not-disturb-the-one-domain",
        schedule_harmless,
    ),
    check(
        "04/14/an-interrupt-wakes-a-higher-driver-at-once",
        interrupt_wakes,
    ),
];

fn suspend_running(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, FULL)?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(500)?;
    runner.tcb.suspend()?;
    clock.sleep_until(1_000)?;
    runner.tcb.resume()?;
    clock.sleep_until(1_500)?;
    clock.ensure_runs(runner.log, &[(0, 500), (1_000, 1_500)])
}

fn suspend_ready(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let ready = worker(f, 50, trace, 1)?;
    ready.go.signal();
    ready.tcb.suspend()?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    // It had been woken: it does not wait again.
    ready.tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

/// Its budget comes back all the same.
fn suspend_released(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, SchedParams::new(200, 1_000))?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(500)?;
    runner.tcb.suspend()?;
    clock.sleep_until(1_700)?;
    runner.tcb.resume()?;
    clock.sleep_until(3_000)?;
    clock.ensure_runs(runner.log, &[(0, 200), (1_700, 1_900), (2_700, 2_900)])
}

fn suspend_sender(f: &mut Fixture) -> TestResult {
    let (trace, endpoint) = (Trace::leak(), f.endpoint()?);
    let (sender, _) = active(f, 100, move || {
        endpoint.send(Message::new(7, []));
        trace.note(1);
    })?;
    f.settle()?;
    sender.suspend()?;
    let received = endpoint.nb_wait();
    ensure_eq!((received.badge, received.message.label()), (0, 0));
    sender.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    ensure_eq!(endpoint.nb_wait().message.label(), 7);
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn suspend_receiver(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let (receiver, _) = active(f, 100, move || {
        trace.note(endpoint.recv(reply).message.label());
    })?;
    f.settle()?;
    receiver.suspend()?;
    endpoint.nb_send(Message::new(7, []));
    // The reply object is free again: another may use it without disturbing anybody.
    active(f, 100, move || {
        trace.note(endpoint.recv(reply).message.label());
    })?;
    f.settle()?;
    endpoint.nb_send(Message::new(8, []));
    f.settle()?;
    ensure_eq!(trace.events(), [8]);
    receiver.resume()?;
    f.settle()?;
    endpoint.nb_send(Message::new(9, []));
    f.settle()?;
    ensure_eq!(trace.events(), [8, 9]);
    Ok(())
}

fn suspend_waiter(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let waiter = worker(f, 100, trace, 1)?;
    waiter.tcb.suspend()?;
    waiter.go.signal();
    f.settle()?;
    ensure_eq!(trace.events(), []);
    ensure!(
        runs_on(waiter.tcb, 100, waiter.context),
        "it lost its context"
    );
    // The signal is pending, and found by the repeated wait.
    waiter.tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

/// And again when it is resumed: the call is made again.
fn suspend_self(f: &mut Fixture) -> TestResult {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    let (trace, own): (_, &AtomicU64) = (Trace::leak(), shared());
    let params = f.active(100)?;
    let tcb = f.prepare(params, move || {
        trace.note(1);
        let _ = Tcb::at(own.load(Relaxed)).suspend();
        trace.note(2);
    })?;
    own.store(tcb.address(), Relaxed);
    for _ in 0..3 {
        tcb.resume()?;
        f.settle()?;
        ensure_eq!(trace.events(), [1]);
    }
    Ok(())
}

fn suspend_twice(f: &mut Fixture) -> TestResult {
    let worker = worker(f, 100, Trace::leak(), 1)?;
    let suspend = Invocation::new(worker.tcb, label::TCB_SUSPEND, &[], &[]);
    suspend.expect_ok(&[])?;
    suspend.expect_ok(&[])?;
    Invocation::new(f.tcb()?, label::TCB_SUSPEND, &[], &[]).expect_ok(&[])
}

fn resume_restarts(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let (caller, _) = active(f, 100, move || {
        trace.note(endpoint.call(Message::new(7, [])).label());
    })?;
    ensure_eq!(endpoint.recv(reply).message.label(), 7);
    caller.suspend()?;
    reply.send(Message::new(1, []));
    f.settle()?;
    ensure_eq!(trace.events(), []);
    caller.resume()?;
    ensure_eq!(endpoint.recv(reply).message.label(), 7);
    reply.send(Message::new(2, []));
    f.settle()?;
    ensure_eq!(trace.events(), [2]);
    Ok(())
}

/// It goes behind its equals that way.
fn resume_blocked(f: &mut Fixture) -> TestResult {
    let (trace, notification) = (Trace::leak(), f.notification()?);
    let mut threads = Vec::new();
    for number in 1..=2 {
        let wait = move || {
            notification.wait();
            trace.note(number);
        };
        threads.push(active(f, 100, wait)?.0);
        f.settle()?;
    }
    threads[0].resume()?;
    f.settle()?;
    notification.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [2]);
    Ok(())
}

/// It keeps its place, behind one that was made ready later.
fn resume_ready(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (one, two) = (worker(f, 50, trace, 1)?, worker(f, 50, trace, 2)?);
    one.go.signal();
    two.go.signal();
    one.tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [2, 1]);
    Ok(())
}

/// Above the caller at once, equals behind, and among lower ones the last comes first.
fn resume_candidate(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let mut threads = Vec::new();
    for (number, priority) in (1..).zip([50, 50, 254, 254, 255]) {
        let params = f.active(priority)?;
        threads.push(f.prepare(params, move || trace.note(number))?);
    }
    for thread in threads {
        thread.resume()?;
    }
    trace.note(10);
    f.settle()?;
    ensure_eq!(trace.events(), [5, 10, 3, 4, 2, 1]);
    Ok(())
}

fn resume_exhausted(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, SchedParams::new(200, 2_000))?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(500)?;
    runner.tcb.suspend()?;
    runner.tcb.resume()?;
    clock.sleep_until(2_300)?;
    clock.ensure_runs(runner.log, &[(0, 200), (2_000, 2_200)])
}

fn resume_passive(f: &mut Fixture) -> TestResult {
    let (trace, gate) = (Trace::leak(), f.notification()?);
    let (tcb, spare) = passive(f, 100, move || {
        gate.wait();
        trace.note(1);
    })?;
    gate.signal();
    tcb.suspend()?;
    tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    spare.bind(tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

/// Queued at its handler's endpoint; resumed, it faults anew.
fn suspend_faulter(f: &mut Fixture) -> TestResult {
    let (handler, reply) = (f.endpoint()?, f.reply()?);
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..f.active(100)?
    };
    let tcb = f.spawn(params, conformance_kit::arch::stop)?;
    f.settle()?;
    tcb.suspend()?;
    ensure_eq!(handler.nb_recv(reply).message.label(), 0);
    tcb.resume()?;
    f.settle()?;
    ensure_eq!(
        handler.nb_recv(reply).message.label(),
        fault::USER_EXCEPTION
    );
    Ok(())
}

fn set_domain(f: &mut Fixture) -> TestResult {
    let target = f.tcb()?;
    let set = Invocation::new(boot::DOMAIN, label::DOMAIN_SET, &[0], &[target.cptr()]);
    set.expect_ok(&[])?;
    set.with_cap(0, f.me).expect_ok(&[])?;
    set.with_word(0, D).expect_error(InvalidArgument, &[0])?;
    set.with_length(0).expect_error(TruncatedMessage, &[])?;
    set.with_cap_count(0).expect_error(TruncatedMessage, &[])?;
    set.with_cap(0, f.endpoint()?)
        .expect_error(InvalidArgument, &[1])?;
    // The domain is looked at before the thread.
    set.with_word(0, D)
        .with_cap_count(0)
        .expect_error(InvalidArgument, &[0])
}

/// The release queue is common to all domains: Set makes no budget.
fn set_released(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, SchedParams::new(400, 2_000))?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(1_000)?;
    Invocation::new(boot::DOMAIN, label::DOMAIN_SET, &[0], &[runner.tcb.cptr()]).expect_ok(&[])?;
    clock.sleep_until(2_800)?;
    clock.ensure_runs(runner.log, &[(0, 400), (2_000, 2_400)])
}

fn set_to_the_head(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (one, two) = (worker(f, 50, trace, 1)?, worker(f, 50, trace, 2)?);
    one.go.signal();
    two.go.signal();
    boot::DOMAIN.set(one.tcb, 0)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    Ok(())
}

/// How many domains there are, and entries of their schedule.
const D: u64 = PROFILE.domains;
const L: u64 = PROFILE.schedule_entries as u64;

/// The longest duration, which the boot schedule has.
const LONGEST: u64 = (1 << 56) - 1;

fn configure_schedule(f: &mut Fixture) -> TestResult {
    let _ = f;
    let configure = Invocation::new(
        boot::DOMAIN,
        label::DOMAIN_SCHEDULE_CONFIGURE,
        &[0, 0, 1_000],
        &[],
    );
    configure.expect_ok(&[])?;
    configure.with_word(2, LONGEST).expect_ok(&[])?;
    let cases: [(usize, u64, ErrorNumber, &[u64]); 5] = [
        // The last is the end.
        (0, L - 1, RangeError, &[0, L - 2]),
        (1, D, RangeError, &[0, D - 1]),
        (2, LONGEST + 1, InvalidArgument, &[2]),
        // The current start is no end.
        (2, 0, InvalidArgument, &[2]),
        (0, u64::MAX, RangeError, &[0, L - 2]),
    ];
    for (word, value, error, details) in cases {
        configure
            .with_word(word, value)
            .expect_error(error, details)?;
    }
    configure
        .with_length(2)
        .expect_error(TruncatedMessage, &[])?;
    configure
        .with_label(label::DOMAIN_SET - 1)
        .expect_error(IllegalOperation, &[])
}

fn set_start(f: &mut Fixture) -> TestResult {
    let _ = f;
    let start = Invocation::new(boot::DOMAIN, label::DOMAIN_SCHEDULE_SET_START, &[0], &[]);
    start.expect_ok(&[])?;
    start.with_word(0, 1).expect_error(InvalidArgument, &[0])?;
    start
        .with_word(0, L)
        .expect_error(RangeError, &[0, L - 1])?;
    start.with_length(0).expect_error(TruncatedMessage, &[])
}

/// With one domain its time does not pass, however short its entry.
fn schedule_harmless(f: &mut Fixture) -> TestResult {
    if D > 1 {
        return Err(Failure::skip("there are several domains"));
    }
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, FULL)?;
    boot::DOMAIN.configure_schedule(0, 0, 1)?;
    let started = boot::DOMAIN.set_schedule_start(0);
    clock.start();
    runner.tcb.resume()?;
    let slept = clock.sleep_until(3_000);
    boot::DOMAIN.configure_schedule(0, 0, LONGEST)?;
    boot::DOMAIN.set_schedule_start(0)?;
    started?;
    slept?;
    clock.ensure_runs(runner.log, &[(0, 3_000)])
}

/// That of a timer, while a thread of lower priority runs: the check, which waits for it.
fn interrupt_wakes(f: &mut Fixture) -> TestResult {
    const AFTER_US: u64 = 838;
    let clock = Clock::new(f)?;
    let low = runner(f, clock, 100, FULL)?;
    let (signal, alarm) = (f.notification()?, Alarm::new(f)?);
    alarm.handler.set_notification(signal)?;
    alarm.handler.ack()?;
    low.tcb.resume()?;
    signal.poll();
    alarm.set(AFTER_US)?;
    clock.start();
    signal.wait();
    ensure_near("the interrupt", clock.now(), AFTER_US)?;
    alarm.end();
    clock.ensure_runs(low.log, &[(0, AFTER_US)])
}
