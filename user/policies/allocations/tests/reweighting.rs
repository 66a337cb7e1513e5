//! How long a removed reservation counts (operation A3).

use allocation_reference::reweighting::{replace, Rule};

const SEEDS: u64 = 300;
const TIMES: u32 = 60;

fn misses(rule: Rule) -> usize {
    (0..SEEDS)
        .filter_map(|seed| replace(seed, TIMES, rule))
        .count()
}

#[test]
fn reservations_that_are_replaced_on_a_full_processor_keep_nobody_from_a_deadline() {
    assert_eq!(misses(Rule::Idle), 0);
}

/// Why the manager asks for more than the paper does: with deadlines below periods, what a removed reservation used
/// before its deadline and what a new one asks for after it are too much together.
#[test]
fn the_server_deadline_alone_is_not_enough() {
    assert!(misses(Rule::Deadline) > 0);
}
