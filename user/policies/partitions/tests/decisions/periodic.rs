//! Windows by period and budget beside the simulation, and what is promised of them.

use sandglass_partitions::periodic::{Order, Parameters, Periodic, Queues, Reservation};
use sandglass_partitions::{PartitionId, Refusal, Turn};

use crate::simulation::{Outcome, Partitions};
use sandglass_partitions::queue::Owned;

/// The scheduler, with its memory.
struct Memory {
    releases: Owned,
    ready: Owned,
    reservations: Vec<Reservation>,
}

impl Memory {
    fn new(parameters: &[Parameters], slots: usize) -> Self {
        Self {
            releases: Owned::new(slots, parameters.len()),
            ready: Owned::new(slots.max(256), parameters.len()),
            reservations: parameters.iter().copied().map(Reservation::new).collect(),
        }
    }

    fn scheduler(
        &mut self,
        order: Order,
        granule: u64,
        start: u64,
    ) -> Result<Periodic<'_>, Refusal> {
        let queues = Queues {
            releases: self.releases.lend(),
            ready: self.ready.lend(),
        };
        Periodic::new(order, granule, start, &mut self.reservations, queues)
    }
}

fn outcome(turn: Turn) -> Outcome {
    Outcome {
        window: turn
            .window
            .map(|window| (window.partition.0, window.number, window.until)),
        wake_at: turn.wake_at,
        overrun: turn
            .overrun
            .map(|overrun| (overrun.partition.0, overrun.ticks)),
        jobs: turn.jobs,
    }
}

const EDF: Order = Order::EarliestDeadline;

/// With deadlines equal to periods, and everything released at the start.
fn implicit(period: u64, budget: u64) -> Parameters {
    Parameters {
        period,
        deadline: period,
        budget,
        ..Parameters::default()
    }
}

fn any(random: &mut fastrand::Rng, granule: u64) -> Parameters {
    let period = random.u64(1..=64);
    let deadline = random.u64(1..=period);
    // Few priorities, so that some are equal; small budgets as often as large ones.
    let budget = random.u64(1..=deadline * granule);
    Parameters {
        period,
        deadline,
        offset: random.u64(0..=64) * random.u64(0..=1),
        budget: random.u64(1..=budget),
        priority: random.u8(100..104),
    }
}

/// When somebody looks: on time mostly, but also early, late, and much too late.
fn next_look(random: &mut fastrand::Rng, now: u64, wake_at: u64) -> u64 {
    match random.u8(0..16) {
        0 => now,
        1 | 2 => random.u64(now..=wake_at),
        3 | 4 => wake_at + random.u64(0..4),
        5 => wake_at + random.u64(0..100) * random.u64(0..=1),
        _ => wake_at,
    }
}

fn equal_the_simulation(configurations: u64) {
    for seed in 0..configurations {
        let mut random = fastrand::Rng::with_seed(seed);
        let granule = random.u64(1..=5);
        let parameters: Vec<_> = (0..random.usize(1..=12))
            .map(|_| any(&mut random, granule))
            .collect();
        let order = [EDF, Order::FixedPriority][random.usize(0..2)];
        let start = random.u64(0..1000);
        let mut memory = Memory::new(&parameters, 64);
        let mut scheduler = memory.scheduler(order, granule, start).unwrap();
        let mut simulation = Partitions::new(order, granule, start, &parameters);
        let mut now = start;
        for look in 0..200 {
            let decided = outcome(scheduler.decide(now));
            let expected = simulation.decide(now);
            assert_eq!(
                decided, expected,
                "seed {seed}, look {look} at {now}: {parameters:?}"
            );
            now = next_look(&mut random, now, decided.wake_at.unwrap());
        }
    }
}

#[test]
fn every_decision_equals_the_simulation() {
    equal_the_simulation(1_000);
}

#[test]
#[ignore = "ten times as long: for changes of the scheduler"]
fn every_decision_of_many_equals_the_simulation() {
    equal_the_simulation(10_000);
}

/// Figure 10: T = 3, 4, 5 and Θ = 1, 1, 2. The third instance of the third is not preempted at 12, when the first is
/// released with the same deadline, 15.
#[test]
fn the_trace_of_figure_10_is_the_papers() {
    let parameters = [implicit(3, 1), implicit(4, 1), implicit(5, 2)];
    let mut memory = Memory::new(&parameters, 64);
    let mut scheduler = memory.scheduler(EDF, 1, 0).unwrap();
    let mut simulation = Partitions::new(EDF, 1, 0, &parameters);
    let trace: String = (0..60)
        .map(|now| {
            let decided = outcome(scheduler.decide(now));
            assert_eq!(decided, simulation.decide(now), "at {now}");
            decided
                .window
                .map_or(' ', |(index, ..)| ['1', '2', '3'][index])
        })
        .collect();
    assert!(trace.starts_with("123312133213312133"), "{trace}");
    // In a hyperperiod: 20, 15 and 12 windows.
    let units = ['1', '2', '3', ' '].map(|of| trace.chars().filter(|unit| *unit == of).count());
    assert_eq!(units, [20, 15, 24, 1]);
    for index in 0..3 {
        assert_eq!(scheduler.unfinished(PartitionId(index)), 0);
    }
}

/// 1,000 s in µs, looked at late by up to 50 µs: every release is where it was to be.
#[test]
fn nothing_drifts_in_a_thousand_seconds() {
    const PERIODS: [u64; 9] = [11, 12, 14, 17, 19, 21, 23, 25, 28];
    let parameters = PERIODS.map(|period| implicit(period, 1000));
    let mut memory = Memory::new(&parameters, 64);
    let start = 123;
    let mut scheduler = memory.scheduler(EDF, 1000, start).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut now = start;
    let mut windows = 0u64;
    while now < start + 1_000_000_000 {
        let turn = scheduler.decide(now);
        if let Some(window) = turn.window {
            let period = PERIODS[window.partition.0] * 1000;
            assert_eq!(window.number, (now - start) / period);
            windows += 1;
        }
        now = turn.wake_at.unwrap() + random.u64(0..50);
    }
    assert!(windows > 500_000, "{windows}");
    for index in 0..PERIODS.len() {
        assert_eq!(scheduler.unfinished(PartitionId(index)), 0);
    }
}

/// A switch that comes 3 ticks late costs the partition that had these ticks, and nobody else.
#[test]
fn an_overrun_is_charged_to_whoever_overran() {
    let parameters = [implicit(10, 4), implicit(20, 6)];
    let mut memory = Memory::new(&parameters, 64);
    let mut scheduler = memory.scheduler(EDF, 1, 0).unwrap();
    let window = |turn: Turn| outcome(turn).window;
    assert_eq!(window(scheduler.decide(0)), Some((0, 0, 4)));
    let late = scheduler.decide(7);
    assert_eq!(outcome(late).overrun, Some((0, 3)));
    assert_eq!(window(late), Some((1, 0, 13)), "its whole budget");
    assert_eq!(scheduler.debt(PartitionId(0)), 3);
    // At 10 the first has the same deadline, and comes behind.
    assert_eq!(window(scheduler.decide(10)), Some((1, 0, 13)));
    assert_eq!(window(scheduler.decide(13)), Some((0, 1, 14)), "1 of 4");
    assert_eq!(window(scheduler.decide(14)), None);
    assert_eq!(window(scheduler.decide(20)), Some((0, 2, 24)), "all of it");
}

/// Who overran by more than a whole budget has none, until it is paid.
#[test]
fn a_debt_that_is_larger_than_the_budget_lasts() {
    let parameters = [implicit(10, 2)];
    let mut memory = Memory::new(&parameters, 64);
    let mut scheduler = memory.scheduler(EDF, 1, 0).unwrap();
    let mut at = |now| outcome(scheduler.decide(now)).window;
    assert_eq!(at(0), Some((0, 0, 2)));
    // 5 too many: budgets 1 and 2 pay 4 of them, and 3 the last one.
    assert_eq!([at(7), at(10), at(20)], [None; 3]);
    assert_eq!(at(30), Some((0, 3, 31)));
}

#[test]
fn what_is_out_of_range_is_refused() {
    let good = implicit(10, 4);
    let refused = |parameters: Parameters| {
        let mut memory = Memory::new(&[good, parameters], 64);
        let scheduler = memory.scheduler(EDF, 2, 0);
        scheduler.err().map(|refusal| refusal.to_string())
    };
    assert_eq!(refused(good), None);
    let say = |what: &str| Some(format!("partition 1: {what}"));
    assert_eq!(
        refused(Parameters { period: 65, ..good }),
        say("the period must be from 1 to 64 granules")
    );
    assert_eq!(
        refused(Parameters { offset: 65, ..good }),
        say("the offset must be at most 64 granules")
    );
    assert_eq!(
        refused(Parameters {
            deadline: 11,
            ..good
        }),
        say("the deadline must be from 1 to 10 granules, the period")
    );
    assert_eq!(
        refused(Parameters { budget: 21, ..good }),
        say("the budget must be from 1 to 20 ticks, the deadline")
    );
}
