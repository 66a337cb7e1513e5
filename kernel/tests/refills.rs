//! The replenishment algorithm by itself, on small parameters: every sequence of runs and pauses.

mod world;

use sandglass_abi::object as types;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::time::refills::Refills;
use sandglass_kernel::time::{Constants, Refill};
use sandglass_kernel::Kernel;
use world::World;

/// A context of `budget` in `period` ticks on a clock of one tick a microsecond, so that the least
/// budget is 20 ticks, which runs in a schedule of its own.
struct Runner<'k> {
    k: &'k Kernel,
    context: Ref<SchedContext>,
    budget: u64,
    period: u64,
    /// Runs so far: from, to.
    runs: Vec<(u64, u64)>,
}

/// What happens next: a pause, and then a run that ends early or not at all.
#[derive(Clone, Copy, Debug)]
struct Step {
    pause: u64,
    run: u64,
    /// The context was out of use, and its refills start anew.
    fresh: bool,
}

impl Runner<'_> {
    fn start(&mut self, max: u8) {
        self.k.core().set_now(1000);
        self.runs.clear();
        Refills::of(self.k, self.context).start(max, self.budget, self.period);
    }

    fn step(&mut self, step: Step) {
        let core = self.k.core();
        let refills = Refills::of(self.k, self.context);
        let ready = refills.head().time.max(core.now());
        core.set_now(ready + step.pause);
        if step.fresh {
            refills.unblock();
        }
        let run = step.run.min(refills.head().amount);
        let from = core.now();
        core.set_now(from + run);
        refills.charge(run);
        self.runs.push((from, from + run));
    }

    fn check(&self, steps: &[Step]) {
        let refills: Vec<Refill> = Refills::of(self.k, self.context).iter().collect();
        let sum: u64 = refills.iter().map(|refill| refill.amount).sum();
        assert_eq!(
            sum, self.budget,
            "budget is neither created nor lost: {refills:?} {steps:?}"
        );
        for pair in refills.windows(2) {
            assert!(
                pair[0].time + pair[0].amount <= pair[1].time,
                "refills overlap: {refills:?} after {steps:?}"
            );
        }
        assert!(
            refills[0].amount >= 20,
            "a head below the least budget: {refills:?} {steps:?}"
        );
        let (last_from, last_to) = *self.runs.last().expect("a run");
        for window_end in [last_from, last_to] {
            let from = window_end.saturating_sub(self.period);
            let used: u64 = self
                .runs
                .iter()
                .map(|run| run.1.min(window_end).saturating_sub(run.0.max(from)))
                .sum();
            assert!(
                used <= self.budget,
                "{used} of {} in the window {from}..{window_end}: {steps:?}",
                self.budget
            );
        }
    }
}

/// Runs every sequence of `depth` of the given steps; returns how many states were checked.
fn explore(runner: &mut Runner, max: u8, choices: &[Step], depth: u32) -> u64 {
    let mut states = 0;
    for sequence in 0..(choices.len() as u64).pow(depth) {
        runner.start(max);
        let mut steps = Vec::new();
        let mut rest = sequence;
        for _ in 0..depth {
            let step = choices[(rest % choices.len() as u64) as usize];
            rest /= choices.len() as u64;
            steps.push(step);
            runner.step(step);
            runner.check(&steps);
            states += 1;
        }
    }
    states
}

#[test]
fn in_every_window_of_a_period_at_most_the_budget_is_used() {
    let mut w = World::new();
    let context = w.make(types::SCHED_CONTEXT, 8);
    let context = w.context(context);
    w.k.constants = Constants::for_clock(1);
    let mut choices = Vec::new();
    for pause in [0, 1, 13, 45] {
        for run in [1, 9, 24, u64::MAX] {
            choices.push(Step {
                pause,
                run,
                fresh: pause > 0,
            });
        }
    }
    let mut states = 0;
    for (budget, period) in [(20, 21), (20, 100), (33, 70), (60, 61)] {
        for max in [2, 3, 8] {
            let runs = Vec::new();
            let mut runner = Runner {
                k: &w.k,
                context,
                budget,
                period,
                runs,
            };
            states += explore(&mut runner, max, &choices, 4);
        }
    }
    assert_eq!(states, 4 * 3 * 16u64.pow(4) * 4);
}

#[test]
fn an_undisturbed_context_gets_its_whole_budget_in_every_period() {
    let mut w = World::new();
    let context = w.make(types::SCHED_CONTEXT, 8);
    let context = w.context(context);
    w.k.constants = Constants::for_clock(1);
    for max in [2, 5, 10] {
        let mut runner = Runner {
            k: &w.k,
            context,
            budget: 50,
            period: 170,
            runs: Vec::new(),
        };
        runner.start(max);
        for _ in 0..100 {
            runner.step(Step {
                pause: 0,
                run: u64::MAX,
                fresh: false,
            });
        }
        for (i, run) in runner.runs.iter().enumerate() {
            let release = 1000 + 170 * i as u64;
            assert_eq!(*run, (release, release + 50), "run {i} with {max} refills");
        }
    }
}
