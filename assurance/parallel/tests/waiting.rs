//! Long operations of the lowest priority on other cores, beside a task that shares nothing with them: it
//! waits for the kernel as long as (cores - 1) turns to the next preemption point take, at most, and pays
//! for nothing but its own work.

use proptest::prelude::*;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_parallel::{copy, delete, revoke, use_up, Costs, Doing, Path, Way};
use sandglass_parallel::{Interval, Made, Record, Script, Simulation, Step, System, Time, US};

/// The task: a job in every period, of so many ticks, with a system call in the middle.
const PERIOD: u64 = 10_000;
const BUDGET: u64 = 500;
const JOB: u64 = 300 * US;
const PERIODS: u64 = 10;

/// A long operation, over and over.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// Zeroes memory of half of 2^`bits` bytes.
    Zeroes { bits: u64 },
    /// Revokes so many copies.
    Revokes { copies: usize },
    /// Is in the kernel as often as it can, for short.
    Enters,
}

impl Attack {
    fn script(self, system: &mut System) -> Script {
        match self {
            Attack::Zeroes { bits } => {
                let (memory, slot) = system.used_memory(bits);
                Script::forever(vec![use_up(memory, slot, bits), delete(slot)])
            }
            Attack::Revokes { copies } => {
                let original = system.endpoint();
                let slots: Vec<u64> = (0..copies).map(|_| system.slot()).collect();
                let mut steps: Vec<Step> = slots.iter().map(|&slot| copy(original, slot)).collect();
                steps.push(revoke(original));
                Script::forever(steps)
            }
            Attack::Enters => {
                let notification = system.notification();
                Script::forever(vec![Step::signal(notification)])
            }
        }
    }
}

fn attack() -> impl Strategy<Value = Attack> {
    prop_oneof![
        (14..=19u64).prop_map(|bits| Attack::Zeroes { bits }),
        (1..=100usize).prop_map(|copies| Attack::Revokes { copies }),
        Just(Attack::Enters),
    ]
}

/// The victim on core 0, and an attack on each other core.
fn build(attacks: &[Attack], sporadic: bool) -> (Simulation, Made) {
    let mut system = System::new(attacks.len() + 1);
    let wakes = system.notification();
    let time = Time {
        sporadic,
        extra_refills: 4,
        ..Time::new(BUDGET, PERIOD)
    };
    let victim = system.task(200, 0, time, |_| {
        Script::forever(vec![
            Step::Compute(JOB / 2),
            Step::signal(wakes),
            Step::Compute(JOB / 2),
            Step::Done,
            // The rest of the budget is given up: the next job is in the next period.
            Step::yield_rest(),
        ])
    });
    for (i, attack) in attacks.iter().enumerate() {
        let script = attack.script(&mut system);
        system.task(1, i + 1, Time::new(9_000, 10_000), |_| script);
    }
    (system.start(Costs::default(), 1), victim)
}

/// What a turn takes at most once another core waits: the rest of the way to the next preemption point,
/// or out, and the way out.
fn longest_turn() -> u64 {
    let costs = Costs::default();
    let paths = [
        Path::Invocation,
        Path::Signal,
        Path::Yield,
        Path::Timer,
        Path::Look,
    ];
    let in_general = |path| Way {
        path,
        is_straight: false,
    };
    let out = paths
        .map(|path| costs.of(in_general(path)))
        .into_iter()
        .max()
        .unwrap_or(0);
    costs.stretch + out
}

/// Ticks that the victim's core spent for it, in user code and in the kernel.
fn own_work(record: &Record) -> u64 {
    let is_work = |doing: &Doing| matches!(doing, Doing::User { .. } | Doing::Kernel(_));
    let mine = record.intervals[0].iter();
    mine.filter(|interval| is_work(&interval.doing))
        .map(Interval::ticks)
        .sum()
}

/// Ticks that were charged to the victim.
fn paid(simulation: &Simulation, victim: Made) -> u64 {
    let context: Ref<SchedContext> = simulation.context_of(victim.task);
    let k = simulation.kernel();
    context.at(k).take_consumed(k)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nobody_waits_longer_than_a_turn_of_each_other_core(
        attacks in prop::collection::vec(attack(), 1..=3),
        sporadic in any::<bool>(),
    ) {
        let (mut simulation, victim) = build(&attacks, sporadic);
        let end = PERIODS * PERIOD * US;
        while simulation.step(end) {}
        let paid = paid(&simulation, victim);
        let record = simulation.finish(end);
        let (wait, most) = (record.longest_wait(), attacks.len() as u64 * longest_turn());
        prop_assert!(wait <= most, "waits {wait} of {most}");
        prop_assert!(paid <= own_work(&record), "paid {paid} for {}", own_work(&record));
        let jobs: Vec<u64> = record
            .jobs
            .iter()
            .filter(|job| job.task == victim.task)
            .map(|job| job.at)
            .collect();
        prop_assert!(jobs.len() as u64 >= PERIODS - 1, "{} jobs", jobs.len());
        for pair in jobs.windows(2) {
            let late = (pair[1] - pair[0]).saturating_sub(PERIOD * US);
            prop_assert!(late <= 4 * most, "{late} ticks later than a period");
        }
    }
}
