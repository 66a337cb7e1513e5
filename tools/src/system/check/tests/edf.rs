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
        report.to_string().contains("need 125.0 % of the processor"),
        "{report}"
    );
}

/// Finding 9 of the hostile review of the user level: most of the processor is reserved for others.
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
        report.contains("the reservations above them need 155.0 %"),
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
        "the reservation of `b` is set by the scheduler",
    );
    assert_found(
        b,
        &b_with("priority = 100\nfault-handler = \"a\""),
        "\"a\"",
        "go to its scheduler",
    );
    // Nor does anybody wait for anybody's start then.
    assert_found(
        b,
        &b_with("priority = 100\ntimeout-handler = \"scheduler\""),
        "\"scheduler\"",
        "go to its scheduler",
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
        report.to_string().contains("would delay its scheduler"),
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
clients = [{ component = "b", longest = "100us" }]

[[endpoint]]
name = "inside"
server = "inner"
clients = [{ component = "outer" }]
"#;

/// A system in which the time of a thread is not counted.
fn trusting(text: &str, trusted: &str) -> String {
    let new = format!("overrun = \"stop\"\ntrusted = [{trusted}]");
    text.replace("overrun = \"stop\"", &new)
}

/// As [`SERVERS`], of tasks that do not run out of time in one.
fn with_servers() -> String {
    trusting(&format!("{PREEMPTIVE}{SERVERS}"), "\"outer\", \"inner\"")
}

#[test]
fn servers_of_tasks_are_above_them_and_below_their_scheduler() {
    let right = with_servers();
    described(&right);
    for (wrong, said) in [
        (
            100,
            "tasks of `scheduler` could run while another one waits for `inner`",
        ),
        (150, "`inner` would delay the scheduler `scheduler`"),
    ] {
        let new = format!("priority = {wrong}");
        let place = "must be above 100, and below 150";
        one_finding(&right, "priority = 121", &new, &[said, place]);
    }
    // Unless a thread above the scheduler calls it too.
    let high = "\n[[component]]\nname = \"high\"\nexecutable = \"hello-visitor\"\npriority = 200\n\
                budget = \"1ms\"\nperiod = \"10ms\"\n";
    let ceiling = right.replace("priority = 121", "priority = 200").replace(
        "{ component = \"outer\" }",
        "{ component = \"outer\", badge = 1 }, { component = \"high\", badge = 2 }",
    );
    described(&(ceiling + high));
    // One that has its own time does not run on theirs.
    let active = "priority = 200\nbudget = \"1ms\"\nperiod = \"10ms\"";
    let active = right.replace("priority = 121\npassive = true", active);
    described(&active);
    // So it is not known when it does.
    let untrusted = active.replace(", \"inner\"]", "]");
    refused(
        &untrusted,
        &["how long `outer` waits for `inner` is not known"],
    );
}

/// Exactly that is wrong with a description.
#[track_caller]
fn refused(text: &str, said: &[&str]) {
    let report = check(&source(text)).unwrap_err();
    assert_eq!(report.findings.len(), said.len(), "{report}");
    for said in said {
        assert!(
            report.to_string().contains(said),
            "no `{said}` in:\n{report}"
        );
    }
}

/// A component with the keys `more`.
fn also(name: &str, priority: u8, more: &str) -> String {
    format!(
        "\n[[component]]\nname = \"{name}\"\nexecutable = \"hello-visitor\"\npriority = {priority}\n{more}\n"
    )
}

const FULL: &str = "budget = \"5ms\"\nperiod = \"5ms\"";

#[test]
fn a_thread_above_the_tasks_whose_budget_never_runs_out_is_not_passed_over() {
    for priority in [100, 210] {
        let text = PREEMPTIVE.to_owned() + &also("greedy", priority, FULL);
        let said = "`greedy` may use all of the tasks' processor time";
        refused(&text, &[said]);
        described(&trusting(&text, "\"greedy\""));
    }
    described(&(PREEMPTIVE.to_owned() + &also("humble", 99, FULL)));
    let elsewhere = also("elsewhere", 210, FULL) + "core = 1\n";
    described(&(PREEMPTIVE.to_owned() + &elsewhere));
    // Also a further thread of a task.
    let thread =
        "priority = 100\nready = true\n[[component.thread]]\nname = \"more\"\npriority = 120\n";
    let text = PREEMPTIVE.replacen("priority = 100", &format!("{thread}{FULL}\n"), 1);
    refused(
        &text,
        &["`a/more` may use all of the tasks' processor time"],
    );
    described(&trusting(&text, "\"a/more\""));
}

#[test]
fn trust_that_nobody_needs() {
    let humble = PREEMPTIVE.to_owned() + &also("humble", 99, FULL);
    refused(
        &trusting(&humble, "\"humble\""),
        &["`humble` does not need to be trusted"],
    );
    refused(
        &trusting(PREEMPTIVE, "\"nobody\""),
        &["no component is called `nobody`"],
    );
    let greedy = PREEMPTIVE.to_owned() + &also("greedy", 210, FULL);
    let twice = trusting(&greedy, "\"greedy\", \"greedy\"");
    refused(&twice, &["`greedy` is trusted twice"]);
    let unchecked = twice.replace("trusted", "admission = \"none\"\ntrusted");
    let unchecked = unchecked.replace(", \"greedy\"]", "]");
    refused(
        &unchecked,
        &["no time is counted with `admission = \"none\"`"],
    );
    let unchecked = unchecked.replace("trusted = [\"greedy\"]", "");
    described(&unchecked);
    let wrong = unchecked.replace("\"none\"", "\"deadline\"");
    refused(&wrong, &["did you mean `deadlines`?"]);
}

/// Somebody below the tasks calls the server `outer`.
fn with_caller_below(time: &str, longest: &str) -> String {
    let from = "{ component = \"b\", longest = \"100us\" }";
    let below = format!("{from}, {{ component = \"below\", badge = 3{longest} }}");
    with_servers().replace(from, &below) + &also("below", 50, time)
}

#[test]
fn a_request_of_somebody_below_the_tasks_keeps_them_from_running() {
    // It has all of the processor when no task runs.
    refused(
        &with_caller_below(FULL, ""),
        &["how long `outer` works for one request of `below` is not known"],
    );
    described(&with_caller_below(FULL, ", longest = \"1ms\""));
    refused(
        &with_caller_below(FULL, ", longest = \"1400us\""),
        &["2100 µs are wanted within 2000 µs of a release: 700 by jobs that are due, 0 above them, 1400"],
    );
    // Nothing ends a request at the end of its budget: the server continues when there is budget again.
    let limited = "budget = \"100us\"\nperiod = \"200us\"";
    refused(
        &with_caller_below(limited, ""),
        &["need 115.0 % of the processor"],
    );
    described(&with_caller_below(
        "budget = \"100us\"\nperiod = \"2ms\"",
        "",
    ));
}

#[test]
fn a_request_of_a_task_keeps_others_from_running() {
    let longest = |longest: &str| with_servers().replace("longest = \"100us\"", longest);
    described(&longest("longest = \"1300us\""));
    let said = "700 by jobs that are due, 0 above them, 1301 by a request";
    refused(&longest("longest = \"1301us\""), &[said]);
    // As long as its job.
    let said = "0 above them, 1500 by a request";
    refused(&longest("badge = 1"), &[said]);
    refused(&longest("longest = 0"), &["a request of 0 µs"]);
    // A cooperative one too.
    let cooperative = longest("badge = 1")
        .replace("preemptive", "cooperative")
        .replace("budget =", "longest =")
        .replace("overrun = \"stop\"\ntrusted = [\"outer\", \"inner\"]", "");
    refused(&cooperative, &[said]);
    described(&cooperative.replace("badge = 1", "longest = \"1300us\""));
}

#[test]
fn a_request_that_nobody_ends() {
    let said = ["outer", "inner"].map(|server| {
        format!("when the budget of `b` runs out in `{server}`, nothing ends the request")
    });
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    refused(&format!("{PREEMPTIVE}{SERVERS}"), &said);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let path = path.join("systems/examples/edf-shared/SYSTEM.toml");
    let shared = Source::read(&path).unwrap();
    check(&shared).unwrap_or_else(|report| panic!("{report}"));
    // What its handler adds to a job is counted.
    let helped = |policy: &str| {
        let policy =
            format!("default = \"rollback\"\nclients = [{{ component = \"counting\", {policy} }}]");
        let text = shared.text.replace("default = \"rollback\"", &policy);
        check(&Source {
            arch: None,
            text,
            ..shared.clone()
        })
    };
    for (policy, said) in [
        (
            "policy = \"emergency\", budget = \"300us\"",
            "0 above them, 1300 by a request",
        ),
        // Each fills the budget anew.
        (
            "policy = \"extend\", by = \"100us\", limit = 3",
            "3900 above them, 0 by a request",
        ),
    ] {
        let report = helped(policy).unwrap_err().to_string();
        assert!(report.contains(said), "{report}");
    }
    helped("policy = \"emergency\", budget = \"200us\"").unwrap_or_else(|r| panic!("{r}"));
}

#[test]
fn a_server_that_is_at_work_on_another_core() {
    let from = "{ component = \"b\", longest = \"100us\" }";
    let far = format!("{from}, {{ component = \"far\", badge = 3 }}");
    let time = "budget = \"1ms\"\nperiod = \"10ms\"\ncore = 1";
    let text = format!("{PREEMPTIVE}{SERVERS}").replace(from, &far) + &also("far", 50, time);
    let said = "`outer` also works for `far`, on core 1";
    let report = check(&source(&text)).unwrap_err().to_string();
    assert!(report.contains(said), "{report}");
    described(&trusting(&text, "\"outer\", \"inner\""));
}

/// What the handler of a server gives a thread above the tasks, each time its budget runs out.
#[test]
fn emergencies_above_the_tasks() {
    let server =
        "passive = true\ntimeout-handler = \"s\"\n[[component.thread]]\nname = \"handler\"\n\
                  priority = 201\nbudget = \"5ms\"\nperiod = \"5ms\"\nready = true";
    let text = format!(
        "{PREEMPTIVE}{}{}\n[[endpoint]]\nname = \"e\"\nserver = \"s\"\n\
         clients = [{{ component = \"high\", badge = 1 }}]\n[[timeout-policy]]\nserver = \"s\"\n\
         handler = \"s/handler\"\nclients = [{{ component = \"high\", policy = \"emergency\", budget = 100 }}]\n",
        also("s", 200, server),
        also("high", 160, "budget = \"100us\"\nperiod = \"10ms\""),
    );
    refused(
        &text,
        &["how often `s` works for `high` on its own time is not known"],
    );
    described(&trusting(&text, "\"high\""));
    // Below the tasks it is one request, with what is added to it.
    let below = text.replace("priority = 160", "priority = 60");
    described(&below);
    let longer = below.replace("emergency\", budget = 100", "emergency\", budget = 1201");
    refused(
        &longer,
        &["700 by jobs that are due, 0 above them, 1301 by a request"],
    );
}

/// A server that waits for its device with the request of a task.
#[test]
fn a_task_that_waits_for_a_device() {
    let text = format!(
        "{PREEMPTIVE}{}\n[[resource]]\nname = \"r\"\nprotocol = \"blocking\"\nserver = \"s\"\n\
         clients = [{{ component = \"b\", badge = 2, longest = 100 }}]\n\
         [[interrupt]]\nname = \"irq\"\ncomponent = \"s\"\npin = 4\n",
        also("s", 120, "passive = true"),
    );
    let unended = "when the budget of `b` runs out in `s`, nothing ends the request";
    refused(&text, &["how long `b` waits for `s` is not known", unended]);
    described(&trusting(&text, "\"s\""));
}

/// Tasks that wait for a proxy, and servers that a proxy raises above them.
#[test]
fn resources_whose_requests_are_not_bounded() {
    let resource = |clients: &str| {
        format!(
            "{PREEMPTIVE}{}\n[[resource]]\nname = \"r\"\nprotocol = \"inheritance\"\nserver = \"s\"\n\
             clients = [{clients}]\n{}{}",
            also("s", 120, "passive = true"),
            also("low", 40, "budget = \"300us\"\nperiod = \"10ms\""),
            also("high", 140, "budget = \"100us\"\nperiod = \"10ms\""),
        )
        .replace("1500", "300")
    };
    let task = resource(
        "{ component = \"b\", badge = 1, longest = 100 }, { component = \"high\", badge = 2 }",
    );
    refused(&task, &["how long `b` waits for `s` is not known"]);
    described(&trusting(&task, "\"s\""));
    let low = resource("{ component = \"low\", badge = 1 }, { component = \"high\", badge = 2 }");
    refused(
        &low,
        &["how long `s` works for `low` above the tasks is not known"],
    );
    described(&trusting(&low, "\"s\""));
    // Behind the proxy, a server of low priority works on the time of a client below the tasks, and so does who works
    // for it above them.
    let nested = resource("{ component = \"low\", badge = 1 }")
        .replace("priority = 120", "priority = 30")
        + &also("t", 120, "passive = true")
        + "[[endpoint]]\nname = \"e\"\nserver = \"t\"\nclients = [{ component = \"s\" }]\n";
    described(&nested);
    let longer = nested.replace("budget = \"300us\"", "budget = \"1700us\"");
    refused(&longer, &["700 by jobs that are due, 1800 above them"]);
}

/// A proxy above the tasks works for each of its clients as long as that may run, and at its worst twice so long in a row.
#[test]
fn what_a_proxy_works_for_its_clients() {
    let sharing = format!(
        "{PREEMPTIVE}{}\n[[resource]]\nname = \"r\"\nprotocol = \"inheritance\"\nserver = \"s\"\n\
         clients = [{{ component = \"high\", badge = 1 }}]\n{}",
        also("s", 120, "passive = true"),
        also("high", 140, "budget = \"100us\"\nperiod = \"10ms\""),
    );
    described(&sharing);
    // Its own, and twice that; and the proxy's clock.
    let longer = sharing.replace("\"100us\"", "\"500us\"");
    refused(&longer, &["700 by jobs that are due, 1540 above them"]);
    let full = sharing.replace("\"100us\"", "\"10ms\"");
    let findings = [
        "`sharing-inheritance` may work for `high` without limit, above the tasks",
        "`high` may use all of the tasks' processor time",
    ];
    refused(&full, &findings);
    described(&trusting(&full, "\"high\""));
}

#[test]
fn a_cooperative_job_says_how_long_it_takes_or_nothing_is_promised() {
    let cooperative = PREEMPTIVE
        .replace("preemptive", "cooperative")
        .replace("overrun = \"stop\"", "")
        .replace("budget =", "longest =");
    described(&cooperative);
    refused(
        &cooperative.replace(", longest = 1500", ""),
        &["the length of a job of `b` is not known"],
    );
    refused(
        &cooperative.replace("1500", "4001"),
        &["must be from 1 µs to the deadline, 4000 µs"],
    );
    refused(
        &cooperative.replace("700us", "1900us"),
        &["need 125.0 % of the processor"],
    );
    let unchecked = cooperative.replace("mode =", "admission = \"none\"\nmode =");
    described(&unchecked.replace(", longest = 1500", ""));
    assert_found(
        "budget = 1500",
        "budget = 1500, longest = 1000",
        "1000",
        "has no effect in preemptive mode",
    );
}

/// With all the budget that a rise of the mode gives.
#[test]
fn a_budget_that_grows_with_the_mode_is_counted_as_it_grows() {
    let modes = |budgets: &str| {
        let manager = also(
            "manager",
            200,
            "criticality = \"high\"\nmcp = 199\nready = true\nbudget = \"5ms\"\nperiod = \"5ms\"\n\
             [[component.thread]]\nname = \"idle\"\npriority = 1\nbudget = \"5ms\"\nperiod = \"5ms\"",
        );
        let above = also(
            "above",
            160,
            "criticality = \"high\"\ntimeout-handler = \"manager\"\nbudget = \"300us\"\nperiod = \"10ms\"",
        );
        format!(
            "{PREEMPTIVE}{manager}{above}\n[modes]\nmanager = \"manager\"\ntasks = [\n\
             {{ component = \"above\", budgets = [{budgets}] }},\n]\n"
        )
    };
    described(&modes("300"));
    described(&modes("300, 400"));
    let said =
        "2100 µs are wanted within 2000 µs of a release: 700 by jobs that are due, 1400 above them";
    refused(
        &modes("300, 700").replace("budget = 1500", "budget = 1000"),
        &[said],
    );
}

#[test]
fn an_overrun_that_nobody_would_notice() {
    let text = PREEMPTIVE
        .replace("preemptive", "cooperative")
        .replace("budget =", "longest =");
    let report = check(&source(&text)).unwrap_err();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(
        report.to_string().contains("overruns are not detected"),
        "{report}"
    );
}

#[test]
fn a_period_that_is_none() {
    let text = PREEMPTIVE
        .replace("preemptive", "cooperative")
        .replace("overrun = \"stop\"", "")
        .replace("\"2ms\", budget = \"700us\"", "0")
        .replace("budget =", "longest =");
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
    let apart = tight.replace("\"5ms\"", "\"4ms\"");
    described(&apart);
    let together = apart.replace(", offset = \"1ms\"", "");
    let refused = |text: &str, said: &str| {
        let report = check(&source(text)).unwrap_err();
        assert!(report.to_string().contains(said), "{report}");
    };
    let said = "2200 µs are wanted within 2000 µs of a release of all tasks: 2200 by jobs";
    refused(&together, said);
    described(&together.replace("deadline = \"2ms\"", "deadline = \"2200us\""));
    // Periods of 2 and 5 ms bring them together in the end.
    refused(&tight, "2200 µs are wanted within 2000 µs of a release: ");
}
