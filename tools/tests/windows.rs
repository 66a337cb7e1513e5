//! The traces of systems with partitions, with a time manager, and with a gate: the checker accepts them, and notices when
//! windows, turns and requests are tampered with.

use std::time::Duration;

use sandglass_abi::trace::Gift;
use sandglass_tools::qemu::End;
use sandglass_tools::system::{self, Source};
use sandglass_tools::trace::history::History;
use sandglass_tools::trace::record::Event;
use sandglass_tools::trace::windows;
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
    let traced = trace::trace(&path, None, &options).unwrap();
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
    // Both subsystems ask a key server, and so does somebody who never stops.
    assert!(verdict.looked.requests > 40, "{verdict:?}");
    let mut unnoticed = tamper::gates::unnoticed_alone(&traced.history, &traced.expected);
    unnoticed.extend(tamper::gates::unnoticed_lengths(
        &traced.history,
        &traced.expected,
    ));
    assert_eq!(unnoticed, Vec::<String>::new());
}

/// The gate's clients are on four cores, and two of them lose their budgets.
#[test]
fn requests_at_a_gate_are_accepted_and_tampering_is_noticed() {
    let (traced, verdict) = accepted("systems/examples/mc-ipc/SYSTEM.toml");
    assert!(verdict.looked.requests > 40, "{verdict:?}");
    let unnoticed = tamper::gates::unnoticed(&traced.history, &traced.expected);
    assert_eq!(unnoticed, Vec::<String>::new());
}

/// Two partitions: one has a request of so many steps to a server after the other, and one has three jobs, with a short
/// request in each if it is among the `others` who may ask. `of_server` and `handler` are what is described of the server
/// besides.
fn shared(steps: u64, others: &str, of_server: &str, handler: &str) -> Traced {
    let text = format!(
        r#"
name = "shared"
machine = {{ memory = 64 }}

[partitions]
name = "windows"
order = "deadlines"
priority = 150
finish = "100us"

[[partition]]
name = "long"
period = "5ms"
budget = "2ms"
threads = [{{ component = "asks", kind = "best-effort" }}]

[[partition]]
name = "short"
period = "10ms"
budget = "4ms"
threads = [{{ component = "works", kind = "periodic", priority = 1, period = "10ms" }}]

[[component]]
name = "asks"
executable = "partitions-member"
priority = 100
parameters = {{ attack = 1, partition = 0, steps = {steps} }}

[[component]]
name = "works"
executable = "partitions-member"
priority = 100
parameters = {{ row = 0, jobs = 3, work = 1_000, request = 1_000 }}

[[component]]
name = "server"
executable = "partitions-member"
priority = 120
passive = true
parameters = {{ serve = 1 }}
{of_server}
{handler}

[[endpoint]]
name = "server"
server = "server"
clients = [{{ component = "asks", badge = 1 }}{others}]

[[component]]
name = "judge"
executable = "partitions-member"
priority = 50
budget = "5ms"
period = "5ms"
console = true
exit = true
parameters = {{ rows = 1, least = 60_000 }}

[[notification]]
name = "done"
waiter = "judge"
signallers = [{{ component = "works", badge = 1 }}]

[[memory]]
name = "board"
size = "4KiB"
maps = [{{ component = "judge", rights = "read-write" }}, {{ component = "works", rights = "read-write" }}]
"#
    );
    let source = Source {
        arch: None,
        name: "shared".to_owned(),
        text,
        folder: workspace::root().to_owned(),
    };
    let options = trace::Options {
        end_us: Some(2_000_000),
        timeout: Some(Duration::from_secs(240)),
        ..Default::default()
    };
    let description = system::check(&source).unwrap_or_else(|report| panic!("{report}"));
    let traced = trace::trace_checked(description, &options).unwrap();
    let verdict = check::check_with(&traced.history, &traced.expected);
    assert!(verdict.violations.is_empty(), "{:?}", verdict.violations);
    assert_eq!(traced.end, End::Guest(0), "{}", traced.console);
    assert!(traced.console.contains("row 0 3 "), "{}", traced.console);
    traced
}

/// Of each window of the partition `long` that is over: whether its context is lent at the end of it.
fn lent_at_the_ends(history: &History) -> Vec<bool> {
    let windows = windows::of(history);
    let (_, over) = windows.split_last().unwrap();
    let own = over
        .iter()
        .filter(|window| history.name(window.context) == "long");
    own.map(|window| {
        let before = history.records.iter().rev();
        let before = before.skip_while(|record| record.time > window.to);
        let mut lent = before.filter_map(|record| match record.event {
            Event::Donate {
                context,
                gift: Gift::Call,
                ..
            } if context == window.context => Some(true),
            Event::Return { context, .. } | Event::Donate { context, .. }
                if context == window.context =>
            {
                Some(false)
            }
            _ => None,
        });
        lent.next().unwrap_or(false)
    })
    .collect()
}

/// What is in service at the end of each window never ends by itself.
#[test]
fn a_request_that_is_not_over_in_time_is_rolled_back_before_the_next_window() {
    let handler = r#"
[[component.thread]]
name = "handler"
priority = 130
budget = "10ms"
period = "10ms"
ready = true

[[timeout-policy]]
server = "server"
handler = "server/handler"
default = "rollback"
"#;
    let others = r#", { component = "works", badge = 2 }"#;
    let traced = shared(1 << 40, others, "timeout-handler = \"server\"", handler);
    let lent = lent_at_the_ends(&traced.history);
    assert!(lent.len() >= 10 && !lent.contains(&true), "{lent:?}");
}

/// It takes longer than a window: so it is in service at the ends of several, in a row. Nobody else asks: the server is free in
/// windows of others only after requests that end in the 100 µs after a window, and whether any does depends on the phase.
#[test]
fn without_a_handler_a_request_waits_for_its_partition_s_next_window() {
    // About three milliseconds.
    let traced = shared(600_000, "", "", "");
    let lent = lent_at_the_ends(&traced.history);
    assert!(lent.windows(2).any(|two| two == [true, true]), "{lent:?}");
}
