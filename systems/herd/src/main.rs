//! The herd test: however many budgets of low priority fall due, at one instant or one after the
//! other, the thread of the highest priority is neither delayed nor charged for it (docs/src/architecture/scheduler.md).
//!
//! Measured with 10 and with 10,000 threads, in ticks, which under virtual time are instructions:
//! the longest stretch in which the highest thread executes nothing while it runs; the delay
//! of its own release at the same instant; and the time charged to it that it did not use.

#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod herd;
mod watch;

use herd::{Due, Herd};
use sandglass::boot::SCHED_CONTEXT;
use sandglass::cap::SchedParams;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::time::{spin_until, ticks};
use sandglass::{ensure, println, BootInfo, Process, SetupError};
use watch::Log;

sandglass::entry!(main, stack = 0x1_0000, heap = 0x20_0000);

/// Sizes of the herd.
const FEW: u64 = 10;
const MANY: u64 = 10_000;

/// Priority of the thread that is watched.
const HIGH: u8 = 200;
/// Priority of this thread while it waits for the herd, and while it waits for the high thread.
const BELOW_HERD: u8 = 5;
const ABOVE_HERD: u8 = 100;
const TOP: u8 = 255;

/// Budget and period of the high thread, µs.
const HIGH_BUDGET_US: u64 = 25_000;
const HIGH_PERIOD_US: u64 = 120_000;

/// Time slice of this thread, µs.
const SLICE_US: u64 = 3_000_000;

/// log2 of the slots that the capabilities of the herd need.
const CSPACE_RADIX: u32 = 16;

/// Most ticks by which two decisions may be dearer because somebody of lower priority waits. Each asks who
/// is due, and when the next release above is: a search for either takes more than half of this.
const MOST_FOR_DECISIONS: u64 = 128;

static LOG: Log = Log::new();

/// What the herd did to the high thread, in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// Longest stretch in which it executed nothing, while it had time.
    longest_gap: u64,
    /// From the instant at which its own budget came back to its first instruction; 0 where it
    /// ran already.
    release_delay: u64,
    /// Of its budget, what it was charged for and did not use.
    unused: u64,
}

struct Lab {
    process: Process,
    boot: &'static BootInfo,
    ticks_per_us: u64,
}

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    process.use_exit_port()?;
    process.resources.enlarge_cspace(CSPACE_RADIX)?;
    // No end of a time slice of this thread may coincide with a release.
    let control = boot.sched_control(0).expect("there is a first core");
    control.configure(SCHED_CONTEXT, SchedParams::new(SLICE_US, SLICE_US))?;
    let ticks_per_us = boot.tsc().map_or(1000, |tsc| u64::from(tsc.mhz()));
    let mut lab = Lab {
        process,
        boot,
        ticks_per_us,
    };

    let few = Herd::new(&mut lab.process, FEW)?;
    let many = Herd::new(&mut lab.process, MANY)?;
    let mut suite = Suite::new();
    // 1.5 µs, that is by turns 1,000 and 2,000 instructions.
    for (form, half_us_apart) in [("at_one_instant", 0), ("one_after_the_other", 3)] {
        suite.run(
            &alloc::format!("a_running_thread_is_not_disturbed_by_budgets_due_{form}"),
            || {
                compare(
                    form,
                    |herd| lab.while_running(herd, half_us_apart),
                    &few,
                    &many,
                )
            },
        );
        suite.run(
            &alloc::format!("a_released_thread_is_not_delayed_by_budgets_due_{form}"),
            || {
                compare(
                    form,
                    |herd| lab.while_released(herd, half_us_apart),
                    &few,
                    &many,
                )
            },
        );
    }
    suite.run(
        "decisions_above_budgets_that_are_due_do_not_look_for_them",
        || {
            let [alone, beside] = lab.decisions(&few)?;
            println!("herd decisions {alone} alone, {beside} with {FEW}");
            ensure!(
            beside - alone <= MOST_FOR_DECISIONS,
            "two decisions: {alone} ticks if nobody waits, {beside} beside budgets that are due"
        );
            Ok(())
        },
    );
    Ok(suite.finish())
}

/// Measures with both herds; the figures must be the same within 5 %.
fn compare(
    form: &str,
    mut measure: impl FnMut(&Herd) -> Result<Figures, SetupError>,
    few: &Herd,
    many: &Herd,
) -> TestResult {
    let (small, large) = (measure(few)?, measure(many)?);
    println!("herd {form} {FEW} {small:?}");
    println!("herd {form} {MANY} {large:?}");
    for (what, a, b) in [
        ("longest gap", small.longest_gap, large.longest_gap),
        ("release delay", small.release_delay, large.release_delay),
        ("unused time", small.unused, large.unused),
    ] {
        ensure!(
            20 * a.abs_diff(b) <= a.max(b),
            "{what}: {a} ticks with {FEW}, {b} with {MANY}"
        );
    }
    Ok(())
}

impl Lab {
    /// The high thread runs while the budgets fall due.
    fn while_running(&mut self, herd: &Herd, half_us_apart: u64) -> Result<Figures, SetupError> {
        let at = self.exhaust(herd, half_us_apart)?;
        spin_until(at - 1000 * self.ticks_per_us);
        let watcher = self.make_watcher()?;
        watcher.start()?;
        // It was above this thread: it has used up its budget.
        self.finish(herd, watcher)?;
        ensure_seen(LOG.first() < at && LOG.last() > at);
        Ok(Figures {
            longest_gap: LOG.gaps().map(|gap| gap.length()).max().unwrap_or(0),
            release_delay: 0,
            unused: self.unused(LOG.first(), LOG.last(), 0),
        })
    }

    /// The high thread's own budget falls due with the others.
    fn while_released(&mut self, herd: &Herd, half_us_apart: u64) -> Result<Figures, SetupError> {
        let at = self.exhaust(herd, half_us_apart)?;
        let watcher = self.make_watcher()?;
        // Its budget ends a microsecond after the timer fires, and that microsecond comes back at
        // the head of the next refill: earlier by as much.
        spin_until(at - (HIGH_PERIOD_US - 1) * self.ticks_per_us);
        watcher.start()?;
        spin_until(at + 2 * HIGH_BUDGET_US * self.ticks_per_us);
        self.finish(herd, watcher)?;
        // Among the gaps is the one from its first run to its release.
        let waited = LOG.gaps().find(|gap| gap.from < at && gap.to >= at);
        ensure_seen(waited.is_some());
        let released = waited.map_or(0, |gap| gap.to);
        let others = || LOG.gaps().filter(|&gap| Some(gap) != waited);
        let after = others()
            .filter(|gap| gap.from >= at)
            .map(|gap| gap.length())
            .sum();
        Ok(Figures {
            longest_gap: others().map(|gap| gap.length()).max().unwrap_or(0),
            release_delay: released - at,
            unused: self.unused(released, LOG.last(), after),
        })
    }

    /// Ticks of a signal that wakes a thread of higher priority, and of that one's waiting again: before the herd waits for
    /// its budgets, and when they are due.
    fn decisions(&mut self, herd: &Herd) -> Result<[u64; 2], SetupError> {
        let wake = self.process.resources.notification()?;
        let control = self.boot.sched_control(0).expect("there is a first core");
        let params = SchedParams::new(HIGH_BUDGET_US, HIGH_PERIOD_US);
        let context = self.process.resources.sched_context(params.size_bits())?;
        control.configure(context, params)?;
        let woken = Thread::new(
            &mut self.process,
            ThreadParams::new(HIGH, context),
            move || loop {
                wake.wait();
            },
        )?;
        let authority = self.process.authority();
        authority.set_priority(authority, ABOVE_HERD)?;
        woken.start()?;
        // The first are not warm.
        let measure = || {
            let signals = (0..16).map(|_| {
                let start = ticks();
                wake.signal();
                ticks() - start
            });
            signals.min().unwrap_or(0)
        };
        let alone = measure();
        let at = self.exhaust(herd, 0)?;
        spin_until(at + HIGH_PERIOD_US * self.ticks_per_us);
        let beside = measure();
        self.finish(herd, woken)?;
        Ok([alone, beside])
    }

    /// Starts the herd and waits until all of it has used up its budget; returns the tick at which
    /// the first budget comes back.
    fn exhaust(&mut self, herd: &Herd, half_us_apart: u64) -> Result<u64, SetupError> {
        let authority = self.process.authority();
        let lead = herd.lead(self.ticks_per_us) + 2 * HIGH_PERIOD_US * self.ticks_per_us;
        let at = ticks() + lead;
        herd.start(self.boot, self.ticks_per_us, Due { at, half_us_apart })?;
        authority.set_priority(authority, BELOW_HERD)?;
        // Here again, nobody of the herd has time left.
        authority.set_priority(authority, ABOVE_HERD)?;
        ensure_seen(ticks() + HIGH_PERIOD_US * self.ticks_per_us < at);
        Ok(at)
    }

    /// The high thread, with a whole budget; its time counts from its start on.
    fn make_watcher(&mut self) -> Result<Thread, SetupError> {
        let control = self.boot.sched_control(0).expect("there is a first core");
        let params = SchedParams::new(HIGH_BUDGET_US, HIGH_PERIOD_US).sporadic();
        let context = self.process.resources.sched_context(params.size_bits())?;
        control.configure(context, params)?;
        Thread::new(&mut self.process, ThreadParams::new(HIGH, context), || {
            LOG.watch()
        })
    }

    fn finish(&mut self, herd: &Herd, watcher: Thread) -> Result<(), SetupError> {
        let authority = self.process.authority();
        authority.set_priority(authority, TOP)?;
        watcher.tcb().suspend()?;
        herd.stop()
    }

    /// Ticks of the high thread's budget that it was charged for and did not execute, in its run
    /// from `first` to `last`, in which it executed nothing for `gaps`.
    fn unused(&self, first: u64, last: u64, gaps: u64) -> u64 {
        (HIGH_BUDGET_US * self.ticks_per_us).saturating_sub(last - first - gaps)
    }
}

/// The experiment is what it is meant to be.
fn ensure_seen(holds: bool) {
    assert!(holds, "the high thread did not run when it should have");
}
