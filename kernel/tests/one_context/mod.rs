//! The whole kernel with one small budget: all that can ever happen to it.
//!
//! A thread runs on the budget. Above it the root task, which needs none, interrupts it, lets it
//! wait, wakes it, takes its context away and configures it. Time passes tick by tick; every event
//! goes through the kernel's one entry. As in the exploration of the algorithm (`refills`), the
//! states are finitely many, all are visited, and what was used in the last period is a part of
//! them: by the machine's clock here, not by the kernel's books.

mod machine;
mod state;

use crate::explore::Extent;
use machine::{Machine, Setting};

/// Explores contexts of several sizes; a late timer too.
fn explore_all(sporadic: bool) -> Extent {
    // Least budget, budget, period, refills.
    let mut sizes = vec![(2, 4, 7, 2), (2, 5, 8, 3)];
    let mut latest = 1;
    if crate::explore::long() {
        sizes.extend([(3, 6, 9, 3), (2, 6, 9, 4)]);
        latest = 2;
    }
    let mut machine = Machine::new();
    let mut total = Extent::default();
    for (min, budget, period, max) in sizes {
        for late in 0..=latest {
            total.add(machine.explore(Setting {
                min,
                budget,
                period,
                max,
                sporadic,
                late,
            }));
        }
    }
    println!("whole kernel, sporadic {sporadic}, in all: {total}");
    total
}

/// And nobody who may run is lost, and no budget is: whatever happens, in whatever order.
#[test]
fn in_every_window_of_a_period_a_thread_runs_for_its_budget_at_most() {
    let extent = explore_all(false);
    assert!(extent.states > 80_000, "only {extent}");
}

#[test]
fn in_every_window_of_a_period_a_sporadic_thread_runs_for_its_budget_at_most() {
    let extent = explore_all(true);
    assert!(extent.states > 80_000, "only {extent}");
}
