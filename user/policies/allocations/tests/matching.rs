//! Theorem 2: allowances that match lose nothing.

use allocation_reference::{exact, matching, tasks};
use fastrand::Rng;
use sandglass_allocations::Task;

const SETS: u64 = 1_500;
fn random_set(rng: &mut Rng) -> Vec<Task> {
    (0..rng.usize(1..=matching::TASKS))
        .map(|_| tasks::small(rng))
        .collect()
}

/// Whatever the exact test admits is admitted, in any hierarchy of allocations that match; what it refuses is
/// refused.
#[test]
fn whatever_the_exact_test_admits_is_admitted_when_allowances_match() {
    let mut rng = Rng::with_seed(1);
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..SETS {
        let tasks = random_set(&mut rng);
        let is_exact =
            matching::steps_needed(&tasks).is_some_and(|steps| steps <= matching::STEPS as u64);
        let is_schedulable = exact::is_schedulable(&tasks);
        if is_schedulable && !is_exact {
            continue;
        }
        let outcome = matching::admit(&mut rng, &tasks);
        assert_eq!(outcome.is_ok(), is_schedulable, "{tasks:?}: {outcome:?}");
        admitted += u32::from(is_schedulable);
        refused += u32::from(!is_schedulable);
    }
    assert!(admitted > 400 && refused > 400, "{admitted} and {refused}");
}
