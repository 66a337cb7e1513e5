//! `[time-manager]`: what it stands for, and what can be wrong with it.

use sandglass_allocations::Rate;
use sandglass_description::policy::allocations::{Allocations, Asker};
use sandglass_description::policy::edf::Sender;
use sandglass_description::policy::Table;

use super::{check, described, one_finding, source, Content};

const MANAGED: &str = r#"
name = "test"
machine = { memory = 64, cores = 2 }

[time-manager]
name = "time"
priority = 150
clients = [
  { component = "control", tasks = [{ budget = "1ms", period = "5ms", deadline = "2ms" }] },
  { component = "left", share = "1/3", records = 3 },
  { component = "child", supplier = "left" },
]

[[component]]
name = "control"
executable = "hello-visitor"
priority = 100

[[component]]
name = "left"
executable = "hello-visitor"
priority = 147
exit = true

[[component]]
name = "child"
executable = "hello-visitor"
priority = 90
"#;

#[test]
fn a_time_manager_is_told_of_its_clients_and_they_of_it() {
    let description = described(MANAGED);
    let components = &description.system.components;
    let find = |name: &str| {
        components
            .iter()
            .find(|component| component.name == name)
            .unwrap()
    };
    let mut tables = description
        .files
        .iter()
        .filter_map(|file| match &file.content {
            Content::Bytes(bytes) => Allocations::decode(bytes).ok(),
            Content::Path(_) => None,
        });
    // The timer service has one, too.
    let table = tables
        .find(|table| table.turn_priority == 149)
        .expect("there is a table");
    assert_eq!(
        (table.core, table.turn_priority, table.shortest_us),
        (0, 149, 1_000)
    );
    let [control, left, child] = table.clients.as_slice() else {
        panic!("{table:?}");
    };
    assert_eq!(
        (control.tasks[0].deadline_us, control.best_effort_priority),
        (2_000, 100)
    );
    assert_eq!(
        (left.share, left.records),
        (Some(Rate::at_most(1, 3).unwrap().parts()), 3)
    );
    assert_eq!(
        (child.supplier, child.is_given(), child.records),
        (Some(1), false, 16)
    );

    let badges = |name: &str, of: &str| -> Vec<u64> {
        let grants = find(name).grants.iter();
        grants
            .filter(|grant| grant.name == of)
            .map(|grant| grant.badge)
            .collect()
    };
    assert_eq!(badges("left", "time"), [Asker::badge(1)]);
    assert_eq!(badges("left", "time.turn"), [Sender::Call(1).badge()]);
    let thread = &find("left").threads[0];
    assert_eq!(
        thread.timeout_handler.map(|handler| handler.badge),
        Some(Sender::Fault(1).badge())
    );
    assert_eq!(thread.time.budget_us, thread.time.period_us);
    // It has a timer, so the service is there.
    find("timers");
}

#[track_caller]
fn assert_refused(old: &str, new: &str, said: &[&str]) {
    one_finding(MANAGED, old, new, said);
}

#[test]
fn more_than_the_core_is_refused_at_the_client_that_is_too_much() {
    assert_refused(
        "share = \"1/3\"",
        "share = \"4/5\"",
        &[
            "`left` is given more than the clients before it leave of the core",
            "must be less by",
        ],
    );
    // The utilisation would fit, and the short intervals do not.
    assert_refused(
        "{ component = \"left\", share = \"1/3\", records = 3 }",
        "{ component = \"left\", tasks = [{ budget = \"1500us\", period = \"9ms\", deadline = \"2ms\" }] }",
        &["`left` is given more", "in intervals of 2000 µs", "less by 500 µs"],
    );
}

#[test]
fn what_is_no_part_of_a_core_is_refused() {
    for wrong in ["3/2", "1/0", "110%", "a third", "0.3"] {
        let said = [&format!("`{wrong}` is no part of a core"), "like \"1/3\""];
        assert_refused("1/3", wrong, &said);
    }
    assert_refused(
        "share = \"1/3\", records = 3",
        "share = \"1/3\", tasks = [{ budget = 100, period = 2000 }]",
        &["both a share and tasks"],
    );
}

#[test]
fn quotas_that_there_is_no_memory_for_are_refused() {
    let said = [
        "may have 1017 records, all together",
        "must be at most 1000",
    ];
    assert_refused("records = 3", "records = 985", &said);
    assert_refused(
        "records = 3",
        "capabilities = 685",
        &["701 capabilities", "must be at most 700"],
    );
}

#[test]
fn tasks_that_are_none_are_refused_with_what_would_be_right() {
    assert_refused(
        "deadline = \"2ms\"",
        "deadline = \"6ms\"",
        &["must be at most 5000"],
    );
    assert_refused(
        "deadline = \"2ms\"",
        "deadline = \"500us\"",
        &["must be at most 500"],
    );
    assert_refused(
        "budget = \"1ms\", period = \"5ms\", deadline = \"2ms\"",
        "budget = 100, period = 900",
        &[
            "a period of 900 µs",
            "must be at least 1000 µs",
            "`shortest-period`",
        ],
    );
}

#[test]
fn clients_that_cannot_be_ones_are_refused() {
    assert_refused(
        "priority = 147",
        "priority = 148",
        &["would delay turns of others", "must be at most 147"],
    );
    assert_refused(
        "priority = 90\n",
        "priority = 90\nbudget = \"1ms\"\nperiod = \"5ms\"\n",
        &["the time of `child` is given by `time`", "must not be here"],
    );
    assert_refused(
        "priority = 90\n",
        "priority = 90\ncore = 1\n",
        &["`child` is not on the time manager's core"],
    );
    assert_refused(
        "supplier = \"left\"",
        "supplier = \"lift\"",
        &["no client is called `lift`", "left"],
    );
    assert_refused(
        "supplier = \"left\"",
        "supplier = \"child\"",
        &["`child` supplies itself"],
    );
}

#[test]
fn a_server_that_clients_call_in_their_turns_is_not_below_turns() {
    let server = r#"
[[component]]
name = "server"
executable = "hello-shouter"
priority = 149
passive = true

[[endpoint]]
name = "work"
server = "server"
clients = [{ component = "left", badge = 1 }]
"#;
    let right = format!("{MANAGED}{server}");
    assert!(check(&source(&right)).is_ok());
    let said = ["`server` works below turns", "must be at least 149"];
    one_finding(&right, "priority = 149", "priority = 148", &said);
}
