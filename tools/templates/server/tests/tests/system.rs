//! The system as a whole.

use system_tests::trace;

#[test]
fn clients_get_all_primes_however_often_their_time_runs_out() {
    let run = trace(env!("CARGO_TARGET_TMPDIR"));
    run.assert_printed(&[
        "handler: short ran out: RolledBack",
        "short: 2262 primes, in ",
        "long: 2262 primes, in ",
        "trace check: 0 violations",
    ]);
    assert!(!run.output.contains("short: 2262 primes, in 1 requests"));
}
