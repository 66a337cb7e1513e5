//! The system as a whole.

use system_tests::trace;

#[test]
fn no_deadline_is_missed_and_the_oven_gets_hot() {
    let run = trace(env!("CARGO_TARGET_TMPDIR"));
    run.assert_printed(&[
        "control: 60 jobs, 0 late; the oven has 180 degrees",
        "trace check: 0 violations",
    ]);
}
