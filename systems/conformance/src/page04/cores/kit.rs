//! What the checks of several cores share: threads that count for as long as they run, and noting
//! where they do.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::fixture::{here, linger};
use crate::prelude::*;

/// A budget that outlasts every check, so that no timer helps a core that was not told.
pub const ENDLESS: SchedParams = SchedParams::new(3_600_000_000, 3_600_000_000);

/// What a thread says of itself: how often it went round, and where it did so last.
#[derive(Default)]
pub struct Beats {
    count: AtomicU64,
    place: AtomicU64,
}

impl Beats {
    /// Goes round once.
    pub fn beat(&self) {
        self.place.store(here(), SeqCst);
        self.count.fetch_add(1, SeqCst);
        sandglass::time::pause();
    }

    /// Goes round for good.
    pub fn run(&self) -> ! {
        loop {
            self.beat();
        }
    }

    pub fn count(&self) -> u64 {
        self.count.load(SeqCst)
    }
}

/// A thread that counts whenever it runs.
#[derive(Clone, Copy)]
pub struct Runner {
    pub tcb: Tcb,
    pub context: SchedContext,
    pub beats: &'static Beats,
}

impl Runner {
    /// Fails unless it goes round.
    pub fn ensure_runs(&self, f: &Fixture) -> TestResult {
        let before = self.beats.count();
        f.eventually("the thread runs", || self.beats.count() > before + 1)
    }

    /// Fails unless it goes round, and does so there.
    pub fn ensure_runs_at(&self, f: &Fixture, place: u64) -> TestResult {
        self.ensure_runs(f)?;
        ensure_eq!(self.beats.place.load(SeqCst), place);
        Ok(())
    }

    /// Fails if it goes round from now on, for a while in which the other cores execute.
    pub fn ensure_rests(&self) -> TestResult {
        let before = self.beats.count();
        linger();
        ensure_eq!(self.beats.count(), before);
        Ok(())
    }
}

/// The cores that run.
pub struct Cores {
    places: Vec<u64>,
    /// A suspended thread of the lowest priority on each core but the first.
    lowest: Vec<Runner>,
}

impl Cores {
    /// Skips the check if fewer than `least` run.
    pub fn new(f: &mut Fixture, least: u64) -> Result<Self, Failure> {
        let count = f.needs_cores(least)?;
        let mut cores = Self {
            places: vec![here()],
            lowest: Vec::new(),
        };
        for core in 1..count {
            let lowest = runner(f, core, 0)?;
            lowest.ensure_runs(f)?;
            lowest.tcb.suspend()?;
            cores.places.push(lowest.beats.place.load(SeqCst));
            cores.lowest.push(lowest);
        }
        Ok(cores)
    }

    /// All cores but the check's.
    pub fn others(&self) -> impl Iterator<Item = u64> {
        1..self.places.len() as u64
    }

    /// Of those, three at most, the last among them: for checks that wait a long time on each.
    pub fn some_others(&self) -> impl Iterator<Item = u64> {
        let last = self.count() - 1;
        self.others().filter(move |&core| core <= 2 || core == last)
    }

    pub fn count(&self) -> u64 {
        self.places.len() as u64
    }

    /// What [`here`] says on core `core`.
    pub fn place(&self, core: u64) -> u64 {
        self.places[core as usize]
    }

    /// The next of the other cores after `core`.
    pub fn after(&self, core: u64) -> u64 {
        core % (self.count() - 1) + 1
    }

    /// Waits until all threads of core `core`, which is not the check's, wait.
    pub fn settle(&self, f: &Fixture, core: u64) -> TestResult {
        let lowest = self.lowest[core as usize - 1];
        lowest.tcb.resume()?;
        lowest.ensure_runs(f)?;
        Ok(lowest.tcb.suspend()?)
    }
}

/// A runner on core `core`, started.
pub fn runner(f: &mut Fixture, core: u64, priority: u8) -> Result<Runner, Failure> {
    let runner = prepared(f, core, priority, || ())?;
    runner.tcb.resume()?;
    Ok(runner)
}

/// A thread on core `core`, not started, which does `first` and then counts.
pub fn prepared(
    f: &mut Fixture,
    core: u64,
    priority: u8,
    first: impl FnOnce() + Send + 'static,
) -> Result<Runner, Failure> {
    let params = f.active_at(core, priority, ENDLESS)?;
    prepared_with(f, params, first)
}

/// As [`prepared`], of these parameters. Without a context, that of the check stands for it.
pub fn prepared_with(
    f: &mut Fixture,
    params: ThreadParams,
    first: impl FnOnce() + Send + 'static,
) -> Result<Runner, Failure> {
    let beats: &'static Beats = shared();
    let tcb = f.prepare(params, move || {
        first();
        beats.run()
    })?;
    Ok(Runner {
        tcb,
        context: params.sched_context.unwrap_or(f.my_context),
        beats,
    })
}

/// A passive thread that serves Calls at the endpoint for good: the answer is where it ran.
pub fn passive_server(f: &mut Fixture, endpoint: Endpoint) -> Result<Tcb, Failure> {
    let reply = f.reply()?;
    let (tcb, _) = super::super::kit::passive(f, 200, move || {
        let mut received = endpoint.recv(reply);
        loop {
            let answer = Message::new(0, [here(), received.badge]);
            received = reply.reply_recv(endpoint, answer);
        }
    })?;
    Ok(tcb)
}

/// The core of a thread, as the kernel says; skips the check if it has no debug calls.
pub fn affinity(f: &mut Fixture, tcb: Tcb) -> Result<u64, Failure> {
    f.needs_debug_kernel()?;
    Ok(sys::simple(Syscall::DebugGetThreadAffinity, tcb.address()))
}
