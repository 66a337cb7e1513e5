//! 04, sections 1, 3, 9.3, 12 and 13: units, who is charged for what, and the initial context.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::kit::{ensure_near, runner, Clock};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/1/limits-of-budget-and-period", limits),
    check("04/1/microseconds-are-the-reported-ticks", microseconds),
    check("04/1/the-longest-period-never-comes-back", longest_period),
    check("04/3/time-in-the-kernel-is-the-caller's", kernel_time),
    check("04/3/a-switch-of-contexts-commits", switch_commits),
    check(
        "04/3/configuring-the-own-context-commits",
        configure_commits,
    ),
    check(
        "04/5.2/configuring-keeps-the-consumed-time",
        configure_keeps_consumed,
    ),
    check("04/9.3/consumed-is-reported-once", consumed_once),
    check("04/9.3/uncommitted-time-is-not-reported", uncommitted),
    check("04/12/idle-time-is-nobody's", idle_time),
    check("04/13/the-initial-context-has-two-refills", initial_size),
    check(
        "04/13/the-initial-thread-controls-every-priority",
        initial_mcp,
    ),
    check("04/13/the-initial-slice-is-5-ms", initial_slice),
];

fn limits(f: &mut Fixture) -> TestResult {
    let longest = conformance_kit::arch::max_period_us(f);
    let context = f.unconfigured_context(7)?;
    let configure = Invocation::new(
        f.control,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        &[20, 20, 0, 0, 0],
        &[context.cptr()],
    );
    configure.expect_ok(&[])?;
    configure.with_word(1, longest).expect_ok(&[])?;
    configure
        .with_word(1, longest)
        .with_word(0, longest)
        .expect_ok(&[])?;
    for (word, value) in [
        (0, 19),
        (1, 19),
        (0, longest + 1),
        (1, longest + 1),
        (1, u64::MAX),
    ] {
        configure
            .with_word(word, value)
            .expect_error(RangeError, &[20, longest])?;
    }
    Ok(())
}

fn microseconds(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, FULL)?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(3_000)?;
    ensure_near("consumed", runner.context.consumed_us()?, 3_000)
}

fn longest_period(f: &mut Fixture) -> TestResult {
    let longest = conformance_kit::arch::max_period_us(f);
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, SchedParams::new(500, longest))?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(10_000)?;
    clock.ensure_runs(runner.log, &[(0, 500)])?;
    ensure_near("consumed", runner.context.consumed_us()?, 500)
}

/// A thread that does nothing but system calls pays for all of its time.
fn kernel_time(f: &mut Fixture) -> TestResult {
    let elapsed: &AtomicU64 = shared();
    let nothing = f.notification()?;
    let thread = f.active(100)?;
    f.spawn(thread, move || {
        let start = time::ticks();
        for _ in 0..500 {
            nothing.poll();
        }
        elapsed.store(time::ticks() - start, Relaxed);
    })?;
    f.settle()?;
    let consumed = thread.sched_context.unwrap_or(f.my_context).consumed_us()?;
    ensure_near(
        "consumed",
        consumed,
        f.tsc.ticks_to_us(elapsed.load(Relaxed)),
    )
}

fn switch_commits(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    f.control.configure(f.my_context, FULL)?;
    f.my_context.consumed_us()?;
    clock.start();
    clock.spin_until(800);
    f.settle()?;
    ensure_near("consumed", f.my_context.consumed_us()?, clock.now())
}

fn configure_commits(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    f.control.configure(f.my_context, FULL)?;
    f.my_context.consumed_us()?;
    clock.start();
    clock.spin_until(800);
    f.control.configure(f.my_context, FULL)?;
    ensure_near("consumed", f.my_context.consumed_us()?, 800)
}

fn configure_keeps_consumed(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, SchedParams::new(1_000, 5_000))?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(600)?;
    f.control
        .configure(runner.context, SchedParams::new(400, 5_000))?;
    runner.tcb.suspend()?;
    f.control.configure(runner.context, FULL)?;
    ensure_near("consumed", runner.context.consumed_us()?, 600)
}

fn consumed_once(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let runner = runner(f, clock, 100, FULL)?;
    clock.start();
    runner.tcb.resume()?;
    clock.sleep_until(500)?;
    let consumed = Invocation::new(runner.context, label::SCHED_CONTEXT_CONSUMED, &[], &[]);
    let first = consumed.ok()?;
    ensure_eq!(first.len(), 1);
    ensure_near("consumed", first[0], 500)?;
    consumed.expect_ok(&[0])
}

fn uncommitted(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    f.control.configure(f.my_context, FULL)?;
    f.my_context.consumed_us()?;
    clock.start();
    clock.spin_until(800);
    ensure_eq!(f.my_context.consumed_us()?, 0);
    Ok(())
}

fn idle_time(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    f.settle()?;
    f.my_context.consumed_us()?;
    clock.start();
    clock.sleep_until(3_000)?;
    let mine = f.my_context.consumed_us()?;
    ensure!(mine < 100, "{mine} µs consumed while idle");
    Ok(())
}

fn initial_size(f: &mut Fixture) -> TestResult {
    let configure = Invocation::new(
        f.control,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        &[100, 1_000, 1, 0, 0],
        &[boot::SCHED_CONTEXT.cptr()],
    );
    configure.expect_error(RangeError, &[0, 0])
}

fn initial_mcp(f: &mut Fixture) -> TestResult {
    let target = f.tcb()?;
    let set = Invocation::new(target, label::TCB_SET_PRIORITY, &[256], &[boot::TCB.cptr()]);
    set.expect_error(RangeError, &[0, 255])?;
    set.with_word(0, 255).expect_ok(&[])
}

/// Another thread borrows the context while the initial thread waits. Its first slice may be the
/// rest of one, the second is whole.
fn initial_slice(f: &mut Fixture) -> TestResult {
    let clock = Clock::new(f)?;
    let borrower = runner(f, clock, 100, FULL)?;
    let other = runner(f, clock, 100, FULL)?;
    borrower.context.unbind_tcb(borrower.tcb)?;
    boot::SCHED_CONTEXT.unbind_tcb(boot::TCB)?;
    let borrowed = borrow_initial(clock, borrower.tcb, other.tcb);
    // Whatever came of it, the initial thread needs it back.
    let freed = boot::SCHED_CONTEXT.unbind_tcb(borrower.tcb);
    boot::SCHED_CONTEXT.bind(boot::TCB)?;
    borrowed?;
    freed?;
    let runs = clock.runs(borrower.log);
    ensure!(runs.len() >= 2, "the borrower ran at {runs:?}");
    ensure_near("the slice", runs[1].1 - runs[1].0, 5_000)
}

fn borrow_initial(clock: Clock, borrower: Tcb, other: Tcb) -> TestResult {
    boot::SCHED_CONTEXT.bind(borrower)?;
    clock.start();
    borrower.resume()?;
    other.resume()?;
    clock.sleep_until(23_000)?;
    borrower.suspend()?;
    Ok(())
}
