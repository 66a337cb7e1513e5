//! What the checks of page 04 share: a clock in microseconds since an origin, threads that log
//! when they run, and workers that note in which order they do.
//!
//! Time is virtual, 1 ns per instruction, so amounts and instants are exact up to the kernel's own
//! entries, the microsecond by which deadlines are early (ABI 04, section 1), and the few system calls
//! with which a check gives the processor away and takes it back: [`JITTER_US`] in all.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::SchedControl;
use sandglass::testing::run_log::Interval;
use sandglass::testing::RunLog;

use crate::prelude::*;

/// How far a measured instant may be off, µs.
pub const JITTER_US: u64 = crate::arch::JITTER_US;
/// What the alarm needs of its budget, with what must be left at a system call, µs.
const ALARM_BUDGET_US: u64 = 60;
/// From setting the alarm to when others run, and from its ringing to when the check runs, µs.
const SET_US: u64 = 4;
const RING_US: u64 = 2;
/// A shorter gap in a log, µs, is an interrupt or the check's own look.
const GAP_US: u64 = 25;
/// Intervals that a runner's log holds.
const INTERVALS: usize = 128;

/// Microseconds since an origin, and an alarm of the highest priority.
#[derive(Clone, Copy)]
pub struct Clock {
    ticks_per_us: u64,
    origin: &'static AtomicU64,
    control: SchedControl,
    /// The alarm thread's, whose next replenishment is the alarm.
    alarm: SchedContext,
    set: Notification,
    rings: Notification,
}

impl Clock {
    pub fn new(f: &mut Fixture) -> Result<Self, SetupError> {
        let params = f.active_on(u8::MAX, SchedParams::new(ALARM_BUDGET_US, 1_000))?;
        let clock = Self {
            ticks_per_us: f.ticks(1),
            origin: shared(),
            control: f.control,
            alarm: params.sched_context.unwrap_or(f.my_context),
            set: f.notification()?,
            rings: f.notification()?,
        };
        f.spawn(params, move || loop {
            clock.set.wait();
            sys::yield_now();
            clock.rings.signal();
        })?;
        clock.start();
        Ok(clock)
    }

    /// The origin is now.
    pub fn start(self) {
        self.origin.store(time::ticks(), Relaxed);
    }

    /// Ticks at `us` after the origin.
    fn at(self, us: u64) -> u64 {
        self.origin.load(Relaxed) + us.saturating_mul(self.ticks_per_us).min(u64::MAX / 2)
    }

    /// µs since the origin.
    pub fn now(self) -> u64 {
        self.us(time::ticks())
    }

    /// µs from the origin to `ticks`.
    pub fn us(self, ticks: u64) -> u64 {
        ticks.saturating_sub(self.origin.load(Relaxed)) / self.ticks_per_us
    }

    /// Waits until `us` after the origin, at least 100 µs from now, while others run.
    pub fn sleep_until(self, us: u64) -> TestResult {
        let length = us.saturating_sub(self.now()).saturating_sub(RING_US);
        ensure!(length > ALARM_BUDGET_US, "the check came late to {us} µs");
        self.control
            .configure(self.alarm, SchedParams::new(ALARM_BUDGET_US, length))?;
        self.set.signal();
        self.rings.wait();
        self.spin_until(us);
        Ok(())
    }

    /// Keeps the processor until `us` after the origin.
    pub fn spin_until(self, us: u64) {
        let end = self.at(us);
        while time::ticks() < end {
            time::pass();
        }
    }

    /// Lets others run until `from`, and no thread of lower priority from then to `to`, if the check
    /// sleeps next.
    pub fn hold(self, from: u64, to: u64) -> TestResult {
        self.sleep_until(from)?;
        self.spin_until(to - SET_US);
        Ok(())
    }

    /// Runs until `us` after the origin, logging when.
    pub fn log_until(self, log: &RunLog, us: u64) {
        log.run_until(self.at(us));
    }

    /// Runs for `us`.
    pub fn burn(self, us: u64) {
        let end = time::ticks() + us * self.ticks_per_us;
        while time::ticks() < end {
            time::pass();
        }
    }

    /// Runs for good, logging when.
    pub fn log_forever(self, log: &RunLog) {
        log.run_until(u64::MAX);
    }

    /// When the writer of `log` ran: µs since the origin, from and to.
    pub fn runs(self, log: &RunLog) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for Interval { start, end } in log.intervals() {
            let (start, end) = (self.us(start), self.us(end));
            match runs.last_mut() {
                Some(last) if start.saturating_sub(last.1) < GAP_US => last.1 = end,
                _ => runs.push((start, end)),
            }
        }
        runs
    }

    /// Fails unless the writer of `log` ran from and to these times, µs since the origin, up to
    /// the jitter, and not between them. What it ran later does not matter.
    pub fn ensure_runs(self, log: &RunLog, expected: &[(u64, u64)]) -> TestResult {
        let runs = self.runs(log);
        let agree = runs.len() >= expected.len()
            && runs
                .iter()
                .zip(expected)
                .all(|(a, b)| near(a.0, b.0) && near(a.1, b.1));
        ensure!(agree, "ran at {runs:?} µs, not at {expected:?}");
        Ok(())
    }
}

/// Whether both are equal up to the jitter, µs.
pub fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= JITTER_US
}

/// Fails unless both are equal up to the jitter, µs.
pub fn ensure_near(what: &str, seen: u64, expected: u64) -> TestResult {
    ensure!(near(seen, expected), "{what} is {seen} µs, not {expected}");
    Ok(())
}

/// A log for a few intervals.
pub fn run_log() -> &'static RunLog {
    RunLog::leak_with(INTERVALS)
}

/// A thread that runs whenever it may, and the log of when it did.
#[derive(Clone, Copy)]
pub struct Runner {
    pub tcb: Tcb,
    pub context: SchedContext,
    pub log: &'static RunLog,
}

/// A runner, not started. Its priority is below the check's.
pub fn runner(
    f: &mut Fixture,
    clock: Clock,
    priority: u8,
    params: SchedParams,
) -> Result<Runner, SetupError> {
    let thread = f.active_on(priority, params)?;
    let log = run_log();
    Ok(Runner {
        tcb: f.prepare(thread, move || clock.log_forever(log))?,
        context: thread.sched_context.unwrap_or(f.my_context),
        log,
    })
}

/// A thread that notes its number whenever it is signalled.
#[derive(Clone, Copy)]
pub struct Worker {
    pub tcb: Tcb,
    pub context: SchedContext,
    pub go: Notification,
}

/// A worker on a round-robin context, waiting.
pub fn worker(
    f: &mut Fixture,
    priority: u8,
    trace: &'static Trace,
    number: u64,
) -> Result<Worker, SetupError> {
    let go = f.notification()?;
    let params = f.active(priority)?;
    let tcb = f.spawn(params, move || loop {
        go.wait();
        trace.note(number);
    })?;
    f.settle()?;
    Ok(Worker {
        tcb,
        context: params.sched_context.unwrap_or(f.my_context),
        go,
    })
}

/// A thread that has run `body` until it waits, and has no context since; and the one it had.
pub fn passive(
    f: &mut Fixture,
    priority: u8,
    body: impl FnOnce() + Send + 'static,
) -> Result<(Tcb, SchedContext), Failure> {
    let params = f.active(priority)?;
    let tcb = f.spawn(params, body)?;
    f.settle()?;
    let context = params.sched_context.unwrap_or(f.my_context);
    context.unbind_tcb(tcb)?;
    Ok((tcb, context))
}

/// Starts a thread on a round-robin context of its own; returns that too.
pub fn active(
    f: &mut Fixture,
    priority: u8,
    body: impl FnOnce() + Send + 'static,
) -> Result<(Tcb, SchedContext), Failure> {
    let params = f.active(priority)?;
    let tcb = f.spawn(params, body)?;
    Ok((tcb, params.sched_context.unwrap_or(f.my_context)))
}
