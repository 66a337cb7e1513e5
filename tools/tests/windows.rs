//! The traces of systems with partitions and with a time manager: the checker accepts them, and notices when windows and turns
//! are tampered with.

use std::time::Duration;

use sandglass_tools::trace::{self, check, tamper, Traced};
use sandglass_tools::workspace;

/// How much of a system's time is traced, µs.
const TRACED_US: u64 = 100_000;

/// Traces a system, whose trace must be accepted.
fn accepted(system: &str) -> (Traced, check::Verdict) {
    let path = workspace::root().join(system);
    let options = trace::Options {
        end_us: Some(TRACED_US),
        timeout: Some(Duration::from_secs(240)),
        ..Default::default()
    };
    let traced = trace::trace(&path, &options).unwrap();
    let verdict = check::check_with(&traced.history, &traced.expected);
    assert!(verdict.violations.is_empty(), "{:?}", verdict.violations);
    (traced, verdict)
}

#[test]
fn windows_by_deadlines_are_accepted_and_tampering_is_noticed() {
    let (traced, verdict) = accepted("systems/examples/partitions/SYSTEM.toml");
    // Two windows of 2 ms and one of 4 in 10 ms.
    assert!(verdict.looked.partition_windows > 20, "{verdict:?}");
    let unnoticed = tamper::windows::unnoticed(&traced.history, &traced.expected);
    assert_eq!(unnoticed, Vec::<String>::new());
}

#[test]
fn windows_of_frames_are_accepted_and_tampering_is_noticed() {
    let (traced, verdict) = accepted("systems/examples/partitions/FRAMES.toml");
    assert!(verdict.looked.partition_windows > 30, "{verdict:?}");
    let unnoticed = tamper::windows::unnoticed(&traced.history, &traced.expected);
    assert_eq!(unnoticed, Vec::<String>::new());
}

#[test]
fn turns_of_a_time_manager_are_accepted_and_tampering_is_noticed() {
    let (traced, verdict) = accepted("systems/examples/time-manager/SYSTEM.toml");
    assert!(verdict.looked.turns > 20, "{verdict:?}");
    let unnoticed = tamper::turns::unnoticed(&traced.history);
    assert_eq!(unnoticed, Vec::<String>::new());
}

#[test]
fn windows_in_supplied_time_are_accepted_and_tampering_is_noticed() {
    let (traced, verdict) = accepted("systems/examples/subsystems/SYSTEM.toml");
    // Three in each 15 ms, of 90 at least.
    assert!(verdict.looked.partition_windows >= 15, "{verdict:?}");
    assert!(verdict.looked.turns > 40, "{verdict:?}");
    let unnoticed = tamper::supplied::unnoticed(&traced.history, &traced.expected);
    assert_eq!(unnoticed, Vec::<String>::new());
}
