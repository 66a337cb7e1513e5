//! Random systems on one to four cores: what holds of every run.

use crate::systems::{build, system, Built, Plan};
use proptest::prelude::*;
use sandglass_oracle::{Configuration, Limits, Oracle, Place, Stretch};
use sandglass_parallel::{Costs, Doing, Interval, Record, US};

/// Length of a run, in ticks.
const LENGTH: u64 = 20_000_000;

/// Whether much is to be tried, which `SANDGLASS_EXPLORE=long` asks for.
fn is_long() -> bool {
    std::env::var("SANDGLASS_EXPLORE").is_ok_and(|extent| extent == "long")
}

/// Steps between two sweeps over the kernel's whole state.
const STEPS_PER_SWEEP: u64 = 199;

/// Runs `plan`, checking the machine after every step, and the kernel's invariants after some.
fn run(plan: &Plan) -> Result<(Built, Record), TestCaseError> {
    let (mut simulation, built) = build(plan);
    let mut steps = 0;
    while simulation.step(LENGTH) {
        simulation.check().map_err(TestCaseError::fail)?;
        steps += 1;
        if steps % STEPS_PER_SWEEP == 0 {
            let swept = built.sweep(simulation.kernel());
            swept.map_err(|violation| TestCaseError::fail(violation.to_string()))?;
        }
    }
    Ok((built, simulation.finish(LENGTH)))
}

/// Clocks start at 0, never go back, and nothing is left out.
fn clocks_go_on(record: &Record) -> Result<(), TestCaseError> {
    for (core, intervals) in record.intervals.iter().enumerate() {
        let mut clock = 0;
        for interval in intervals {
            prop_assert_eq!(interval.core, core);
            prop_assert_eq!(interval.start, clock, "a gap on core {}", core);
            prop_assert!(interval.end > interval.start);
            clock = interval.end;
        }
        prop_assert!(clock >= LENGTH);
        prop_assert_eq!(record.spent(core).all(), clock);
    }
    Ok(())
}

/// The intervals of all cores that `is_wanted`, by start.
fn those(record: &Record, is_wanted: impl Fn(&Doing) -> bool) -> Vec<Interval> {
    let all = record.intervals.iter().flatten().copied();
    let mut those: Vec<_> = all.filter(|interval| is_wanted(&interval.doing)).collect();
    those.sort_by_key(|interval| interval.start);
    those
}

/// No two of these intervals have a time in common.
fn are_apart(intervals: &[Interval]) -> Result<(), TestCaseError> {
    for pair in intervals.windows(2) {
        prop_assert!(pair[0].end <= pair[1].start, "{pair:?}");
    }
    Ok(())
}

/// One core at a time is in the kernel; and whoever waits is let in before any other twice.
fn the_kernel_is_one_and_fair(record: &Record) -> Result<(), TestCaseError> {
    are_apart(&those(record, |doing| matches!(doing, Doing::Kernel(_))))?;
    let most = record.intervals.len() as u64 - 1;
    let (wait, path) = (record.longest_wait(), record.longest_path());
    prop_assert!(wait <= most * path, "waits {wait}, with paths of {path}");
    Ok(())
}

/// No thread, and no context, is on two cores at once.
fn nothing_is_in_two_places(built: &Built, record: &Record) -> Result<(), TestCaseError> {
    for task in built.tasks() {
        let runs = |doing: &Doing| matches!(doing, Doing::User { task: it, .. } if *it == task);
        are_apart(&those(record, runs))?;
        let pays = |doing: &Doing| matches!(doing, Doing::User { payer: it, .. } if *it == task);
        are_apart(&those(record, pays))?;
    }
    Ok(())
}

/// No context lets user code run for more than its budget in any window of its period, wherever
/// it was meanwhile. A sporadic one may start late, and does not start anew: by the path that its
/// release falls into, the wait for its turn, and the path of its release.
fn budgets_are_kept(built: &Built, record: &Record) -> Result<(), TestCaseError> {
    let late = (record.intervals.len() as u64 + 1) * record.longest_path();
    for (made, time) in &built.budgets {
        let most = record.most_in_any_window(made.task, time.period * 1000);
        let allowed = time.budget * 1000 + if time.sporadic { late } else { 0 };
        prop_assert!(most <= allowed, "{most} of {allowed}: {made:?} {time:?}");
    }
    Ok(())
}

/// The oracle for time hears who executed when and on whose context: in user code, serving others, and on
/// the way through the kernel, which is the time of whoever runs next once the clock is read.
fn the_oracle_finds_nothing(built: &Built, record: &Record) -> Result<(), TestCaseError> {
    let mut oracle = Oracle::new(Limits {
        least_budget: 20 * US,
        path: 0,
        turn: 0,
    });
    for (made, time) in &built.budgets {
        let configuration = Configuration {
            budget: time.budget * US,
            period: time.period * US,
            sporadic: time.sporadic,
        };
        oracle.knows(made.task.0 as u64, Some(configuration), 0);
    }
    let costs = Costs::default();
    let mut stretches: Vec<Stretch> = Vec::new();
    for intervals in &record.intervals {
        let mut next = None;
        for interval in intervals.iter().rev() {
            let place = match interval.doing {
                Doing::User { payer, .. } => {
                    next = Some(payer);
                    Place::User
                }
                Doing::Kernel(_) | Doing::Serving => Place::Kernel,
                Doing::Waiting | Doing::Idle => {
                    next = None;
                    continue;
                }
            };
            // What is longer than its path waited for other cores, and then read the clock again.
            let start = match interval.doing {
                Doing::Kernel(way) => interval.end - costs.of(way).min(interval.ticks()),
                _ => interval.start,
            };
            if let Some(payer) = next {
                stretches.push(Stretch {
                    core: interval.core,
                    thread: payer.0 as u64,
                    context: payer.0 as u64,
                    start,
                    end: interval.end,
                    place,
                    checked: false,
                });
            }
            // What came before is the time of whoever ran before.
            if matches!(interval.doing, Doing::Kernel(_)) {
                next = None;
            }
        }
    }
    stretches.sort_by_key(|stretch| stretch.start);
    for stretch in &stretches {
        let found = oracle.ran(stretch);
        prop_assert!(found.is_ok(), "{}", found.unwrap_err());
    }
    Ok(())
}

/// What a computation needs is what it gets, however often it was stopped, and where.
fn work_is_conserved(built: &Built, record: &Record) -> Result<(), TestCaseError> {
    for &(made, ticks) in &built.jobs {
        let (jobs, time) = (record.jobs_of(made.task), record.user_time_of(made.task));
        prop_assert!(
            (jobs * ticks..=(jobs + 1) * ticks).contains(&time),
            "{made:?}: {jobs} jobs of {ticks} in {time}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if is_long() { 10_000 } else { 96 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_holds_of_every_run(plan in system()) {
        let (built, record) = run(&plan)?;
        clocks_go_on(&record)?;
        the_kernel_is_one_and_fair(&record)?;
        nothing_is_in_two_places(&built, &record)?;
        budgets_are_kept(&built, &record)?;
        the_oracle_finds_nothing(&built, &record)?;
        work_is_conserved(&built, &record)?;
        prop_assert_eq!(&record.surprises, &Vec::<String>::new());
    }

    #[test]
    fn the_same_run_twice_is_the_same_to_the_tick(plan in system()) {
        let first = run(&plan)?.1;
        prop_assert_eq!(first, run(&plan)?.1);
    }
}
