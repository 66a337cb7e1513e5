//! `log`, `restart`, `watchdog`: what components are given, and what is refused.

use sandglass_description::policy::log::Log as Sources;
use sandglass_description::{MemorySource, Restart, LOG_BYTES, LOG_LEVEL};

use super::{described, one_finding, packed};

/// A server and its client.
const RIGHT: &str = r#"
name = "test"
machine = { memory = 64 }

[[component]]
name = "pump"
executable = "hello-shouter"
priority = 100
passive = true
log = "debug"
restart = "on-fault"
watchdog = "20ms"

[[component]]
name = "client"
executable = "hello-visitor"
priority = 90
budget = "2ms"
period = "10ms"
exit = true

[[endpoint]]
name = "work"
server = "pump"
clients = [{ component = "client" }]
"#;

/// With `old` replaced by `new` in a right description, exactly this is said.
#[track_caller]
fn assert_found(old: &str, new: &str, said: &[&str]) {
    one_finding(RIGHT, old, new, said);
}

#[test]
fn a_component_that_logs_has_memory_and_a_level_and_the_writer_starts_first() {
    let description = described(RIGHT);
    let system = &description.system;
    let names: Vec<&str> = system.components.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["log-writer", "pump", "client"]);
    let sources: Sources = packed(&description);
    assert_eq!(sources.sources, ["launcher", "pump"]);
    let log = system.log.unwrap();
    assert_eq!(log.writer, 0);
    let memory = &system.memory[log.memory as usize];
    assert_eq!(memory.name, "log.launcher");
    assert_eq!(memory.source, MemorySource::New { bytes: LOG_BYTES });
    let pump = &system.components[1];
    let level = pump.parameters.iter().find(|p| p.name == LOG_LEVEL);
    assert_eq!(level.unwrap().value, 4);
    let signal = pump
        .grants
        .iter()
        .find(|grant| grant.name == "log")
        .unwrap();
    assert_eq!((signal.badge, signal.rights), (1, 1));
    let client = &system.components[2];
    assert!(client.grants.iter().all(|grant| grant.name != "log"));
    let writer = &system.components[0];
    assert_eq!(writer.threads[0].priority, 1);
    assert!(writer.console);
}

#[test]
fn a_system_without_a_log_has_no_writer() {
    let description = described(&RIGHT.replace("log = \"debug\"\n", ""));
    assert_eq!(description.system.log, None);
    assert_eq!(description.system.components.len(), 2);
}

#[test]
fn the_writer_has_the_described_reservation() {
    let log = "[log]\npriority = 60\nbudget = \"1ms\"\nperiod = \"20ms\"\n";
    let text = RIGHT.replace(
        "[[component]]\nname = \"pump\"",
        &format!("{log}\n[[component]]\nname = \"pump\""),
    );
    let writer = &described(&text).system.components[0].threads[0];
    let time = writer.time;
    assert_eq!(
        (writer.priority, time.budget_us, time.period_us),
        (60, 1_000, 20_000)
    );
}

#[test]
fn levels_and_policies_are_words() {
    assert_found("\"debug\"", "\"loud\"", &["unknown value `loud`"]);
    assert_found("\"on-fault\"", "\"often\"", &["unknown value `often`"]);
}

#[test]
fn what_is_written_is_what_happens() {
    let of = |text: &str| {
        let system = described(text).system;
        let index = system.components.iter().position(|c| c.name == "pump");
        let pump = &system.components[index.unwrap()];
        (pump.restart, pump.watchdog)
    };
    let (restart, watchdog) = of(RIGHT);
    let expected = Restart {
        always: false,
        times: 3,
        within_us: 10_000_000,
    };
    assert_eq!(restart, Some(expected));
    assert_eq!(watchdog.unwrap().period_us, 20_000);
    let limit = "restart = \"always\"\nrestart-limit = { times = 7, within = \"1s\" }";
    let (restart, _) = of(&RIGHT.replace("restart = \"on-fault\"", limit));
    let expected = Restart {
        always: true,
        times: 7,
        within_us: 1_000_000,
    };
    assert_eq!(restart, Some(expected));
    let (restart, watchdog) = of(&RIGHT.replace("on-fault", "never"));
    assert!(restart.is_none() && watchdog.is_some());
}

#[test]
fn limits_and_periods_have_bounds() {
    let limit = |times: u32| {
        format!("\"on-fault\"\nrestart-limit = {{ times = {times}, within = \"1s\" }}")
    };
    assert_found(
        "\"on-fault\"",
        &limit(0),
        &["number of restarts 0", "must be from 1 to 100"],
    );
    assert_found("\"on-fault\"", &limit(101), &["must be from 1 to 100"]);
    assert_found(
        "\"20ms\"",
        "\"5ms\"",
        &["a watchdog of 5000 µs", "at least 8000 µs"],
    );
    assert_found(
        "restart = \"on-fault\"",
        "restart-limit = { times = 1, within = \"1s\" }",
        &["a limit of restarts, and no restarts", "add `restart"],
    );
}

#[test]
fn what_ends_the_system_is_not_restarted_always() {
    let always = "exit = true\nrestart = \"always\"";
    assert_found(
        "exit = true",
        always,
        &["ends when this component ends", "\"on-fault\""],
    );
}

#[test]
fn whoever_is_another_components_business_is_not_restarted() {
    let cases = [
        (
            "exit = true",
            "exit = true\ncontrols = [\"pump\"]",
            "another component controls it",
        ),
        (
            "exit = true",
            "exit = true\nrevokes = [\"pump\"]",
            "another component may take its capabilities away",
        ),
        (
            "watchdog = \"20ms\"",
            "fault-handler = \"client\"",
            "another component handles what happens to it",
        ),
        (
            "[[endpoint]]\nname = \"work\"",
            "[[resource]]\nname = \"work\"\nprotocol = \"inheritance\"",
            "its clients reach it through a proxy",
        ),
    ];
    for (old, new, why) in cases {
        let report = super::findings(RIGHT, old, new).to_string();
        assert!(report.contains("`pump` cannot be restarted"), "{report}");
        assert!(report.contains(why), "{report}");
    }
}
