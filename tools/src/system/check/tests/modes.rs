//! `[modes]`: what managers are told and given, and what is refused.

use sandglass_description::policy::modes::{Below, Modes};
use sandglass_description::{Object, ThreadId};

use super::{described, one_finding, packed};

const MODES: &str = r#"
name = "test"
criticalities = ["low", "middle", "high"]

[[component]]
name = "manager"
executable = "mode-manager"
priority = 200
mcp = 120
budget = "1ms"
period = "1ms"
ready = true

[[component.thread]]
name = "idle"
priority = 1
budget = "1ms"
period = "1ms"

[[component]]
name = "control"
executable = "modes-task"
criticality = "high"
priority = 100
budget = "1ms"
period = "10ms"
timeout-handler = "manager"

[[component]]
name = "video"
executable = "modes-task"
priority = 120
budget = "4ms"
period = "10ms"

[[component]]
name = "log"
executable = "modes-task"
criticality = "middle"
priority = 90
budget = "2ms"
period = "40ms"

[modes]
manager = "manager"
tasks = [
  { component = "control", budgets = ["1ms", "1ms", "5ms"] },
  { component = "video", below = "suspend" },
  { component = "log", below = "demote", priority = 10 },
]
"#;

/// With `old` replaced by `new` in a right description, exactly this is said.
#[track_caller]
fn assert_found(old: &str, new: &str, said: &[&str]) {
    one_finding(MODES, old, new, said);
}

#[test]
fn the_manager_is_told_what_each_mode_means() {
    let table: Modes = packed(&described(MODES));
    assert_eq!(table.levels, ["low", "middle", "high"]);
    let [control, video, log] = table.tasks.as_slice() else {
        panic!("{:?}", table.tasks);
    };
    assert_eq!((control.criticality, control.below), (2, Below::Keep));
    assert_eq!(control.budgets_us, [1_000, 1_000, 5_000]);
    assert!(control.fault_badge != 0);
    assert_eq!((video.below, video.fault_badge), (Below::Suspend, 0));
    assert_eq!((log.below, log.criticality), (Below::Demote(10), 1));
}

#[test]
fn the_manager_gets_what_changes_and_nothing_more() {
    let system = described(MODES).system;
    let at = |name: &str| {
        let mut components = system.components.iter();
        components
            .position(|component| component.name == name)
            .unwrap()
    };
    let has = |object: Object| {
        let grants = &system.components[at("manager")].grants;
        grants.iter().any(|grant| grant.object == object)
    };
    let main = |name: &str| ThreadId {
        component: at(name) as u32,
        thread: 0,
    };
    assert!(has(Object::Tcb(main("video"))) && !has(Object::SchedContext(main("video"))));
    assert!(has(Object::SchedContext(main("control"))) && has(Object::SchedControl(0)));
    assert!(has(Object::Tcb(main("manager"))));
}

#[test]
fn managers_that_cannot_manage_are_refused() {
    assert_found("mcp = 120", "mcp = 119", &["cannot restore", "`mcp = 120`"]);
    assert_found(
        "priority = 200",
        "priority = 120",
        &["too low", "above 120"],
    );
    assert_found(
        "ready = true\n\n[[component.thread]]\nname = \"idle\"",
        "ready = true\n\n[[component.thread]]\nname = \"idol\"",
        &["has no thread `idle`"],
    );
    assert_found("priority = 1\n", "priority = 0\n", &["must be above 0"]);
    assert_found("priority = 1\n", "priority = 90\n", &["the lowest is 90"]);
    assert_found(
        "manager = \"manager\"",
        "manager = \"manger\"",
        &["did you mean `manager`?"],
    );
}

#[test]
fn tasks_that_mean_nothing_are_refused() {
    assert_found(
        "timeout-handler = \"manager\"\n",
        "",
        &["the manager is not told when the budget of `control` runs out"],
    );
    assert_found(
        "[\"1ms\", \"1ms\", \"5ms\"]",
        "[\"2ms\", \"2ms\", \"5ms\"]",
        &["the first budget, 2000 µs, differs from the task's"],
    );
    assert_found(
        "[\"1ms\", \"1ms\", \"5ms\"]",
        "[\"1ms\", \"6ms\", \"5ms\"]",
        &["below that of a lower mode"],
    );
    assert_found(
        "[\"1ms\", \"1ms\", \"5ms\"]",
        "[\"1ms\", \"1ms\", \"11ms\"]",
        &["out of range", "10000 µs"],
    );
    assert_found(
        "[\"1ms\", \"1ms\", \"5ms\"]",
        "[\"1ms\", \"1ms\", \"5ms\", \"5ms\"]",
        &[
            "`control` has 4 budgets for 3 modes",
            "the system has 3 modes",
        ],
    );
    assert_found(
        "criticality = \"high\"\n",
        "",
        &[
            "`control` has 3 budgets for 1 mode",
            "without one it is `low`",
            "`criticality = \"high\"`",
        ],
    );
    assert_found(
        "criticality = \"high\"\n",
        "criticality = \"hihg\"\n",
        &["unknown criticality `hihg`"],
    );
    assert_found(
        ", priority = 10 }",
        " }",
        &["`log` has no demoted priority"],
    );
    assert_found("priority = 10 }", "priority = 90 }", &["from 2 to 89"]);
    assert_found(
        "below = \"suspend\"",
        "below = \"suspend\", priority = 5",
        &["only `below = \"demote\"`"],
    );
    assert_found(
        "component = \"video\"",
        "component = \"log\"",
        &["listed twice in `tasks`"],
    );
}

/// Its time is its scheduler's, and so are its timeouts.
#[test]
fn tasks_of_an_edf_have_no_budgets() {
    let scheduled = MODES.replace(
        "executable = \"modes-task\"\ncriticality = \"high\"\npriority = 100\nbudget = \"1ms\"\n\
         period = \"10ms\"\ntimeout-handler = \"manager\"\n",
        "executable = \"modes-task\"\ncriticality = \"high\"\npriority = 100\n",
    ) + "[[edf]]\nname = \"scheduler\"\npriority = 119\nmode = \"preemptive\"\n\
         tasks = [{ component = \"control\", period = \"10ms\", budget = \"1ms\" }]\n";
    let report = one_finding(
        &scheduled,
        "[modes]",
        "[modes]\n",
        &[
            "the reservation of `control` is set by its EDF scheduler in all modes",
            "leave `budgets` out",
        ],
    );
    assert!(!report.to_string().contains("timeout-handler"), "{report}");
    described(&scheduled.replace(", budgets = [\"1ms\", \"1ms\", \"5ms\"]", ""));
}
