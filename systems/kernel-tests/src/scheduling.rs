//! Yield, YieldTo and Consumed (ABI 04, section 9), and what contexts can be bound to.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{SchedContext, SchedParams};
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{boot, ensure, ensure_eq, sys, time, Error, ErrorKind};

use crate::fixture::{runs_on, Fixture, FULL, KERNEL_PATH_US};

const PRIORITY: u8 = 100;
/// The root task's.
const HIGHEST: u8 = 255;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "scheduling",
        &[
            ("consumed_time_is_reported_once", consumed),
            ("yield_gives_the_rest_of_the_budget_up", yield_budget),
            ("what_yield_gives_up_is_not_consumed", yield_consumed),
            ("yield_lets_others_of_the_priority_run", yield_round_robin),
            ("yield_to_runs_the_target_first", yield_to_equal),
            ("yield_to_a_lower_priority_returns_at_once", yield_to_lower),
            ("yield_to_is_refused_where_the_abi_says", yield_to_refused),
            ("a_thread_without_context_does_not_run", unbound),
            ("an_unconfigured_context_does_not_run", unconfigured),
            ("a_context_has_one_thread", one_thread),
            ("a_shorter_budget_takes_effect", reconfigured),
        ],
    );
}

fn spin_until(end: u64) {
    while time::ticks() < end {}
}

fn consumed(fixture: &mut Fixture) -> TestResult {
    const WORK_US: u64 = 300;
    for params in [FULL, SchedParams::new(1_000, 4_000)] {
        let context = fixture.context(params)?;
        let (done, work) = (fixture.done, fixture.ticks(WORK_US));
        fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
            spin_until(time::ticks() + work);
            done.signal();
        })?;
        done.wait();
        fixture.settle();
        let used = context.consumed_us()?;
        ensure!(
            (WORK_US..=WORK_US + KERNEL_PATH_US).contains(&used),
            "{used} µs reported for {WORK_US}"
        );
        ensure_eq!(context.consumed_us()?, 0);
    }
    Ok(())
}

/// A thread that yields runs again one period after it began to run, not before.
fn yield_budget(fixture: &mut Fixture) -> TestResult {
    const PERIOD_US: u64 = 1_500;
    let context = fixture.context(SchedParams::new(500, PERIOD_US))?;
    let times: &[AtomicU64; 6] = shared();
    let done = fixture.done;
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        for time in times {
            time.store(time::ticks(), Relaxed);
            sys::yield_now();
        }
        done.signal();
    })?;
    done.wait();
    let (period, slack) = (fixture.ticks(PERIOD_US), fixture.ticks(KERNEL_PATH_US));
    for pair in times.windows(2) {
        let passed = pair[1].load(Relaxed) - pair[0].load(Relaxed);
        ensure!(
            passed.abs_diff(period) <= slack,
            "{passed} ticks between two turns, not {period}"
        );
    }
    Ok(())
}

fn yield_consumed(fixture: &mut Fixture) -> TestResult {
    const WORK_US: u64 = 50;
    let context = fixture.context(SchedParams::new(900, 1_000))?;
    let (done, work) = (fixture.done, fixture.ticks(WORK_US));
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        spin_until(time::ticks() + work);
        sys::yield_now();
        done.signal();
    })?;
    done.wait();
    fixture.settle();
    let used = context.consumed_us()?;
    ensure!(
        (WORK_US..=WORK_US + KERNEL_PATH_US).contains(&used),
        "{used} µs reported for {WORK_US}"
    );
    Ok(())
}

fn yield_round_robin(fixture: &mut Fixture) -> TestResult {
    const TURNS: u64 = 5;
    let order: &[AtomicU64; 10] = shared();
    let next: &AtomicU64 = shared();
    for number in 0..2 {
        fixture.spawn_full(PRIORITY, move || {
            for _ in 0..TURNS {
                order[next.fetch_add(1, Relaxed) as usize].store(number, Relaxed);
                sys::yield_now();
            }
        })?;
    }
    fixture.settle();
    ensure_eq!(next.load(Relaxed), 2 * TURNS);
    for pair in order.chunks(2) {
        let turns = (pair[0].load(Relaxed), pair[1].load(Relaxed));
        ensure!(turns.0 != turns.1, "thread {} ran twice", turns.0);
    }
    Ok(())
}

/// The target has the caller's priority: it runs until it waits, and the caller gets the time
/// that it used.
fn yield_to_equal(fixture: &mut Fixture) -> TestResult {
    const WORK_US: u64 = 120;
    let context = fixture.context(FULL)?;
    let (ran, work): (&AtomicU64, _) = (shared(), fixture.ticks(WORK_US));
    fixture.spawn(ThreadParams::new(HIGHEST, context), move || {
        spin_until(time::ticks() + work);
        ran.store(1, Relaxed);
    })?;
    // Threads in front of it in the queue do not run first.
    let others: &AtomicU64 = shared();
    fixture.spawn_full(HIGHEST, move || others.store(1, Relaxed))?;
    let used = context.yield_to()?;
    ensure_eq!((ran.load(Relaxed), others.load(Relaxed)), (1, 0));
    ensure!(
        (WORK_US..=WORK_US + KERNEL_PATH_US).contains(&used),
        "{used} µs reported for {WORK_US}"
    );
    Ok(())
}

fn yield_to_lower(fixture: &mut Fixture) -> TestResult {
    let context = fixture.context(FULL)?;
    let ran: &AtomicU64 = shared();
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        ran.store(1, Relaxed)
    })?;
    ensure_eq!(context.yield_to()?, 0);
    ensure_eq!(ran.load(Relaxed), 0);
    fixture.settle();
    ensure_eq!(ran.load(Relaxed), 1);
    Ok(())
}

fn refused(result: Result<u64, Error>) -> bool {
    matches!(
        result,
        Err(Error {
            kind: ErrorKind::IllegalOperation,
            ..
        })
    )
}

fn yield_to_refused(fixture: &mut Fixture) -> TestResult {
    let unbound = fixture.context(FULL)?;
    ensure!(refused(unbound.yield_to()), "no thread");
    ensure!(refused(boot::SCHED_CONTEXT.yield_to()), "the caller itself");
    let (target, own) = (fixture.context(FULL)?, fixture.context(FULL)?);
    fixture.spawn(ThreadParams::new(PRIORITY + 1, target), || ())?;
    let result: &AtomicU64 = shared();
    let params = ThreadParams {
        mcp: PRIORITY,
        ..ThreadParams::new(PRIORITY, own)
    };
    fixture.spawn(params, move || {
        result.store(1 + u64::from(refused(target.yield_to())), Relaxed);
    })?;
    fixture.settle();
    ensure_eq!(result.load(Relaxed), 2);
    Ok(())
}

fn unbound(fixture: &mut Fixture) -> TestResult {
    let ran: &AtomicU64 = shared();
    let tcb = fixture.spawn(ThreadParams::passive(PRIORITY), move || {
        ran.store(1, Relaxed)
    })?;
    fixture.settle();
    ensure_eq!(ran.load(Relaxed), 0);
    fixture.context(FULL)?.bind(tcb)?;
    fixture.settle();
    ensure_eq!(ran.load(Relaxed), 1);
    Ok(())
}

fn unconfigured(fixture: &mut Fixture) -> TestResult {
    let ran: &AtomicU64 = shared();
    let context: SchedContext = fixture.process.resources.sched_context(7)?;
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        ran.store(1, Relaxed)
    })?;
    fixture.settle();
    ensure_eq!(ran.load(Relaxed), 0);
    fixture.control.configure(context, FULL)?;
    fixture.settle();
    ensure_eq!(ran.load(Relaxed), 1);
    Ok(())
}

fn one_thread(fixture: &mut Fixture) -> TestResult {
    let context = fixture.context(FULL)?;
    let first = fixture.spawn(ThreadParams::new(PRIORITY, context), || ())?;
    let second = fixture.spawn(ThreadParams::passive(PRIORITY), || ())?;
    ensure!(context.bind(second).is_err());
    ensure!(!runs_on(second, PRIORITY, context));
    ensure!(runs_on(first, PRIORITY, context));
    context.unbind_tcb(first)?;
    context.bind(second)?;
    ensure!(runs_on(second, PRIORITY, context));
    ensure!(context.unbind_tcb(first).is_err());
    Ok(())
}

/// A thread with budget left gets no more than the new budget in the current period.
fn reconfigured(fixture: &mut Fixture) -> TestResult {
    const PERIOD_US: u64 = 3_000;
    let context = fixture.context(SchedParams::new(2_000, PERIOD_US))?;
    let start = time::ticks();
    let (done, end) = (fixture.done, start + fixture.ticks(3 * PERIOD_US));
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        spin_until(end);
        done.signal();
    })?;
    fixture
        .control
        .configure(context, SchedParams::new(100, PERIOD_US))?;
    let low = fixture.context(FULL)?;
    let observed = fixture.done;
    fixture.spawn(ThreadParams::new(PRIORITY - 1, low), move || {
        observed.signal();
    })?;
    done.wait();
    let passed = time::ticks() - start;
    ensure!(
        passed <= fixture.ticks(100 + 10 * KERNEL_PATH_US),
        "the thread ran for {passed} ticks"
    );
    Ok(())
}
