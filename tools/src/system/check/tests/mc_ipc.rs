//! Resources behind a gate.

use std::collections::BTreeSet;

use sandglass_description::policy::mc_ipc::{
    names, Gate, Kind, Protocol, Slot, Slots, MOST_CLIENTS,
};
use sandglass_description::{Component, Grant, Object, ThreadId};
use sandglass_mc_ipc::bound::{budget, Caller, Calls};
use sandglass_mc_ipc::driver::{Sender, Signals};
use sandglass_mc_ipc::ClientId;

use super::super::{check, Description, Requests};
use super::{changed, described, packed, refused, source};

/// Two cores: a table-driven and two sporadic clients, one of best effort.
const SYSTEM: &str = r#"
name = "test"
machine = { cores = 2 }

[[component]]
name = "keys"
executable = "hello-shouter"
priority = 200

[[component]]
name = "flight"
executable = "hello-visitor"
criticality = "high"
core = 1
priority = 150
deadline = "50ms"

[[component]]
name = "camera"
executable = "hello-visitor"
priority = 120
budget = "40ms"
period = "100ms"
exit = true

[[component]]
name = "radio"
executable = "hello-visitor"
criticality = "high"
priority = 110
budget = "60ms"
period = "250ms"

[[component]]
name = "archive"
executable = "hello-visitor"
priority = 10
budget = "5ms"
period = "5ms"

[[resource]]
name = "sign"
protocol = "mc-ipc"
server = "keys"
length = { low = "1ms", high = "2ms" }
cycle = "100ms"
clients = [
  { component = "flight", kind = "table-driven", slots = [{ at = "0ms", length = "50ms" }, { at = "60ms", length = "30ms" }] },
  { component = "camera", requests = 2 },
  { component = "radio", as = "signer" },
  { component = "archive", kind = "best-effort" },
]
"#;

/// The system with one text in place of another, which must be there.
#[track_caller]
fn with(changes: &[(&str, &str)]) -> String {
    changed(SYSTEM, changes)
}

/// The changed system is refused, for one reason, which says this.
#[track_caller]
fn assert_refused(changes: &[(&str, &str)], said: &[&str]) {
    refused(&with(changes), said);
}

fn row<'d>(description: &'d Description, client: &str, criticality: &str) -> &'d Requests {
    let mut rows = description.outlook.requests.iter();
    rows.find(|row| row.client == client && row.criticality == criticality)
        .unwrap()
}

#[test]
fn budgets_are_for_the_bound_at_each_level_of_criticality() {
    let description = described(SYSTEM);
    let first = Caller {
        processors: 1,
        is_first: true,
    };
    let behind = Caller {
        is_first: false,
        ..first
    };
    let low = Calls {
        count: 1,
        longest: 1_000,
        clusters: 2,
    };
    let high = Calls {
        longest: 2_000,
        ..low
    };
    let takes = |client, criticality| row(&description, client, criticality).takes_us;
    assert_eq!(takes("flight", "high"), Some(budget(0, first, [high])));
    assert_eq!(takes("flight", "low"), Some(budget(0, first, [low])));
    let twice = Calls { count: 2, ..low };
    assert_eq!(takes("camera", "low"), Some(budget(0, first, [twice])));
    assert_eq!(takes("radio", "high"), Some(budget(0, behind, [high])));
    assert_eq!(takes("radio", "low"), Some(budget(0, behind, [low])));
    // The shortest slot counts.
    assert_eq!(row(&description, "flight", "high").budget_us, 30_000);
    assert_eq!(row(&description, "camera", "low").budget_us, 40_000);
    // Nothing is assumed at levels above a client's own, nor promised to best effort.
    assert_eq!(description.outlook.requests.len(), 5);
}

#[test]
fn fewer_cores_may_be_assumed_at_low_criticality() {
    let clusters = [("cycle =", "clusters = { low = 1, high = 2 }\ncycle =")];
    let description = described(&with(&clusters));
    let takes = |client, criticality| row(&description, client, criticality).takes_us;
    assert_eq!(takes("camera", "low"), Some(2 * (1 + 2) * 1_000));
    assert_eq!(takes("flight", "high"), Some((1 + 2 * 2) * 2_000));
}

#[test]
fn other_protocols_have_other_bounds() {
    let fifo = described(&with(&[("\"mc-ipc\"", "\"fifo\"")]));
    // Four clients.
    assert_eq!(row(&fifo, "flight", "high").takes_us, Some(4 * 2_000));
    let priority = described(&with(&[("\"mc-ipc\"", "\"priority\"")]));
    assert_eq!(row(&priority, "flight", "high").takes_us, None);
}

#[test]
fn budgets_add_up_over_gates() {
    let second = r#"
[[component]]
name = "store"
executable = "hello-shouter"
priority = 210

[[resource]]
name = "safe"
protocol = "mc-ipc"
server = "store"
length = "3ms"
clients = [{ component = "radio", requests = 3 }]
"#;
    let text = with(&[]) + second;
    let description = described(&text);
    let signs = (2 + 2 * 2) * 2_000;
    let stores = 3 * (1 + 2) * 3_000;
    let radio = row(&description, "radio", "high");
    assert_eq!(radio.takes_us, Some(signs + stores));
    assert_eq!(radio.gates.len(), 2);
    let report = check(&source(
        &text.replace("\"60ms\"\nperiod", "\"38ms\"\nperiod"),
    ));
    let report = report.unwrap_err().to_string();
    for said in [
        "must be at least 39000 µs",
        "1 request to `sign`, at most 12000 µs each + 3 requests to `safe`, at most 9000 µs each",
    ] {
        assert!(report.contains(said), "{report}");
    }
}

/// Of a core, the slots and the thread that keeps them.
#[test]
fn slots_are_part_of_the_load() {
    let description = described(SYSTEM);
    assert_eq!(description.outlook.cores[1].millionths, 800_000 + 10_000);
    assert!(description.outlook.cores[1].unlimited.is_empty());
    assert!(description.outlook.warnings.is_empty());
}

#[test]
fn servers_that_could_not_have_a_gate_are_refused() {
    let budget = (
        "priority = 200",
        "priority = 200\nbudget = \"1ms\"\nperiod = \"10ms\"",
    );
    assert_refused(
        &[budget],
        &["runs on time that never ends", "must not be here"],
    );
    assert_refused(
        &[("priority = 200", "priority = 200\npassive = true")],
        &["runs on time that never ends", "the budgets of clients"],
    );
    assert_refused(
        &[("priority = 200", "priority = 150")],
        &[
            "`flight` would delay the gate of `sign`",
            "must be above 151",
        ],
    );
    assert_refused(
        &[("priority = 120", "priority = 111")],
        &[
            "`camera` would be in the way of a request of `radio`",
            "must not be 111",
        ],
    );
    assert_refused(
        &[(
            "clients = [\n",
            "clients = [\n  { component = \"keys\", requests = 0 },\n",
        )],
        &["`keys` is its own client", "would wait for itself"],
    );
    assert_refused(
        &[(
            "priority = 200",
            "priority = 200\n[[component.thread]]\nname = \"more\"\npriority = 3\npassive = true",
        )],
        &["`keys` has a gate, and a thread of its own"],
    );
    assert_refused(
        &[("priority = 200", "priority = 200\nrestart = \"always\"")],
        &["`keys` cannot be restarted", "it has a gate"],
    );
}

#[test]
fn operations_that_lend_their_time_are_refused() {
    let plain = "[[component]]\nname = \"plain\"\nexecutable = \"hello-shouter\"\npriority = 210\npassive = true\n\n\
                 [[endpoint]]\nname = \"shout\"\nserver = \"plain\"\nclients = [{ component = \"keys\" }]\n\n[[resource]]";
    assert_refused(
        &[("[[resource]]", plain)],
        &[
            "`keys` calls `plain` on the time of its clients",
            "time of its own",
        ],
    );
    let time = plain.replace("passive = true", "budget = \"5ms\"\nperiod = \"5ms\"");
    described(&with(&[("[[resource]]", &time)]));
}

/// Its component has no time either, since nothing makes it a gate's.
#[test]
fn a_gate_without_a_server_is_refused() {
    for (server, said) in [
        ("", "the endpoint `sign` has no server"),
        ("server = \"kays\"\n", "did you mean `keys`?"),
    ] {
        let text = with(&[("server = \"keys\"\n", server)]);
        let report = check(&source(&text)).unwrap_err().to_string();
        assert!(report.contains(said), "{report}");
    }
}

#[test]
fn a_component_has_one_gate() {
    let second = r#"
[[resource]]
name = "safe"
protocol = "fifo"
server = "keys"
length = "3ms"
clients = [{ component = "radio" }]
"#;
    let report = check(&source(&(with(&[]) + second))).unwrap_err();
    let shown = report.to_string();
    assert_eq!(report.findings.len(), 1, "{shown}");
    assert!(shown.contains("`keys` serves both"), "{shown}");
}

#[test]
fn a_gate_calls_no_other_gate() {
    let second = r#"
[[component]]
name = "store"
executable = "hello-shouter"
priority = 210

[[resource]]
name = "safe"
protocol = "fifo"
server = "store"
length = "3ms"
clients = [{ component = "keys" }]
"#;
    let report = check(&source(&(with(&[]) + second))).unwrap_err();
    let shown = report.to_string();
    assert_eq!(report.findings.len(), 1, "{shown}");
    assert!(
        shown.contains("`keys` has a gate, and is a client of one"),
        "{shown}"
    );
}

#[test]
fn clients_that_a_gate_could_not_serve_are_refused() {
    let camera = "{ component = \"camera\", requests = 2 }";
    assert_refused(
        &[("component = \"camera\"", "component = \"camerra\"")],
        &["no component is called `camerra`", "did you mean `camera`?"],
    );
    assert_refused(
        &[(
            "component = \"radio\", as = \"signer\"",
            "component = \"camera\"",
        )],
        &["`camera` is a client of `sign` twice", "requests = N"],
    );
    let passive = ("budget = \"40ms\"\nperiod = \"100ms\"", "passive = true");
    assert_refused(
        &[passive],
        &["`camera` has no time to pay with", "is passive"],
    );
    assert_refused(
        &[(camera, "{ component = \"camera\", badge = 2 }")],
        &["the gate gives `camera` its badge"],
    );
    assert_refused(
        &[(camera, "{ component = \"camera\", longest = \"1ms\" }")],
        &["`longest` has no effect behind a gate", "`length`"],
    );
    assert_refused(
        &[(camera, "{ component = \"camera\", rights = \"grant\" }")],
        &["`camera` may do more than call", "remove `rights`"],
    );
    assert_refused(
        &[(camera, "{ component = \"camera\", requests = -1 }")],
        &["number of requests -1 is out of range", "must be from 0"],
    );
    assert_refused(
        &[("exit = true", "exit = true\nready = true\n[[component.thread]]\nname = \"more\"\npriority = 3\npassive = true")],
        &["`camera` is a client of a gate, and has other threads"],
    );
    assert_refused(
        &[("exit = true", "exit = true\nrestart = \"on-fault\"")],
        &["`camera` cannot be restarted", "is a client of one"],
    );
    let edf = "[[edf]]\nname = \"edf\"\nmode = \"preemptive\"\npriority = 125\ntimer = \"hpet\"\nadmission = \"none\"\n\
               tasks = [{ component = \"camera\", period = \"100ms\", budget = \"40ms\" }]\n\n[[resource]]";
    assert_refused(
        &[
            ("budget = \"40ms\"\nperiod = \"100ms\"\n", ""),
            ("[[resource]]", edf),
        ],
        &[
            "the time of `camera` is moved by two",
            "a task of an `[[edf]]`",
        ],
    );
}

#[test]
fn a_client_is_what_its_kind_says() {
    assert_refused(
        &[(
            "budget = \"40ms\"\nperiod = \"100ms\"",
            "budget = \"40ms\"\nperiod = \"40ms\"",
        )],
        &[
            "the budget of `camera` never runs out",
            "kind = \"best-effort\"",
        ],
    );
    assert_refused(
        &[(
            "budget = \"5ms\"\nperiod = \"5ms\"",
            "budget = \"5ms\"\nperiod = \"50ms\"",
        )],
        &[
            "`archive` has a budget, and is of best effort",
            "must be equal to the period, 50000 µs",
        ],
    );
    assert_refused(
        &[(
            "kind = \"best-effort\"",
            "kind = \"best-effort\", requests = 1",
        )],
        &["nothing is promised to `archive`"],
    );
    assert_refused(
        &[("priority = 10\n", "priority = 115\n")],
        &[
            "`archive`, of best effort, would keep `radio` from its budget",
            "must be below 110",
        ],
    );
    assert_refused(
        &[("deadline = \"50ms\"", "budget = \"5ms\"\nperiod = \"50ms\"")],
        &["`flight` has its time in slots", "remove it"],
    );
    assert_refused(
        &[("core = 1\npriority = 150", "priority = 117")],
        &[
            "`flight` would not have its slots for itself",
            "must be above 120",
        ],
    );
    let passive = "[[component]]\nname = \"plain\"\nexecutable = \"hello-shouter\"\npriority = 190\npassive = true\n\n\
                   [[endpoint]]\nname = \"shout\"\nserver = \"plain\"\nclients = [{ component = \"flight\" }]\n\n[[resource]]";
    assert_refused(
        &[("[[resource]]", passive)],
        &["a slot of `flight` may end while `plain` works on its time"],
    );
    assert_refused(
        &[("kind = \"table-driven\", ", "kind = \"best-guess\", ")],
        &["best-guess", "table-driven"],
    );
}

#[test]
fn slots_that_cannot_be_kept_are_refused() {
    let two = "slots = [{ at = \"0ms\", length = \"50ms\" }, { at = \"60ms\", length = \"30ms\" }]";
    assert_refused(
        &[(&format!(", {two}"), "")],
        &["`flight` has no slots", "would never run"],
    );
    assert_refused(&[(two, "slots = []")], &["`flight` has no slots"]);
    assert_refused(
        &[
            ("requests = 2", two),
            ("kind = \"table-driven\", ", "kind = \"table-driven\", "),
        ],
        &["`camera` has slots, and is not table-driven"],
    );
    assert_refused(
        &[("cycle = \"100ms\"\n", "")],
        &["the slots of `flight` have no cycle", "cycle = \"100ms\""],
    );
    assert_refused(
        &[("cycle = \"100ms\"", "cycle = \"100us\"")],
        &["a cycle of 100 µs", "must be from 500"],
    );
    assert_refused(
        &[("cycle = \"100ms\"", "cycle = \"80ms\"")],
        &["the slot ends at 90000 µs", "must end by 80000 µs"],
    );
    assert_refused(
        &[("at = \"60ms\"", "at = \"40ms\"")],
        &["the slot begins at 40000 µs", "must be 50000 µs or later"],
    );
    assert_refused(
        &[(
            "at = \"60ms\", length = \"30ms\"",
            "at = \"60ms\", length = 19",
        )],
        &["a slot of 19 µs", "must be at least 20 µs"],
    );
    assert_refused(
        &[("at = \"60ms\"", "at = 60100")],
        &["multiples of 100 µs", "must be multiples of 500 µs or more"],
    );
    let best_effort = ("kind = \"table-driven\", ", "requests = 0, ");
    let time = (
        "deadline = \"50ms\"",
        "budget = \"40ms\"\nperiod = \"100ms\"",
    );
    assert_refused(
        &[
            (two, "requests = 0"),
            ("kind = \"table-driven\", ", ""),
            time,
        ],
        &["a cycle, and no slots"],
    );
    assert_refused(
        &[best_effort, time],
        &[
            "`flight` has slots, and is not table-driven",
            "kind = \"table-driven\"",
        ],
    );
}

#[test]
fn slots_of_two_clients_do_not_overlap() {
    let second = "\n[[component]]\nname = \"rudder\"\nexecutable = \"hello-visitor\"\ncore = 1\npriority = 150\n\n[[component]]\nname = \"camera\"";
    let at = |ms: u32| {
        let client = format!(
            "clients = [\n  {{ component = \"rudder\", kind = \"table-driven\", slots = [{{ at = \"{ms}ms\", length = \"10ms\" }}] }},\n"
        );
        with(&[
            ("\n[[component]]\nname = \"camera\"", second),
            ("clients = [\n", &client),
        ])
    };
    described(&at(50));
    let report = check(&source(&at(45))).unwrap_err().to_string();
    assert!(
        report.contains("slots of `flight` and `rudder` overlap on core 1"),
        "{report}"
    );
    assert!(report.contains("must be 50000 µs or later"), "{report}");
}

#[test]
fn what_is_assumed_must_make_sense() {
    let length = "length = { low = \"1ms\", high = \"2ms\" }";
    assert_refused(
        &[(&format!("{length}\n"), "")],
        &[
            "`sign` does not say how long an operation takes",
            "length = \"2ms\"",
        ],
    );
    assert_refused(
        &[(length, "length = 19")],
        &["operations of 19 µs", "must be at least 20 µs"],
    );
    assert_refused(
        &[(length, "length = { low = \"3ms\", high = \"2ms\" }")],
        &["a higher criticality assumes less", "must be at least 3000"],
    );
    assert_refused(
        &[(length, "length = { high = \"2ms\" }")],
        &["says nothing of the criticality `low`", "low, high"],
    );
    assert_refused(
        &[(
            length,
            "length = { low = \"1ms\", high = \"2ms\", top = \"2ms\" }",
        )],
        &["unknown criticality `top`", "low, high"],
    );
    assert_refused(
        &[(length, "length = [1, 2]")],
        &["one for each criticality"],
    );
    let clusters = |given: &'static str| format!("{given}\ncycle =");
    assert_refused(
        &[("cycle =", &clusters("clusters = 1"))],
        &[
            "are on more than 1 cores",
            "must be at least 2: the cores 0, 1",
        ],
    );
    assert_refused(
        &[("cycle =", &clusters("clusters = 3"))],
        &["requests from 3 cores", "must be from 1 to 2"],
    );
}

#[test]
fn a_budget_below_what_requests_take_is_refused() {
    assert_refused(
        &[("budget = \"40ms\"", "budget = \"9ms\"")],
        &[
            "the requests of `camera` may take 10000 µs, and its budget is 9000 µs",
            "must be at least 10000 µs",
            "2 requests to `sign`, at most 5000 µs each",
        ],
    );
    assert_refused(
        &[("length = \"30ms\"", "length = \"9ms\"")],
        &[
            "the requests of `flight` may take 10000 µs, and its shortest slot is 9000 µs",
            "at criticality `high`",
        ],
    );
}

#[test]
fn keys_of_gates_are_for_gates() {
    let plain = [
        ("\"mc-ipc\"", "\"none\""),
        ("priority = 200", "priority = 200\npassive = true"),
        ("deadline = \"50ms\"", "budget = \"5ms\"\nperiod = \"50ms\""),
    ];
    let report = check(&source(&with(&plain))).unwrap_err().to_string();
    for key in ["length", "cycle", "kind", "slots", "requests"] {
        let said = format!("`{key}` has no effect here");
        assert!(report.contains(&said), "`{said}` is not in:\n{report}");
    }
    let endpoint = "[[endpoint]]\nname = \"more\"\nserver = \"archive\"\nclients = [{ component = \"radio\", requests = 1 }]\n\n[[resource]]";
    assert_refused(
        &[("[[resource]]", endpoint)],
        &[
            "`requests` has no effect here",
            "`mc-ipc`, `fifo` or `priority`",
        ],
    );
}

#[test]
fn a_gate_gets_threads_and_what_they_work_with() {
    let description = described(SYSTEM);
    let keys = component(&description, "keys");
    let names: Vec<&str> = keys.threads.iter().map(|of| of.name.as_str()).collect();
    let expected = [
        "keys",
        "server",
        "spinner-0",
        "spinner-1",
        "spinner-2",
        "spinner-3",
        "table-1",
    ];
    assert_eq!(names, expected);
    // The gate never runs out of time, and may give its server the priority of any client.
    let gate = &keys.threads[0];
    assert_eq!(gate.time.budget_us, gate.time.period_us);
    assert_eq!((gate.priority, gate.mcp), (200, 151));
    // Spinners are where their clients are, and as urgent.
    let spinners = keys.threads[2..6].iter();
    let placed = spinners.map(|of| (of.time.core, of.priority, of.passive));
    let expected = [
        (1, 150, true),
        (0, 120, true),
        (0, 110, true),
        (0, 10, true),
    ];
    assert_eq!(placed.collect::<Vec<_>>(), expected);
    let table = &keys.threads[6];
    assert_eq!(
        (table.time.core, table.priority, table.passive),
        (1, 200, false)
    );
    // The gate hears when time runs out that is not spent by its owner.
    let endpoint = object(keys, "sign");
    let handled = |thread: usize| {
        let handler = keys.threads[thread].timeout_handler.unwrap();
        assert_eq!(Object::Endpoint(handler.endpoint), endpoint);
        handler.badge
    };
    assert_eq!(handled(1), Sender::ServerTimeout.badge());
    for client in 0..4 {
        let badge = Sender::SpinnerTimeout(ClientId(client)).badge();
        assert_eq!(handled(2 + client), badge);
    }
    assert!(gate.timeout_handler.is_none());
    let faults = |thread: usize| keys.threads[thread].fault_handler;
    let handler = faults(1).unwrap();
    assert_eq!(Object::Endpoint(handler.endpoint), endpoint);
    assert_eq!(handler.badge, Sender::ServerFault.badge());
    // Those of the library's own threads are the launcher's to report.
    assert!(faults(0).is_none() && faults(2).is_none());
}

/// Which one first, in a notification of their own, and then that there is one.
#[test]
fn a_gate_is_told_when_a_client_is_gone() {
    let description = described(SYSTEM);
    let keys = component(&description, "keys");
    let end = |name: &str, badge| (object(keys, name), badge);
    for (number, client) in ["flight", "camera", "radio", "archive"].iter().enumerate() {
        let signals = &component(&description, client).threads[0].end_signals;
        let signals = signals
            .iter()
            .map(|signal| (Object::Notification(signal.notification), signal.badge));
        let expected = [
            end(names::ENDS, 1 << number),
            end(names::SIGNALS, Signals::ends()),
        ];
        assert_eq!(signals.collect::<Vec<_>>(), expected, "{client}");
    }
}

#[test]
fn a_gate_finds_capabilities_of_its_clients_one_after_the_other() {
    let description = described(SYSTEM);
    let keys = component(&description, "keys");
    let clients = ["flight", "camera", "radio", "archive"];
    let ids: Vec<ThreadId> = clients.iter().map(|of| main_of(&description, of)).collect();
    let tcbs = ids.iter().map(|id| Object::Tcb(*id));
    assert_eq!(
        objects(keys, names::CLIENT_TCBS, 4),
        tcbs.collect::<Vec<_>>()
    );
    let contexts = ids.iter().map(|id| Object::SchedContext(*id));
    assert_eq!(
        objects(keys, names::CLIENT_CONTEXTS, 4),
        contexts.collect::<Vec<_>>()
    );
    for (client, name) in clients.iter().enumerate() {
        let badge = Sender::Client(ClientId(client)).badge();
        let alias = if *name == "radio" { "signer" } else { "sign" };
        let grants = &component(&description, name).grants;
        let grant = grants.iter().find(|grant| grant.name == alias).unwrap();
        assert_eq!((grant.object, grant.badge), (object(keys, "sign"), badge));
        assert!(grant.calls_only);
        let spinner = after(keys, names::SPINNER_GATES, client);
        let badge = Sender::Spinner(ClientId(client)).badge();
        assert_eq!(
            (spinner.object, spinner.badge),
            (object(keys, "sign"), badge)
        );
    }
    // Two reply objects for each client, and one to receive with.
    let replies = objects(keys, names::REPLIES, 9);
    assert!(replies.iter().all(|of| matches!(of, Object::Reply(_))));
    // Signals are heard where they are bound.
    let signals = object(keys, names::SIGNALS);
    for (name, badge) in [
        (names::DONE.to_owned(), Signals::server()),
        (names::table_tick(1), Signals::tick(1)),
    ] {
        let signal = after(keys, &name, 0);
        assert_eq!((signal.object, signal.badge), (signals, badge));
    }
    // Slots begin with a signal to their client.
    let slot = object(component(&description, "flight"), "sign.slot");
    assert_eq!(object(keys, &names::slot(0)), slot);
    assert_eq!(object(keys, "sched-control.1"), Object::SchedControl(1));
}

#[test]
fn a_gate_is_told_what_the_description_says() {
    let gate: Gate = packed(&described(SYSTEM));
    assert_eq!(
        (gate.name.as_str(), gate.protocol),
        ("sign", Protocol::McIpc)
    );
    assert_eq!((gate.longest_us, gate.clusters), (2_000, 2));
    let kinds: Vec<Kind> = gate.clients.iter().map(|of| of.kind).collect();
    let sporadic = |budget_us, period_us| Kind::Sporadic {
        budget_us,
        period_us,
    };
    let expected = [
        Kind::TableDriven,
        sporadic(40_000, 100_000),
        sporadic(60_000, 250_000),
        Kind::BestEffort,
    ];
    assert_eq!(kinds, expected);
    // The first one has two slots in each cycle, the last one no time that is meant for requests.
    let allowed = gate.clients.iter().map(|of| (of.requests, of.every_us));
    let expected = [(2, 100_000), (2, 100_000), (1, 250_000), (0, 5_000)];
    assert_eq!(allowed.collect::<Vec<_>>(), expected);
    let badges: BTreeSet<u64> = gate.clients.iter().map(|of| of.badge).collect();
    assert_eq!(badges.len(), 4);
    let slot = |at_us, length_us| Slot {
        client: 0,
        at_us,
        length_us,
    };
    let slots = Slots {
        core: 1,
        cycle_us: 100_000,
        granule_us: 10_000,
        slots: vec![slot(0, 50_000), slot(60_000, 30_000)],
    };
    assert_eq!(gate.tables, [slots]);
}

/// What a trace is compared with is what budgets are compared with.
#[test]
fn traces_are_to_show_what_the_description_says() {
    let description = described(SYSTEM);
    let [plan] = &description.expected.gates[..] else {
        panic!("one gate");
    };
    assert_eq!(
        (plan.gate.as_str(), plan.server.as_str()),
        ("keys", "keys/server")
    );
    assert_eq!((&plan.clusters[..], plan.longest_us), (&[1, 1][..], 2_000));
    for (client, level) in [("flight", "high"), ("camera", "low"), ("radio", "high")] {
        let asked = &row(&description, client, level).gates[0];
        let planned = plan.clients.iter().find(|of| of.name == client).unwrap();
        let caller = Caller {
            processors: 1,
            is_first: planned.is_first,
        };
        assert_eq!(
            planned.assumed.unwrap().delay(caller),
            asked.each_us.unwrap()
        );
    }
    assert_eq!(plan.clients[3].assumed, None);
}

#[test]
fn timeout_badges_that_a_gate_could_not_tell_apart_are_refused() {
    let badge = "timeout-badge = 7\n";
    assert_refused(
        &[
            ("priority = 120\n", &format!("priority = 120\n{badge}")),
            ("priority = 110\n", &format!("priority = 110\n{badge}")),
        ],
        &[
            "two clients of a gate have the timeout badge 7",
            "the builder chooses",
        ],
    );
}

/// As many as there may be.
#[test]
fn a_gate_has_room_for_all_its_clients() {
    let gate = |count: usize| {
        let mut text = String::from("name = \"test\"\n");
        let mut clients = String::new();
        for number in 0..count {
            text += &format!(
                "[[component]]\nname = \"c{number}\"\nexecutable = \"hello-visitor\"\npriority = {}\n\
                 budget = \"1ms\"\nperiod = \"100ms\"\nexit = true\n",
                1 + 2 * number
            );
            clients += &format!("{{ component = \"c{number}\" }}, ");
        }
        text + &format!(
            "[[component]]\nname = \"keys\"\nexecutable = \"hello-shouter\"\npriority = 200\nlog = \"info\"\nconsole = true\n\
             [log]\npriority = 1\nbudget = \"1ms\"\nperiod = \"100ms\"\n\
             [[resource]]\nname = \"sign\"\nprotocol = \"mc-ipc\"\nserver = \"keys\"\nlength = \"100us\"\nclients = [{clients}]\n"
        )
    };
    described(&gate(MOST_CLIENTS));
    let report = check(&source(&gate(MOST_CLIENTS + 1)))
        .unwrap_err()
        .to_string();
    assert!(
        report.contains("97 clients") && report.contains("a gate can have 96"),
        "{report}"
    );
}

fn component<'d>(description: &'d Description, name: &str) -> &'d Component {
    let mut components = description.system.components.iter();
    components.find(|component| component.name == name).unwrap()
}

fn main_of(description: &Description, name: &str) -> ThreadId {
    let mut components = description.system.components.iter();
    let position = components.position(|component| component.name == name);
    ThreadId {
        component: position.unwrap() as u32,
        thread: 0,
    }
}

/// The capability so many slots behind the one called `name`; those between have no names.
#[track_caller]
fn after<'d>(component: &'d Component, name: &str, place: usize) -> &'d Grant {
    let first = component.grants.iter().position(|grant| grant.name == name);
    let first = first.unwrap_or_else(|| panic!("no `{name}`"));
    let behind = &component.grants[first + 1..][..place];
    assert!(
        behind.iter().all(|grant| grant.name.is_empty()),
        "{behind:?}"
    );
    &component.grants[first + place]
}

#[track_caller]
fn object(component: &Component, name: &str) -> Object {
    after(component, name, 0).object
}

#[track_caller]
fn objects(component: &Component, name: &str, count: usize) -> Vec<Object> {
    (0..count)
        .map(|place| after(component, name, place).object)
        .collect()
}

#[test]
fn whoever_controls_a_client_can_tell_that_it_is_gone() {
    let text = SYSTEM.replace(
        "name = \"camera\"\n",
        "name = \"camera\"\ncontrols = [\"radio\"]\n",
    );
    assert_ne!(text, SYSTEM);
    let description = described(&text);
    let camera = component(&description, "camera");
    let tells = after(camera, "radio.sign", 0);
    let radio = ClientId(2);
    assert_eq!(
        tells.object,
        object(component(&description, "keys"), "sign")
    );
    assert_eq!(tells.badge, Sender::Supervisor(radio).badge());
    assert!(tells.calls_only);
    let others = component(&description, "archive").grants.iter();
    assert_eq!(
        others.filter(|grant| grant.name.ends_with(".sign")).count(),
        0
    );
}
