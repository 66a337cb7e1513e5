//! 04, section 2.5: budget equal to period.

use super::kit::{run_log, runner, Clock};
use crate::prelude::*;

const SLICE_US: u64 = 500;
const SLICE: SchedParams = SchedParams::new(SLICE_US, SLICE_US);

pub const CHECKS: &[Check] = &[
    check("04/2.5/equals-take-turns", take_turns),
    check("04/2.5/alone-one-runs-without-a-gap", alone),
    check("04/2.5/a-preempted-slice-goes-on", preempted),
    check("04/2.5/a-slice-is-not-renewed-by-blocking", blocked),
    check("04/2.5/the-sporadic-flag-changes-nothing", sporadic),
    check("04/2.5/a-slice-never-times-out", no_timeout),
    check(
        "04/9.1/a-yielding-slice-goes-to-the-tail-and-is-renewed",
        yielding,
    ),
];

fn take_turns(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let [a, b, c] = [
        runner(f, clock, 100, SLICE)?,
        runner(f, clock, 100, SLICE)?,
        runner(f, clock, 100, SLICE)?,
    ];
    clock.start();
    // Resumed from above, each is put at the head.
    for thread in [c, b, a] {
        thread.tcb.resume()?;
    }
    clock.sleep_until(4_000)?;
    for (i, thread) in (0..).zip([a, b, c]) {
        let turn = |n: u64| {
            let start = SLICE_US * (3 * n + i);
            (start, start + SLICE_US)
        };
        clock.ensure_runs(thread.log, &[turn(0), turn(1)])?;
    }
    Ok(())
}

fn alone(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, SLICE)?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(4_000)?;
    clock.ensure_runs(runner.log, &[(0, 4_000)])
}

fn preempted(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let (a, b) = (runner(f, clock, 100, SLICE)?, runner(f, clock, 100, SLICE)?);
    clock.start();
    b.tcb.resume()?;
    a.tcb.resume()?;
    clock.hold(200, 1_000)?;
    clock.sleep_until(2_500)?;
    clock.ensure_runs(a.log, &[(0, 200), (1_000, 1_300), (1_800, 2_300)])?;
    clock.ensure_runs(b.log, &[(1_300, 1_800)])
}

/// What was used before waiting counts.
fn blocked(f: &mut Fixture) -> TestResult {
    let (clock, gate, log) = (Clock::new(f)?, f.notification()?, run_log());
    let thread = f.active_on(100, SLICE)?;
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, 200);
        gate.wait();
        clock.log_forever(log);
    })?;
    let other = runner(f, clock, 100, SLICE)?;
    clock.start();
    other.tcb.resume()?;
    tcb.resume()?;
    // The other runs from 200; its second slice, from 700, is interrupted only shortly. The one
    // woken by a thread of higher priority is put before it.
    clock.sleep_until(1_000)?;
    gate.signal();
    clock.sleep_until(2_200)?;
    clock.ensure_runs(log, &[(0, 200), (1_000, 1_300), (1_500, 2_000)])?;
    clock.ensure_runs(other.log, &[(200, 1_000), (1_300, 1_500), (2_000, 2_200)])
}

fn sporadic(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, SLICE.sporadic())?;
    clock.start();
    runner.tcb.resume()?;
    clock.hold(700, 1_000)?;
    clock.sleep_until(3_000)?;
    clock.ensure_runs(runner.log, &[(0, 700), (1_000, 3_000)])
}

fn no_timeout(f: &mut Fixture) -> TestResult {
    let (clock, handler, log) = (Clock::new(f)?, f.endpoint()?, run_log());
    let handler_badged = f.badged(handler, 9)?;
    let thread = ThreadParams {
        timeout_handler: Some(handler_badged),
        ..f.active_on(100, SLICE)?
    };
    let tcb = f.prepare(thread, move || clock.log_forever(log))?;
    clock.start();
    tcb.resume()?;
    clock.sleep_until(2_000)?;
    ensure_eq!(handler.nb_wait().badge, 0);
    clock.ensure_runs(log, &[(0, 2_000)])
}

fn yielding(f: &mut Fixture) -> TestResult {
    let (clock, log) = (Clock::new(f)?, run_log());
    let thread = f.active_on(100, SLICE)?;
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, 200);
        sys::yield_now();
        clock.log_forever(log);
    })?;
    let other = runner(f, clock, 100, SLICE)?;
    clock.start();
    other.tcb.resume()?;
    tcb.resume()?;
    clock.sleep_until(2_500)?;
    clock.ensure_runs(log, &[(0, 200), (700, 1_200), (1_700, 2_200)])?;
    clock.ensure_runs(other.log, &[(200, 700), (1_200, 1_700)])?;
    let context = thread.sched_context.unwrap_or(f.my_context);
    super::kit::ensure_near("consumed", context.consumed_us()?, 1_200)
}
