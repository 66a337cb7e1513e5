//! `[[edf]]`: what it stands for, and what can be wrong with it.

use std::path::Path;

use sandglass_description::policy::edf::{Edf, Sender};
use sandglass_description::{Component, Object};

use super::{check, described, one_finding, packed, source, Description};
use crate::system::Source;

const PREEMPTIVE: &str = r#"
name = "test"
machine = { memory = 64, cores = 2 }

[[edf]]
name = "scheduler"
priority = 150
mode = "preemptive"
overrun = "stop"
tasks = [
  { component = "a", period = "2ms", budget = "700us" },
  { component = "b", period = "5ms", deadline = "4ms", budget = 1500, offset = "1ms" },
]

[[component]]
name = "a"
executable = "hello-visitor"
priority = 100

[[component]]
name = "b"
executable = "hello-visitor"
priority = 100
"#;

fn component<'d>(description: &'d Description, name: &str) -> &'d Component {
    let mut components = description.system.components.iter();
    components.find(|component| component.name == name).unwrap()
}

#[test]
fn the_table_is_what_is_written() {
    let table: Edf = packed(&described(PREEMPTIVE));
    let [a, b] = table.tasks.as_slice() else {
        panic!("two tasks");
    };
    assert_eq!((a.period_us, a.deadline_us, a.offset_us), (2000, 2000, 0));
    assert_eq!(
        (b.deadline_us, b.offset_us, b.budget_us),
        (4000, 1000, Some(1500))
    );
}

#[test]
fn the_scheduler_starts_first_and_hears_of_its_tasks_calls_and_faults() {
    let description = described(PREEMPTIVE);
    assert_eq!(description.system.components[0].name, "scheduler");
    let scheduler = component(&description, "scheduler");
    let find = |name: &str| {
        let grant = scheduler.grants.iter().find(|grant| grant.name == name);
        grant.unwrap_or_else(|| panic!("no `{name}`")).object
    };
    let Object::Endpoint(endpoint) = find("scheduler") else {
        panic!("no endpoint");
    };
    for reply in ["job.0.reply", "job.1.reply", "job.2.reply"] {
        assert!(matches!(find(reply), Object::Reply(_)));
    }
    assert!(matches!(find("timer"), Object::Interrupt(_)));
    for (index, name) in ["a", "b"].into_iter().enumerate() {
        let task = component(&description, name);
        let call = task
            .grants
            .iter()
            .find(|grant| grant.name == "edf")
            .unwrap();
        assert_eq!(call.object, Object::Endpoint(endpoint));
        assert_eq!(call.badge, Sender::Call(index).badge());
        let thread = &task.threads[0];
        for handler in [thread.timeout_handler, thread.fault_handler] {
            let handler = handler.unwrap();
            assert_eq!(handler.endpoint, endpoint);
            assert_eq!(handler.badge, Sender::Fault(index).badge());
        }
    }
    let time = component(&description, "a").threads[0].time;
    assert_eq!((time.budget_us, time.period_us), (700, 2000));
}

#[test]
fn cooperative_tasks_have_a_full_reservation_that_does_not_end() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let path = path.join("systems/examples/edf-cooperative/SYSTEM.toml");
    let description = check(&Source::read(&path).unwrap()).unwrap_or_else(|r| panic!("{r}"));
    let thread = &component(&description, "fast").threads[0];
    assert_eq!(thread.time.budget_us, thread.time.period_us);
    assert!(thread.time.budget_us > 1_000_000_000_000 && thread.timeout_handler.is_none());
    assert_eq!(packed::<Edf>(&description).tasks[0].budget_us, None);
}

/// With `old` replaced by `new`, exactly one thing is wrong; it is at `place` and says `said`.
#[track_caller]
fn assert_found(old: &str, new: &str, place: &str, said: &str) {
    let report = one_finding(PREEMPTIVE, old, new, &[said]);
    let text = PREEMPTIVE.replace(old, new);
    assert_eq!(&text[report.findings[0].span.clone()], place, "{report}");
}

#[test]
fn tasks_that_cannot_be() {
    assert_found("\"4ms\"", "\"6ms\"", "\"6ms\"", "to the period, 5000 µs");
    assert_found("\"4ms\"", "0", "0", "to the period, 5000 µs");
    assert_found(
        "\"4ms\"",
        "\"1ms\"",
        "1500",
        "at most the deadline, 1000 µs",
    );
    assert_found("\"700us\"", "\"2ms\"", "\"2ms\"", "never runs out");
    assert_found("\"700us\"", "\"3ms\"", "\"3ms\"", "at most the period");
    assert_found("\"700us\"", "10", "10", "at least 20 µs");
    assert_found("\"2ms\", ", "0, ", "\"700us\"", "at most the period, 0 µs");
    assert_found(", budget = 1500", "", "\"b\"", "`b` has no budget");
}

#[test]
fn budgets_that_add_up_to_more_than_the_processor() {
    let text = PREEMPTIVE.replace("\"700us\"", "\"1900us\"");
    let report = check(&source(&text)).unwrap_err();
    assert!(
        report.to_string().contains("want 125.0 % of the processor"),
        "{report}"
    );
}

/// Finding 9 of the hostile reading of the user level: most of the processor is somebody else's.
#[test]
fn what_is_reserved_above_the_tasks_is_not_theirs() {
    let above = |budget: &str| {
        format!(
            "{PREEMPTIVE}\n[[component]]\nname = \"above\"\nexecutable = \"hello-visitor\"\npriority = 210\n\
             budget = \"{budget}\"\nperiod = \"10ms\"\n"
        )
    };
    described(&above("100us"));
    let report = check(&source(&above("9ms"))).unwrap_err().to_string();
    assert!(
        report.contains("what is reserved above them, want 155.0 %"),
        "{report}"
    );
    let elsewhere = above("9ms") + "core = 1\n";
    described(&elsewhere);
}

#[test]
fn tasks_beside_their_scheduler() {
    let b = "\"b\"\nexecutable = \"hello-visitor\"\npriority = 100";
    let b_with = |more: &str| b.replace("priority = 100", more);
    assert_found(b, &b_with("priority = 90"), "90", "different priorities");
    assert_found(
        b,
        &b_with("priority = 100\ncore = 1"),
        "\"b\"",
        "its `core` must be 0",
    );
    assert_found(
        b,
        &b_with("priority = 100\nbudget = 500"),
        "500",
        "the time of `b` is given by the scheduler",
    );
    assert_found(
        b,
        &b_with("priority = 100\nfault-handler = \"a\""),
        "\"a\"",
        "are its scheduler's",
    );
    // Nor does anybody wait for anybody's start then.
    assert_found(
        b,
        &b_with("priority = 100\ntimeout-handler = \"scheduler\""),
        "\"scheduler\"",
        "are its scheduler's",
    );
    assert_found(
        b,
        &b_with("priority = 100\npassive = true"),
        "\"b\"",
        "`b` is passive",
    );
}

#[test]
fn a_scheduler_below_its_tasks() {
    let text = PREEMPTIVE.replace("priority = 150", "priority = 100");
    let report = check(&source(&text)).unwrap_err();
    assert_eq!(report.findings.len(), 2, "{report}");
    assert!(
        report.to_string().contains("would keep its scheduler"),
        "{report}"
    );
}

/// A server `inner` for the server `outer` for the task `b`.
const SERVERS: &str = r#"
[[component]]
name = "outer"
executable = "hello-shouter"
priority = 120
passive = true

[[component]]
name = "inner"
executable = "hello-shouter"
priority = 121
passive = true

[[endpoint]]
name = "work"
server = "outer"
clients = [{ component = "b" }]

[[endpoint]]
name = "inside"
server = "inner"
clients = [{ component = "outer" }]
"#;

#[test]
fn servers_of_tasks_are_above_them_and_below_their_scheduler() {
    let right = format!("{PREEMPTIVE}{SERVERS}");
    described(&right);
    described(&right.replace("priority = 121", "priority = 100"));
    for (wrong, said) in [
        (
            99,
            "tasks of `scheduler` would run while one waits for `inner`",
        ),
        (
            150,
            "`inner` would keep the scheduler `scheduler` from running",
        ),
    ] {
        let new = format!("priority = {wrong}");
        let place = "must be at least 100, and below 150";
        one_finding(&right, "priority = 121", &new, &[said, place]);
    }
    // Unless somebody above the scheduler calls it too.
    let high = "\n[[component]]\nname = \"high\"\nexecutable = \"hello-visitor\"\npriority = 200\n\
                budget = \"1ms\"\nperiod = \"10ms\"\n";
    let ceiling = right.replace("priority = 121", "priority = 200").replace(
        "{ component = \"outer\" }",
        "{ component = \"outer\", badge = 1 }, { component = \"high\", badge = 2 }",
    );
    described(&(ceiling + high));
    // One that has its own time does not run on theirs.
    let active = "priority = 200\nbudget = \"1ms\"\nperiod = \"10ms\"";
    described(&right.replace("priority = 121\npassive = true", active));
}

#[test]
fn there_is_one_timer_thus_one_scheduler() {
    let second = "\n[[edf]]\nname = \"other\"\npriority = 151\nmode = \"cooperative\"\n\
                  tasks = [{ component = \"b\", period = \"4ms\" }, { component = \"c\", \
                  period = \"9ms\" }]\n[[component]]\nname = \"c\"\n\
                  executable = \"hello-visitor\"\npriority = 100\n";
    let text = format!("{PREEMPTIVE}{second}");
    let report = check(&source(&text)).unwrap_err();
    assert_eq!(report.findings.len(), 1, "{report}");
    let shown = report.to_string();
    for said in ["the system has two `[[edf]]`", "there is one timer (HPET)"] {
        assert!(shown.contains(said), "{report}");
    }
}

#[test]
fn a_timer_that_somebody_else_has() {
    let interrupt = "[[interrupt]]\nname = \"t\"\ncomponent = \"a\"\npin = 2\n";
    let report = check(&source(&format!("{PREEMPTIVE}\n{interrupt}"))).unwrap_err();
    assert!(
        report.to_string().contains("pin 2 of the IOAPIC"),
        "{report}"
    );
}

#[test]
fn an_overrun_that_nobody_would_notice() {
    let text = PREEMPTIVE
        .replace("preemptive", "cooperative")
        .replace(", budget = \"700us\"", "")
        .replace(", budget = 1500", "");
    let report = check(&source(&text)).unwrap_err();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(
        report.to_string().contains("nobody notices an overrun"),
        "{report}"
    );
}

#[test]
fn a_period_that_is_none() {
    let text = PREEMPTIVE
        .replace("preemptive", "cooperative")
        .replace("overrun = \"stop\"", "")
        .replace("\"2ms\", budget = \"700us\"", "0")
        .replace(", budget = 1500", "");
    let report = check(&source(&text)).unwrap_err();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.to_string().contains("a period of 0 µs"), "{report}");
}

#[test]
fn a_task_that_is_no_component_leaves_another_without_time() {
    let text = PREEMPTIVE.replace("component = \"a\"", "component = \"c\"");
    let report = check(&source(&text)).unwrap_err();
    assert_eq!(report.findings.len(), 2, "{report}");
    for said in [
        "no component is called `c`",
        "`a` has no budget and no period",
        "or let `scheduler` schedule it",
    ] {
        assert!(report.to_string().contains(said), "{report}");
    }
}

#[test]
fn deadlines_before_the_period_must_have_room_for_what_is_due_until_then() {
    let tight = PREEMPTIVE
        .replace(
            "budget = \"700us\"",
            "deadline = \"1500us\", budget = \"700us\"",
        )
        .replace("deadline = \"4ms\"", "deadline = \"2ms\"");
    // Together at an instant, 2,200 µs of work are due within 2 ms; one after the other, they fit.
    described(&tight);
    let together = tight.replace(", offset = \"1ms\"", "");
    let report = check(&source(&together)).unwrap_err();
    let said = "2200 µs of budgets are due within 2000 µs of a release of all tasks";
    assert!(report.to_string().contains(said), "{report}");
    described(&together.replace("deadline = \"2ms\"", "deadline = \"2200us\""));
}
