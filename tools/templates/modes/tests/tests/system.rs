//! The system as a whole.

use system_tests::trace;

#[test]
fn the_critical_task_misses_nothing_because_the_other_gives_way() {
    let run = trace(env!("CARGO_TARGET_TMPDIR"));
    run.assert_printed(&[
        "modes: control needs more: from low to high",
        "modes: idle: from high to low",
        "task 0: 40 deadlines, 40 completed, 0 missed",
        "trace check: 0 violations",
    ]);
}
