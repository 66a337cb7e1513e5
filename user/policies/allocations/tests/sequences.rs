//! Random sequences of operations, judged after every step.

use allocation_reference::sequence::{judge, Judged};

/// Sequences here; the experiment does 100,000.
const SEQUENCES: u64 = 1_500;
const OPERATIONS: u32 = 60;

/// What is admitted passes the exact test, decisions are the straightforward test's, no deadline is missed whatever
/// tasks do, and nothing is left when all clients are gone.
#[test]
fn whatever_clients_do_what_is_admitted_is_schedulable() {
    let judged =
        (0..SEQUENCES).map(|seed| judge(seed, OPERATIONS).unwrap_or_else(|what| panic!("{what}")));
    let all = judged.fold(Judged::default(), |a, b| a + b);
    // The sequences do something.
    assert!(all.admitted > 10 * SEQUENCES, "{all:?}");
    assert!(
        all.too_much > SEQUENCES && all.refused > SEQUENCES,
        "{all:?}"
    );
    assert!(all.revocations > SEQUENCES, "{all:?}");
}
