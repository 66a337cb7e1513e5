//! Kinds of task (thesis 6.4.1): what a thread does between its jobs, on which reservation.
//!
//! | kind | reservation | a job begins |
//! | --- | --- | --- |
//! | best effort: [`run`] | full: budget equal to period, the slice of the round robin | at once |
//! | rate-limited: [`run`] | budget below period | when there is budget |
//! | polling: [`poll`] | budget below period, no extra refills | at the next replenishment |
//! | sporadic: [`sporadic`] | sporadic, budget below period | at an event, and when there is budget |
//! | time-triggered: [`TimeTriggered`] | any that suffices | at its release, by a timer of the service |
//!
//! Rates are the kernel's to keep, so most of this is a loop. [`releases`] is the arithmetic of releases
//! without drift.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod releases;

use sandglass::cap::Notification;
use sandglass::time::{self, Tsc};
use sandglass::{sys, Environment};
use sandglass_timers::{Refusal, Timer};

use releases::{Missed, Release, Releases};

/// A best-effort task, or a rate-limited one: its reservation says which. With a full one it takes
/// turns with others of its priority; else it gets its budget in every period, and no more.
pub fn run(mut job: impl FnMut()) -> ! {
    loop {
        job();
    }
}

/// A polling task (Listing 6.1): looks for events in every period of its reservation. The job gets the
/// flags that were signalled since the last look, 0 if none.
///
/// It sleeps until the next replenishment. That is one period after the job began if nothing has cut
/// the budget into pieces: a task of high priority, whose jobs do not block. Who must wake at exact
/// times is [`TimeTriggered`].
pub fn poll(events: Notification, mut job: impl FnMut(u64)) -> ! {
    loop {
        job(events.poll());
        sys::yield_now();
    }
}

/// A sporadic task (Listing 6.2): a job for every event, as far as its reservation goes: the budget in
/// any window of a period, however often events come. The job gets the flags that were signalled;
/// events of one flag that come while a job runs, or while the budget is used up, are one.
pub fn sporadic(events: Notification, mut job: impl FnMut(u64)) -> ! {
    loop {
        job(events.wait());
    }
}

/// A time-triggered task: jobs begin at `start + k * period` and nowhere else.
#[derive(Clone, Copy, Debug)]
pub struct TimeTriggered {
    timer: Timer,
    releases: Releases,
}

impl TimeTriggered {
    /// Releases every `period_us` µs, the first one period from now, by the component's timer of that name
    /// ([`Timer::described`]).
    ///
    /// # Errors
    /// The period is below the `every` of the timer's description.
    ///
    /// # Panics
    /// The component has no such timer.
    pub fn described(
        env: &Environment,
        timer: &str,
        period_us: u64,
        missed: Missed,
    ) -> Result<Self, Refusal> {
        let tsc = env.tsc().expect("the kernel reports the clock's frequency");
        Self::new(Timer::described(env, timer), tsc, period_us, missed)
    }

    /// As [`Self::described`], by a timer that nobody else uses.
    ///
    /// # Errors
    /// As there.
    pub fn new(timer: Timer, tsc: Tsc, period_us: u64, missed: Missed) -> Result<Self, Refusal> {
        let period = tsc.us_to_ticks(period_us).max(1);
        let first = time::ticks().saturating_add(period);
        timer.every(first, period)?;
        Ok(Self {
            timer,
            releases: Releases::new(first, period, missed),
        })
    }

    /// Waits for the next release, in ticks of the time-stamp counter.
    pub fn wait(&mut self) -> Release {
        let release = self.releases.next(time::ticks());
        // What is signalled may be an earlier release, which was caught up with.
        while time::ticks() < release.at {
            self.timer.wait();
        }
        release
    }

    /// Does a job at each release, for good.
    pub fn run(mut self, mut job: impl FnMut(Release)) -> ! {
        loop {
            job(self.wait());
        }
    }
}
