//! The system as a whole.

use system_tests::trace;

#[test]
fn no_job_is_late() {
    let run = trace(env!("CARGO_TARGET_TMPDIR"));
    run.assert_printed(&[
        "task 0: 0 jobs late",
        "task 1: 0 jobs late",
        "trace check: 0 violations",
    ]);
}
