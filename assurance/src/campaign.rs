//! Many seeds, on several threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::thread;

use sandglass_kernel::CORES;

use crate::coverage::Coverage;
use crate::generator::Generator;
use crate::pair::{Checks, Failure, Lines, Traffic};
use crate::script::Action;
use crate::shrink::{self, guarded};
use crate::world;

/// How much is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub first_seed: u64,
    /// Events in lock step, together, at least.
    pub events: u64,
    /// Least number of seeds.
    pub seeds: u64,
    /// Threads to work on.
    pub jobs: usize,
    /// Cores on which something happens, of those that the kernel is for.
    pub cores: usize,
    /// Only the oracle for time is asked, in every seed with time inside events.
    pub only_time: bool,
}

/// Events that a seed has at most.
const EVENTS_PER_SEED: u64 = 1000;

/// What was done, and what was found.
#[derive(Default, Debug)]
pub struct Report {
    pub seeds: u64,
    /// Events after which the whole state was compared.
    pub compared: u64,
    /// Events after which only the invariants were swept.
    pub swept: u64,
    /// Seeds that ended without the specification, behind an operation that was still half done.
    pub left: u64,
    /// Times that the specification started anew behind a half-done operation.
    pub losses: u64,
    pub coverage: Coverage,
    pub traffic: Traffic,
    pub lines: Lines,
    pub found: Vec<Found>,
}

/// Something wrong.
#[derive(Debug)]
pub struct Found {
    pub seed: u64,
    /// What is wrong, and the shortest script found for it, as a test.
    pub text: String,
}

/// From this seed on, most of what happens are exchanges of messages.
pub const SERVING: u64 = 1 << 32;

/// How a seed's events are made and checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mode {
    checks: Checks,
    preempts: bool,
    /// Time passes inside events.
    delays: bool,
}

impl Mode {
    const TIME: Mode = Mode {
        checks: Checks::Time,
        preempts: true,
        delays: true,
    };

    fn of(seed: u64) -> Mode {
        // Every other row of eight seeds has time inside events.
        let delays = seed / 8 % 2 == 1;
        match seed % 8 {
            // Threads run between the parts of preempted operations.
            7 => Mode {
                checks: Checks::Invariants,
                preempts: true,
                delays,
            },
            5 | 6 => Mode {
                checks: Checks::All,
                preempts: true,
                delays,
            },
            _ => Mode {
                checks: Checks::All,
                preempts: false,
                delays,
            },
        }
    }
}

/// Carries out `plan`; `progress` hears how many events in lock step there were since it was last
/// told.
pub fn run(plan: Plan, progress: impl Fn(u64) + Sync) -> Report {
    let next = AtomicU64::new(0);
    let compared = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    let work = || loop {
        let done = compared.load(Ordering::Relaxed);
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= plan.seeds && done >= plan.events {
            break;
        }
        let number = plan.first_seed + number;
        let mode = if plan.only_time {
            Mode::TIME
        } else {
            Mode::of(number)
        };
        let part = carry_out(number, mode, plan.cores);
        let events = if plan.only_time {
            part.swept
        } else {
            part.compared
        };
        compared.fetch_add(events, Ordering::Relaxed);
        progress(events);
        let mut report = report.lock().expect("no thread panics with the report");
        report.add(part);
        if report.found.len() >= MOST_FOUND {
            break;
        }
    };
    thread::scope(|scope| {
        for _ in 0..plan.jobs.max(1) {
            scope.spawn(work);
        }
    });
    report
        .into_inner()
        .expect("no thread panics with the report")
}

/// Findings after which a campaign ends.
const MOST_FOUND: usize = 4;

impl Report {
    fn add(&mut self, part: Report) {
        self.seeds += part.seeds;
        self.compared += part.compared;
        self.swept += part.swept;
        self.left += part.left;
        self.losses += part.losses;
        self.coverage.add(&part.coverage);
        self.traffic.add(part.traffic);
        self.lines.join(&part.lines);
        self.found.extend(part.found);
    }
}

/// Carries out one seed, and leaves a script that fails as it is.
///
/// # Errors
/// What is wrong first.
pub fn check(seed: u64) -> Result<(), Failure> {
    let mode = Mode::of(seed);
    guarded(|| explore(seed, mode, CORES, &mut Vec::new(), &mut Report::default()))
}

/// Carries out one seed, on `cores`.
pub fn seed(seed: u64, cores: usize) -> Report {
    carry_out(seed, Mode::of(seed), cores)
}

fn carry_out(seed: u64, mode: Mode, cores: usize) -> Report {
    let mut report = Report {
        seeds: 1,
        ..Report::default()
    };
    let mut script = Vec::new();
    let outcome = guarded(|| explore(seed, mode, cores, &mut script, &mut report));
    if let Err(failure) = outcome {
        let (script, failure) = shrink::shrink(&script, failure, mode.checks);
        let text = shrink::report(&script, &failure, seed);
        report.found.push(Found { seed, text });
    }
    report
}

fn explore(
    seed: u64,
    mode: Mode,
    cores: usize,
    script: &mut Vec<Action>,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut pair = world::create(Checks::None)?;
    pair.set_checks(mode.checks);
    let start = pair.events();
    let mut generator = Generator::new(seed, mode.preempts, mode.delays, cores);
    if seed >= SERVING {
        generator = generator.serving();
    }
    let mut last = pair.state().expect("the world is settled");
    while pair.events() - start < EVENTS_PER_SEED {
        let state = pair.specified().unwrap_or(&last);
        let Some(action) = generator.next(state) else {
            break;
        };
        let asked = Coverage::ask(state, &action);
        script.push(action.clone());
        let before = pair.events();
        pair.perform(&action)?;
        let events = pair.events() - before;
        if pair.follows() {
            report.compared += events;
        } else {
            report.swept += events;
            // Half-done operations have no state of the specification: the last one is near enough, but for
            // who runs.
            last = pair.state().unwrap_or_else(|_| pair.with_who_runs(last));
        }
        let state = pair.specified().unwrap_or(&last);
        report.coverage.count(asked, state);
    }
    report.traffic.add(pair.traffic());
    report.lines.join(pair.lines());
    report.left += u64::from(mode.checks == Checks::All && !pair.follows());
    report.losses += pair.losses();
    Ok(())
}
