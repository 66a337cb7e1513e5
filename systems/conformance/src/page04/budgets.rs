//! 04, section 6: the budget check at every entry, the end of a budget, and timeout faults.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::kit::{ensure_near, run_log, runner, Clock};
use crate::prelude::*;
use sandglass::message::Received;
use sandglass::testing::RunLog;

pub const CHECKS: &[Check] = &[
    check(
        "04/6.1/a-system-call-short-of-budget-is-made-later",
        system_call_later,
    ),
    check(
        "04/6.1/a-call-short-of-budget-keeps-its-message",
        call_later,
    ),
    check(
        "04/6.1/a-fault-short-of-budget-is-raised-later",
        fault_later,
    ),
    check(
        "04/6.1/the-least-budget-never-suffices-for-a-system-call",
        least_budget,
    ),
    check(
        "04/6.1/an-interrupt-is-handled-though-budget-is-short",
        interrupt_handled,
    ),
    check(
        "04/6.2/without-a-handler-one-waits-for-the-next-refill",
        no_handler,
    ),
    check(
        "04/6.3/an-exhausted-budget-raises-a-timeout",
        timeout_raised,
    ),
    check("04/6.3/a-timeout-waits-for-its-answer", timeout_waits),
    check(
        "04/6.3/a-timeout-answered-early-waits-for-the-refill",
        timeout_answered_early,
    ),
    check(
        "04/6.3/a-timeout-answered-late-goes-on-at-once",
        timeout_answered_late,
    ),
    check(
        "04/6.3/a-timeout-answered-with-a-label-stops-the-thread",
        timeout_refused,
    ),
    check(
        "04/6.3/a-handler-may-grant-fresh-budget",
        timeout_fresh_budget,
    ),
    check(
        "04/6.3/a-system-call-short-of-budget-times-out",
        timeout_at_system_call,
    ),
    check("04/6.3/yield-does-not-time-out", yield_no_timeout),
    check("04/6.3/a-timeout-lends-nothing", timeout_lends_nothing),
    check(
        "04/6.3/a-server-times-out-for-its-client",
        timeout_of_server,
    ),
    check(
        "04/6.4/a-long-operation-keeps-to-its-budget",
        long_operation,
    ),
];

const PARAMS: SchedParams = SchedParams::new(1_000, 5_000);

/// A thread of priority 100 on 1000 of 5000 µs that runs until `until`, then does `body`.
fn probe(
    f: &mut Fixture,
    clock: Clock,
    until: u64,
    handler: Option<Endpoint>,
    body: impl FnOnce() + Send + 'static,
) -> Result<(Tcb, SchedContext, &'static RunLog), Failure> {
    let log = run_log();
    let thread = ThreadParams {
        timeout_handler: handler,
        ..f.active_on(100, PARAMS.badge(77))?
    };
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, until);
        body();
    })?;
    clock.start();
    tcb.resume()?;
    Ok((tcb, thread.sched_context.unwrap_or(f.my_context), log))
}

/// With 30 µs left it is made at once, with 15 in the next period, which starts 15 earlier.
fn system_call_later(f: &mut Fixture) -> TestResult {
    for (until, at) in [(960, 960), (990, 4_990)] {
        let (clock, sign) = (Clock::new(f)?, f.notification()?);
        probe(f, clock, until, None, move || sign.signal())?;
        sign.wait();
        ensure_near("the signal", clock.now(), at)?;
    }
    Ok(())
}

fn call_later(f: &mut Fixture) -> TestResult {
    let (clock, endpoint, reply) = (Clock::new(f)?, f.endpoint()?, f.reply()?);
    let answer: &AtomicU64 = shared();
    probe(f, clock, 990, None, move || {
        let words = endpoint.call(Message::new(5, [1, 2, 3, 4]));
        answer.store(words.word(0), Relaxed);
    })?;
    let Received { message, .. } = endpoint.recv(reply);
    ensure_near("the call", clock.now(), 4_990)?;
    ensure_eq!((message.label(), message.len()), (5, 4));
    ensure_eq!(message.registers(), [1, 2, 3, 4]);
    reply.send(Message::new(0, [9]));
    f.settle()?;
    ensure_eq!(answer.load(Relaxed), 9);
    Ok(())
}

fn fault_later(f: &mut Fixture) -> TestResult {
    let (clock, handler, reply) = (Clock::new(f)?, f.endpoint()?, f.reply()?);
    let thread = ThreadParams {
        fault_handler: Some(handler),
        ..f.active_on(100, PARAMS)?
    };
    let log = run_log();
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, 990);
        conformance_kit::arch::stop()
    })?;
    clock.start();
    tcb.resume()?;
    let Received { message, .. } = handler.recv(reply);
    ensure_near("the fault", clock.now(), 4_990)?;
    ensure_eq!(message.label(), fault::USER_EXCEPTION);
    Ok(())
}

fn least_budget(f: &mut Fixture) -> TestResult {
    let (trace, nothing) = (Trace::leak(), f.notification()?);
    let thread = f.active_on(100, SchedParams::new(20, 1_000))?;
    f.spawn(thread, move || {
        nothing.poll();
        trace.note(1);
    })?;
    f.sleep(10_000)?;
    ensure_eq!(trace.events(), []);
    // It did run.
    let consumed = thread.sched_context.unwrap_or(f.my_context).consumed_us()?;
    ensure!(consumed > 0, "the thread did not run at all");
    Ok(())
}

/// The alarm rings when 10 µs of the running thread's budget are left: that thread is charged for
/// all of it, and the alarm's thread runs.
fn interrupt_handled(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, PARAMS)?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(990)?;
    ensure_near("the alarm", clock.now(), 990)?;
    clock.sleep_until(3_000)?;
    clock.ensure_runs(runner.log, &[(0, 990)])
}

fn no_handler(f: &mut Fixture) -> TestResult {
    let (clock, log) = (Clock::new(f)?, run_log());
    let unexpected = f.unexpected_faults;
    let thread = ThreadParams {
        // Not a timeout handler: it hears nothing of timeouts.
        fault_handler: Some(unexpected),
        ..f.active_on(100, PARAMS)?
    };
    let tcb = f.prepare(thread, move || clock.log_forever(log))?;
    clock.start();
    tcb.resume()?;
    clock.sleep_until(7_000)?;
    clock.ensure_runs(log, &[(0, 1_000), (5_000, 6_000)])
}

/// Waits for a timeout and checks that it comes at `at` µs with badge 77 and this consumed time.
fn expect_timeout(
    clock: Clock,
    handler: Endpoint,
    reply: Reply,
    at: u64,
    consumed: u64,
) -> TestResult {
    let Received { badge, message } = handler.recv(reply);
    ensure_near("the timeout", clock.now(), at)?;
    ensure_eq!(
        (badge, message.label(), message.len()),
        (4, fault::TIMEOUT, 2)
    );
    ensure_eq!(message.word(0), 77);
    ensure_near("consumed", message.word(1), consumed)
}

/// A probe that runs for good, with a timeout handler of badge 4.
fn timing_out(
    f: &mut Fixture,
) -> Result<(Clock, Tcb, SchedContext, &'static RunLog, Endpoint, Reply), Failure> {
    let (clock, handler, reply) = (Clock::new(f)?, f.endpoint()?, f.reply()?);
    let badged = f.badged(handler, 4)?;
    let (tcb, context, log) = probe(f, clock, u64::MAX, Some(badged), || ())?;
    Ok((clock, tcb, context, log, handler, reply))
}

fn timeout_raised(f: &mut Fixture) -> TestResult {
    let (clock, _, context, _, handler, reply) = timing_out(f)?;
    expect_timeout(clock, handler, reply, 1_000, 1_000)?;
    // The message has reported what was consumed.
    ensure_eq!(context.consumed_us()?, 0);
    Ok(())
}

/// Longer than until the next refill.
fn timeout_waits(f: &mut Fixture) -> TestResult {
    let (clock, _, _, log, handler, reply) = timing_out(f)?;
    // Nobody receives yet.
    clock.sleep_until(7_000)?;
    clock.ensure_runs(log, &[(0, 1_000)])?;
    expect_timeout(clock, handler, reply, 7_000, 1_000)?;
    clock.sleep_until(9_000)?;
    clock.ensure_runs(log, &[(0, 1_000)])?;
    ensure_eq!(clock.runs(log).len(), 1);
    Ok(())
}

fn timeout_answered_early(f: &mut Fixture) -> TestResult {
    let (clock, _, _, log, handler, reply) = timing_out(f)?;
    expect_timeout(clock, handler, reply, 1_000, 1_000)?;
    clock.sleep_until(2_000)?;
    reply.send(Message::EMPTY);
    // The next is that of the next budget.
    expect_timeout(clock, handler, reply, 6_000, 1_000)?;
    clock.ensure_runs(log, &[(0, 1_000), (5_000, 6_000)])
}

fn timeout_answered_late(f: &mut Fixture) -> TestResult {
    let (clock, _, _, log, handler, reply) = timing_out(f)?;
    expect_timeout(clock, handler, reply, 1_000, 1_000)?;
    clock.sleep_until(6_500)?;
    reply.send(Message::EMPTY);
    expect_timeout(clock, handler, reply, 7_500, 1_000)?;
    clock.ensure_runs(log, &[(0, 1_000), (6_500, 7_500)])
}

fn timeout_refused(f: &mut Fixture) -> TestResult {
    let (clock, tcb, _, log, handler, reply) = timing_out(f)?;
    expect_timeout(clock, handler, reply, 1_000, 1_000)?;
    reply.send(Message::new(1, []));
    clock.sleep_until(7_000)?;
    ensure_eq!(clock.runs(log).len(), 1);
    tcb.resume()?;
    clock.sleep_until(7_500)?;
    clock.ensure_runs(log, &[(0, 1_000), (7_000, 7_500)])
}

fn timeout_fresh_budget(f: &mut Fixture) -> TestResult {
    let (clock, _, context, log, handler, reply) = timing_out(f)?;
    expect_timeout(clock, handler, reply, 1_000, 1_000)?;
    clock.sleep_until(2_000)?;
    f.control
        .configure(context, SchedParams::new(700, 5_000).badge(77))?;
    reply.send(Message::EMPTY);
    expect_timeout(clock, handler, reply, 2_700, 700)?;
    clock.ensure_runs(log, &[(0, 1_000), (2_000, 2_700)])
}

/// The call is not made before the answer, and made after it.
fn timeout_at_system_call(f: &mut Fixture) -> TestResult {
    let (clock, handler, reply) = (Clock::new(f)?, f.endpoint()?, f.reply()?);
    let (badged, sign) = (f.badged(handler, 4)?, f.notification()?);
    probe(f, clock, 990, Some(badged), move || sign.signal())?;
    expect_timeout(clock, handler, reply, 990, 990)?;
    ensure_eq!(sign.poll(), 0);
    reply.send(Message::EMPTY);
    sign.wait();
    ensure_near("the signal", clock.now(), 4_990)
}

fn yield_no_timeout(f: &mut Fixture) -> TestResult {
    let (clock, handler, log) = (Clock::new(f)?, f.endpoint()?, run_log());
    let badged = f.badged(handler, 4)?;
    probe(f, clock, 300, Some(badged), move || {
        sys::yield_now();
        clock.log_forever(log);
    })?;
    clock.sleep_until(5_500)?;
    ensure_eq!(handler.nb_wait().badge, 0);
    clock.ensure_runs(log, &[(5_000, 5_500)])
}

/// A passive handler gets the message, but not the context: it runs when it gets another.
fn timeout_lends_nothing(f: &mut Fixture) -> TestResult {
    let (clock, endpoint, reply) = (Clock::new(f)?, f.endpoint()?, f.reply()?);
    let trace = Trace::leak();
    let params = f.active(200)?;
    let handler = f.spawn(params, move || {
        trace.note(endpoint.recv(reply).message.label())
    })?;
    f.settle()?;
    let spare = params.sched_context.unwrap_or(f.my_context);
    spare.unbind_tcb(handler)?;
    probe(f, clock, u64::MAX, Some(endpoint), || ())?;
    clock.sleep_until(2_000)?;
    ensure_eq!(trace.events(), []);
    spare.bind(handler)?;
    f.settle()?;
    ensure_eq!(trace.events(), [fault::TIMEOUT]);
    Ok(())
}

/// The client's handler hears nothing; the server's is told the client's badge.
fn timeout_of_server(f: &mut Fixture) -> TestResult {
    let (clock, service, offered) = (Clock::new(f)?, f.endpoint()?, f.reply()?);
    let (handler, reply) = (f.endpoint()?, f.reply()?);
    let (of_client, of_server) = (f.badged(handler, 5)?, f.badged(handler, 4)?);
    let params = ThreadParams {
        timeout_handler: Some(of_server),
        ..f.active(120)?
    };
    let log = run_log();
    let server = f.spawn(params, move || {
        service.recv(offered);
        clock.log_forever(log);
    })?;
    f.settle()?;
    params
        .sched_context
        .unwrap_or(f.my_context)
        .unbind_tcb(server)?;
    probe(f, clock, 300, Some(of_client), move || {
        service.call(Message::EMPTY);
    })?;
    expect_timeout(clock, handler, reply, 1_000, 1_000)?;
    clock.ensure_runs(log, &[(300, 1_000)])
}

/// Zeroing 4 MiB of memory on 300 of 1000 µs: it goes on in every period, with no more than the
/// budget, and ends.
fn long_operation(f: &mut Fixture) -> TestResult {
    const BITS: u32 = 22;
    let clock = Clock::new(f)?;
    let memory = f.untyped(BITS)?;
    let slot = f.empty_slot()?;
    // Dirty memory without children.
    memory.retype(ObjectType::Untyped(BITS), slot, 1)?;
    slot.delete()?;
    let (done, end): (_, &AtomicU64) = (f.notification()?, shared());
    let thread = f.active_on(100, SchedParams::new(300, 1_000))?;
    let worker = f.prepare(thread, move || {
        if memory.retype(ObjectType::Endpoint, slot, 1).is_ok() {
            end.store(clock.now(), Relaxed);
        }
        done.signal();
    })?;
    let below = runner(f, clock, 50, FULL)?;
    clock.start();
    worker.resume()?;
    below.tcb.resume()?;
    done.wait();
    let end = end.load(Relaxed);
    ensure!(end > 3_000, "{end} µs for an operation of many budgets");
    let used = thread.sched_context.unwrap_or(f.my_context).consumed_us()?;
    let share = end.div_ceil(1_000) * 300;
    ensure!(
        used <= share + 10,
        "{used} µs used until {end}, more than {share}"
    );
    let others: u64 = clock.runs(below.log).iter().map(|run| run.1 - run.0).sum();
    ensure!(
        others + used + 60 >= end,
        "others had only {others} µs of {end} while {used} were used"
    );
    Ok(())
}
