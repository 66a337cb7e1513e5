//! No thread exceeds its budget, plus the longest kernel path, in any window of one period,
//! whatever it does; nor do several threads that share its context.

use sandglass::cap::{Notification, SchedParams};
use sandglass::server::{make_passive, Service};
use sandglass::testing::{spin, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, sys, time, Message};

use crate::fixture::{Fixture, FULL, KERNEL_PATH_US};
use sandglass::testing::run_log::{busiest_window, run_between, RunLog};

const BUDGET_US: u64 = 300;
const PERIOD_US: u64 = 1_000;
const PERIODS: u64 = 30;
const PRIORITY: u8 = 100;

const CONSTANT: SchedParams = SchedParams::new(BUDGET_US, PERIOD_US);
const SPORADIC: SchedParams = SchedParams::new(BUDGET_US, PERIOD_US)
    .sporadic()
    .extra_refills(8);

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "budgets",
        &[
            ("hold_for_a_spinning_thread", |f| alone(f, CONSTANT)),
            ("hold_for_a_spinning_sporadic_thread", |f| {
                alone(f, SPORADIC)
            }),
            ("hold_for_a_preempted_thread", |f| {
                preempted(f, CONSTANT.extra_refills(8), Share::All)
            }),
            ("hold_for_a_preempted_thread_with_few_refills", |f| {
                preempted(f, CONSTANT, Share::Some)
            }),
            ("hold_for_a_thread_that_sleeps_and_wakes", |f| {
                sleeper(f, CONSTANT)
            }),
            ("hold_for_a_sporadic_thread_that_sleeps_and_wakes", |f| {
                sleeper(f, SPORADIC)
            }),
            ("hold_when_refills_do_not_fit", |f| {
                sleeper(f, CONSTANT.sporadic())
            }),
            ("hold_for_a_thread_that_makes_system_calls", caller),
            ("hold_inside_a_passive_server", |f| server(f, CONSTANT)),
            ("hold_for_a_sporadic_client_of_a_passive_server", |f| {
                server(f, SPORADIC)
            }),
        ],
    );
}

/// How much of its budget a thread must have got, for the test to mean anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// All of it: it never waits for anything else.
    All,
    Some,
}

/// The property.
fn check(fixture: &Fixture, log: &RunLog, share: Share) -> TestResult {
    let intervals = log.intervals();
    let most = busiest_window(&intervals, fixture.ticks(PERIOD_US));
    let allowed = fixture.ticks(BUDGET_US + KERNEL_PATH_US);
    ensure!(
        most <= allowed,
        "{most} ticks in a window of one period, of which {allowed} are allowed"
    );
    let total = run_between(&intervals, 0, u64::MAX);
    let owed = fixture.ticks(BUDGET_US * (PERIODS - 1));
    let least = match share {
        Share::All => owed * 9 / 10,
        Share::Some => owed / 4,
    };
    ensure!(
        total >= least,
        "ran {total} ticks of the {owed} in its budget"
    );
    Ok(())
}

/// Where a test that starts now ends, in ticks.
fn end(fixture: &Fixture) -> u64 {
    time::ticks() + fixture.ticks(PERIOD_US * PERIODS)
}

fn alone(fixture: &mut Fixture, params: SchedParams) -> TestResult {
    let (log, done, end) = (RunLog::leak(), fixture.done, end(fixture));
    let context = fixture.context(params)?;
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        log.run_until(end);
        done.signal();
    })?;
    done.wait();
    check(fixture, log, Share::All)
}

/// A thread of higher priority takes the processor away at odd moments.
fn preempted(fixture: &mut Fixture, params: SchedParams, share: Share) -> TestResult {
    let (log, done, end) = (RunLog::leak(), fixture.done, end(fixture));
    let context = fixture.context(SchedParams::new(70, 370))?;
    fixture.spawn(ThreadParams::new(PRIORITY + 1, context), || spin())?;
    let context = fixture.context(params)?;
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        log.run_until(end);
        done.signal();
    })?;
    done.wait();
    check(fixture, log, share)
}

/// The thread runs for pseudo-random times and waits in between, until the next release of a
/// periodic thread of higher priority.
fn sleeper(fixture: &mut Fixture, params: SchedParams) -> TestResult {
    let (log, done, end) = (RunLog::leak(), fixture.done, end(fixture));
    let wake = fixture.process.resources.notification()?;
    waker(fixture, wake)?;
    let context = fixture.context(params)?;
    let longest = fixture.ticks(190);
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        let mut random = 1u64;
        while log.tick() < end {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            log.run_until(time::ticks() + (random >> 33) % longest);
            wake.wait();
        }
        done.signal();
    })?;
    done.wait();
    check(fixture, log, Share::Some)
}

/// A thread that signals `wake` about every 170 µs and gives the rest of its budget up.
fn waker(fixture: &mut Fixture, wake: Notification) -> TestResult {
    let context = fixture.context(SchedParams::new(40, 170))?;
    fixture.spawn(ThreadParams::new(PRIORITY + 1, context), move || loop {
        wake.signal();
        sys::yield_now();
    })?;
    Ok(())
}

/// The thread spends its budget in the kernel, entering it all the time.
fn caller(fixture: &mut Fixture) -> TestResult {
    let (log, done, end) = (RunLog::leak(), fixture.done, end(fixture));
    let idle = fixture.process.resources.notification()?;
    let context = fixture.context(CONSTANT)?;
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        while log.tick() < end {
            idle.signal();
            idle.poll();
        }
        done.signal();
    })?;
    done.wait();
    check(fixture, log, Share::All)
}

/// The client's context is used by the client and, on loan, by a passive server; both write the
/// same log.
fn server(fixture: &mut Fixture, params: SchedParams) -> TestResult {
    let (log, done, end) = (RunLog::leak(), fixture.done, end(fixture));
    let service = Service {
        ready: fixture.process.resources.notification()?,
        endpoint: fixture.process.resources.endpoint()?,
        reply: fixture.process.resources.reply()?,
    };
    let initial = fixture.context(FULL)?;
    let work = fixture.ticks(130);
    let server = fixture.spawn(ThreadParams::new(PRIORITY, initial), move || {
        service.serve(|_| {
            log.run_until(time::ticks() + work);
            Message::EMPTY
        })
    })?;
    make_passive(service.ready, server, initial)?;
    let context = fixture.context(params)?;
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        while log.tick() < end {
            service.endpoint.call(Message::EMPTY);
        }
        done.signal();
    })?;
    done.wait();
    check(fixture, log, Share::All)
}
