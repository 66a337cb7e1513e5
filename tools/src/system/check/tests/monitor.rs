//! `[monitor]`: what a monitor is told and given, and what is refused.

use sandglass_description::monitor::{status, Consumption, Monitor};
use sandglass_description::{MemorySource, Object};

use super::{described, one_finding, packed, RIGHT};

/// The whole system, and who looks at it.
fn watched(monitor: &str) -> String {
    format!(
        "{RIGHT}
[[component]]
name = \"watch\"
executable = \"monitor\"
priority = 5
budget = \"1ms\"
period = \"10ms\"
console = true

[monitor]
component = \"watch\"
{monitor}"
    )
}

#[test]
fn a_monitor_gets_all_threads_and_asks_only_where_nobody_else_does() {
    let description = described(&watched(""));
    let table: Monitor = packed(&description);
    let told: Vec<_> = table
        .threads
        .iter()
        .map(|thread| (thread.name.as_str(), thread.consumption))
        .collect();
    let expected = [
        ("server", Consumption::Passive),
        ("server/handler", Consumption::Monitor),
        ("client", Consumption::Monitor),
        // The client controls it.
        ("other", Consumption::Other),
    ];
    for thread in expected {
        assert!(told.contains(&thread), "{thread:?} is not in {told:?}");
    }
    assert_eq!(told.len(), expected.len());
    let system = &description.system;
    let watch = system
        .components
        .iter()
        .find(|c| c.name == "watch")
        .unwrap();
    let has = |name: &str| watch.grants.iter().any(|grant| grant.name == name);
    assert!(has("client.tcb") && has("client.context"));
    assert!(has("other.tcb") && !has("other.context"));
    // The launcher writes what it reads only.
    let described = system.status.as_ref().unwrap();
    assert_eq!(described.known.len(), table.objects.len());
    let map = watch
        .maps
        .iter()
        .find(|map| map.memory == described.memory)
        .unwrap();
    assert!(!map.writable);
    let MemorySource::New { bytes } = system.memory[described.memory as usize].source else {
        panic!("the status is no memory");
    };
    let threads = system.components.iter().map(|c| c.threads.len()).sum();
    assert!(bytes >= status::bytes(threads, table.objects.len()));
}

#[test]
fn what_is_waited_for_is_told_by_what_each_component_calls_it() {
    let description = described(&watched(""));
    let table: Monitor = packed(&description);
    let components = &description.system.components;
    let known = table
        .objects
        .iter()
        .find(|known| known.name == "service")
        .unwrap();
    assert_eq!(known.server.as_deref(), Some("server"));
    let component = &components[known.component as usize];
    assert_eq!(component.name, "other");
    let grant = &component.grants[known.grant as usize];
    assert!(matches!(grant.object, Object::Endpoint(_)));
}

#[test]
fn threads_can_be_chosen() {
    let table: Monitor = packed(&described(&watched("threads = [\"server/handler\"]")));
    assert_eq!(table.threads.len(), 1);
    one_finding(
        &watched("threads = [\"client\"]"),
        "threads = [\"client\"]",
        "threads = [\"nobody\"]",
        &["nobody"],
    );
}

#[test]
fn a_monitor_that_cannot_tell_or_never_wakes_is_refused() {
    one_finding(
        &watched(""),
        "console = true\n\n[monitor]",
        "\n[monitor]",
        &["`watch` cannot print", "give it `console = true`"],
    );
    one_finding(
        &watched(""),
        "budget = \"1ms\"\nperiod = \"10ms\"\nconsole",
        "budget = \"10ms\"\nperiod = \"10ms\"\nconsole",
        &[
            "looks once in each of its periods",
            "a `budget` below its `period`",
        ],
    );
}
