//! The replenishment algorithm by itself: all that can ever become of small budgets.
//!
//! The shipped algorithm (`Refills`, on a hosted kernel with a least budget of few ticks) is driven
//! through every sequence of what the kernel may do with it, to the fixed point: the states are
//! finite, since only the distance of a refill's time from now matters, and all are visited. A
//! state has the refills and what was used in the last period, so that the promises about windows
//! of time are promises about single states.
//!
//! The history is kept in the time of the refills: a tick that is used counts at the time of the
//! head that it was taken from. For a constant-bandwidth context, and for a sporadic one that runs
//! as soon as it may, that is the time when it is used, exactly: the head in use starts now. A
//! sporadic context that is kept from running by others, and only that, uses its refills late
//! (04, section 5.4). The book tells what that means (*Temporal properties*).

mod algorithm;

use crate::explore::{explore, Extent};
use algorithm::{Algorithm, Kind, Parameters, MOST};
use sandglass_abi::object as types;
use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_kernel::arch::abi::clock::UNIT_US;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::{Refill, SchedContext};
use sandglass_kernel::object::Constants;
use sandglass_kernel::time::refills::Refills;
use sandglass_testkit::world::World;

/// A world of one context.
fn world() -> (World, Ref<SchedContext>) {
    let mut w = World::new();
    let slot = w.make(types::SCHED_CONTEXT, 8);
    let context = w.context(slot);
    (w, context)
}

/// Explores a context of each of the `sizes`, which are least budget, budget and period, with from
/// 2 to 5 refills.
fn explore_sizes(kind: Kind, sizes: &[(u64, u64, u64)], overrun: impl Fn(u64) -> u64) -> Extent {
    let (mut w, context) = world();
    let mut total = Extent::default();
    for &(min, budget, period) in sizes {
        w.k.constants = Constants::for_clock(UNIT_US, MIN_BUDGET_US).with_min_budget(min);
        for max in 2..=MOST as u8 {
            let parameters = [Parameters {
                budget,
                period,
                max,
            }];
            total.add(explore_one(&w, context, kind, &parameters, overrun(min)));
        }
    }
    println!("{kind:?} in all: {total}");
    total
}

/// Explores one context from when it is configured with the first of `parameters`.
fn explore_one(
    w: &World,
    context: Ref<SchedContext>,
    kind: Kind,
    parameters: &[Parameters],
    overrun: u64,
) -> Extent {
    let mut system = Algorithm::new(&w.k, context, kind, parameters, overrun);
    let first = system.configured();
    let extent = explore(&mut system, first);
    let min = w.k.constants.min_budget();
    println!("{kind:?}, least budget {min}, overrun {overrun}, {parameters:?}: {extent}");
    extent
}

/// Least budget, budget and period of the contexts that are explored; and of more of them in a
/// long run.
fn sizes(usual: &[(u64, u64, u64)]) -> Vec<(u64, u64, u64)> {
    let mut sizes = usual.to_vec();
    if crate::explore::long() {
        sizes.extend([(1, 5, 12), (2, 6, 12), (4, 9, 13), (1, 6, 14), (5, 12, 17)]);
    }
    sizes
}

const USUAL: [(u64, u64, u64); 5] = [(1, 3, 7), (1, 4, 10), (2, 6, 7), (2, 6, 12), (3, 7, 11)];

/// This charge has a way of its own in the kernel.
#[test]
fn what_is_used_of_the_only_refill_comes_back_with_a_rest_below_the_least_budget() {
    let (mut w, context) = world();
    let (least, budget, period) = (3, 10, 25);
    w.k.constants = Constants::for_clock(1, MIN_BUDGET_US).with_min_budget(least);
    let latest = w.k.constants.max_release();
    for time in [0, 1000, latest - 1, latest, latest + 1] {
        for used in 0..=budget {
            let refills = Refills::of(&w.k, context);
            w.k.core().set_now(&w.k, time);
            refills.start(2, budget, period);
            refills.charge(used);
            let left = budget - used;
            let expected = if used == 0 || time >= latest {
                vec![Refill::new(budget, time)]
            } else if left < least {
                vec![Refill::new(budget, time + period - left)]
            } else {
                vec![
                    Refill::new(left, time + used),
                    Refill::new(used, time + period),
                ]
            };
            let found: Vec<Refill> = refills.iter().collect();
            assert_eq!(found, expected, "{used} of the refill at {time}");
        }
    }
}

#[test]
fn in_every_window_of_a_period_at_most_the_budget_is_used() {
    let extent = explore_sizes(Kind::ConstantBandwidth, &sizes(&USUAL), |_| 0);
    assert!(extent.states > 80_000, "only {extent}");
}

#[test]
fn a_sporadic_context_that_runs_when_it_may_keeps_to_every_window() {
    let extent = explore_sizes(Kind::Sporadic { late: 0 }, &sizes(&USUAL), |_| 0);
    assert!(extent.states > 80_000, "only {extent}");
}

/// The kernel's path may exceed the head by almost the least budget, again and again: windows
/// exceed the budget by one such path.
#[test]
fn what_the_kernel_overruns_is_repaid() {
    let usual = [(2, 6, 7), (2, 5, 11), (3, 7, 11)];
    for kind in [Kind::ConstantBandwidth, Kind::Sporadic { late: 0 }] {
        let extent = explore_sizes(kind, &sizes(&usual), |min| min - 1);
        assert!(extent.states > 40_000, "only {extent}");
    }
}

/// A sporadic context that others keep from running keeps the times of its refills: windows of
/// these times hold.
#[test]
fn refills_that_are_used_late_keep_to_windows_of_their_own_time() {
    let usual = [(1, 3, 7), (2, 6, 7), (2, 4, 9)];
    let extent = explore_sizes(Kind::Sporadic { late: 25 }, &usual, |_| 0);
    assert!(extent.states > 50_000, "only {extent}");
}

/// Whenever a context of a runnable thread is configured, with other parameters or the same: in
/// windows of the shorter period there is no more than the larger budget, and in those that see no
/// change no more than the budget.
#[test]
fn configuring_a_context_in_use_creates_no_budget() {
    let (mut w, context) = world();
    w.k.constants = Constants::for_clock(UNIT_US, MIN_BUDGET_US).with_min_budget(1);
    let mut total = Extent::default();
    let mut pairs = vec![
        [(3, 6, 3), (3, 6, 2)],
        [(4, 6, 5), (2, 4, 2)],
        [(2, 5, 2), (4, 5, 4)],
    ];
    if crate::explore::long() {
        pairs.extend([[(4, 8, 3), (4, 8, 2)], [(3, 8, 4), (5, 8, 2)]]);
    }
    for pair in pairs {
        let parameters = pair.map(|(budget, period, max)| Parameters {
            budget,
            period,
            max,
        });
        for kind in [Kind::ConstantBandwidth, Kind::Sporadic { late: 0 }] {
            total.add(explore_one(&w, context, kind, &parameters, 0));
        }
    }
    println!("configured in use, in all: {total}");
    assert!(total.states > 100_000, "only {total}");
}

#[test]
fn an_undisturbed_context_gets_its_whole_budget_in_every_period() {
    let (mut w, context) = world();
    w.k.constants = Constants::for_clock(UNIT_US, MIN_BUDGET_US);
    let core = w.k.core();
    let refills = Refills::of(&w.k, context);
    for max in [2, 5, 10] {
        core.set_now(&w.k, 1000);
        refills.start(max, 50, 170);
        for i in 0..100 {
            core.set_now(&w.k, core.now().max(refills.head().time));
            refills.unblock();
            let begin = core.now();
            let amount = refills.head().amount;
            core.set_now(&w.k, begin + amount);
            refills.charge(amount);
            assert_eq!(
                (begin, amount),
                (1000 + 170 * i, 50),
                "period {i} with {max} refills"
            );
        }
    }
}

/// What 04, section 5.4, means for a sporadic context that others keep from running: it is owed a
/// budget for every period that begins, and takes them in a row.
#[test]
fn a_sporadic_context_that_was_kept_from_running_catches_up() {
    let (mut w, context) = world();
    w.k.constants = Constants::for_clock(UNIT_US, MIN_BUDGET_US).with_min_budget(2);
    let (budget, period) = (4, 10);
    for late in 0..60 {
        let core = w.k.core();
        let refills = Refills::of(&w.k, context);
        let release = core.now();
        refills.start(3, budget, period);
        core.set_now(&w.k, release + late);
        let mut used = 0;
        while refills.ready() {
            let amount = refills.head().amount;
            used += amount;
            core.set_now(&w.k, core.now() + amount);
            refills.charge(amount);
            let begun = (core.now() - release).div_ceil(period);
            assert!(used <= budget * begun, "{used} in {begun} periods");
        }
        // It has caught up when it has had the budget of every period that has begun.
        let begun = (core.now() - release).div_ceil(period);
        assert_eq!(used, budget * begun, "kept from running for {late} ticks");
        core.set_now(&w.k, core.now() + 1000);
    }
}
