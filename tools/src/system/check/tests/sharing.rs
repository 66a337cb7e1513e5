//! Resources that are shared by a protocol.

use sandglass_description::policy::sharing::{badge, Entry, Protocol, Requester, Sharing};
use sandglass_description::policy::Table;
use sandglass_description::{Component, Object, ThreadId};

use super::super::{check, Content, Description};
use super::source;

const SYSTEM: &str = r#"
name = "test"

[[component]]
name = "high"
executable = "hello-visitor"
priority = 120
budget = "1ms"
period = "1ms"

[[component]]
name = "low"
executable = "hello-visitor"
priority = 90
budget = "1ms"
period = "10ms"

[[component]]
name = "outer"
executable = "hello-shouter"
priority = 120
passive = true

[[component]]
name = "inner"
executable = "hello-shouter"
priority = 120
passive = true

[[resource]]
name = "a"
protocol = "PROTOCOL"
server = "outer"
clients = [{ component = "high", badge = 5 }, { component = "low", badge = 6, as = "b" }]

[[resource]]
name = "inside"
protocol = "PROTOCOL"
server = "inner"
clients = [{ component = "outer", badge = 7 }, { component = "high" }]
"#;

fn with(protocol: &str) -> String {
    SYSTEM.replace("PROTOCOL", protocol)
}

fn checked(text: &str) -> Description {
    check(&source(text)).unwrap_or_else(|report| panic!("{report}"))
}

#[track_caller]
fn assert_refused(text: &str, said: &[&str]) {
    let report = check(&source(text)).unwrap_err().to_string();
    for expected in said {
        assert!(
            report.contains(expected),
            "`{expected}` is not in:\n{report}"
        );
    }
}

fn component<'d>(description: &'d Description, name: &str) -> &'d Component {
    let mut components = description.system.components.iter();
    components.find(|component| component.name == name).unwrap()
}

fn object(component: &Component, name: &str) -> Object {
    let mut grants = component.grants.iter();
    let grant = grants.find(|grant| grant.name == name);
    grant.unwrap_or_else(|| panic!("no `{name}`")).object
}

fn main_of(description: &Description, name: &str) -> ThreadId {
    let mut components = description.system.components.iter();
    ThreadId {
        component: components
            .position(|component| component.name == name)
            .unwrap() as u32,
        thread: 0,
    }
}

#[test]
fn a_ceiling_is_a_plain_endpoint() {
    for protocol in ["ceiling", "none"] {
        let description = checked(&with(protocol));
        assert_eq!(description.system.components.len(), 4);
        let outer = object(component(&description, "outer"), "a");
        assert_eq!(object(component(&description, "low"), "b"), outer);
    }
}

#[test]
fn a_proxy_stands_between_clients_and_servers() {
    let description = checked(&with("inheritance"));
    let proxy = component(&description, "sharing-inheritance");
    let thread = &proxy.threads[0];
    assert_eq!((thread.priority, thread.mcp), (121, 120));
    let requests = object(proxy, &proxy.name);
    let grant = |name: &str, thing: &str| {
        let component = component(&description, name);
        let grant = component.grants.iter().find(|grant| grant.name == thing);
        let grant = grant.unwrap();
        (grant.object, grant.badge)
    };
    assert_eq!(grant("high", "a"), (requests, 1));
    assert_eq!(grant("low", "b"), (requests, 2));
    assert_eq!(grant("outer", "inside"), (requests, 3));
    assert_eq!(grant("inner", "inside.done"), (requests, badge::DONE + 1));
    // What the servers see are the badges of the description.
    for (entry, badge, server, name) in [(0, 5, "outer", "a"), (2, 7, "inner", "inside")] {
        let expected = (object(component(&description, server), name), badge);
        assert_eq!(
            grant("sharing-inheritance", &format!("request.{entry}")),
            expected
        );
    }
}

#[test]
fn the_proxy_finds_who_asks_for_what() {
    let description = checked(&with("original-ceiling"));
    let table = description
        .files
        .iter()
        .find_map(|file| match &file.content {
            Content::Bytes(bytes) => Sharing::decode(bytes).ok(),
            Content::Path(_) => None,
        });
    let entry = |requester, resource| Entry {
        requester,
        resource,
    };
    let expected = Sharing {
        protocol: Protocol::OriginalCeiling,
        clients: vec![120, 90],
        resources: 2,
        entries: vec![
            entry(Requester::Client(0), 0),
            entry(Requester::Client(1), 0),
            entry(Requester::Server(0), 1),
            entry(Requester::Client(0), 1),
        ],
    };
    assert_eq!(table, Some(expected));
    let proxy = component(&description, "sharing-original-ceiling");
    let names: Vec<&str> = proxy
        .threads
        .iter()
        .map(|thread| thread.name.as_str())
        .collect();
    assert_eq!(names[1..], ["clock", "reminder"]);
    let parameter = |name: &str| {
        let mut parameters = proxy.parameters.iter();
        parameters
            .find(|parameter| parameter.name == name)
            .map(|parameter| parameter.value)
    };
    assert!(parameter("client.1.budget") <= parameter("client.1.period"));
    assert!(parameter("client.1.budget").is_some() && parameter("client.2.budget").is_none());
}

/// Nothing but what it needs: so much is counted here.
#[test]
fn a_proxy_gets_nothing_more_than_it_needs() {
    let description = checked(&with("inheritance"));
    let proxy = component(&description, "sharing-inheritance");
    let count = |wanted: fn(&Object) -> bool| {
        proxy
            .grants
            .iter()
            .filter(|grant| wanted(&grant.object))
            .count()
    };
    // Two clients, two servers, itself.
    assert_eq!(count(|object| matches!(object, Object::Tcb(_))), 5);
    assert_eq!(count(|object| matches!(object, Object::SchedContext(_))), 2);
    // Where it receives, a way on for each entry, and what its clock sends to.
    assert_eq!(count(|object| matches!(object, Object::Endpoint(_))), 6);
    assert_eq!(count(|object| matches!(object, Object::SchedControl(_))), 0);
}

#[test]
fn under_bandwidth_inheritance_the_proxy_handles_timeouts() {
    let description = checked(&with("bandwidth-inheritance"));
    let proxy = component(&description, "sharing-bandwidth-inheritance");
    let Object::Endpoint(requests) = object(proxy, &proxy.name) else {
        panic!("no endpoint");
    };
    let handler = component(&description, "inner").threads[0].timeout_handler;
    let handler = handler.unwrap();
    assert_eq!(
        (handler.endpoint, handler.badge),
        (requests, badge::TIMEOUT + 1)
    );
    let two = with("bandwidth-inheritance").replace(
        "name = \"inner\"",
        "name = \"inner\"\ntimeout-handler = \"outer\"",
    );
    assert_refused(&two, &["`inner` has two timeout handlers"]);
}

#[test]
fn a_ceiling_below_a_clients_priority_is_wrong() {
    let low = with("ceiling").replacen("priority = 120\npassive", "priority = 119\npassive", 1);
    assert_refused(
        &low,
        &[
            "the ceiling of `a` is below the priority of its client `high`",
            "at least 120",
        ],
    );
    // The proxy sets what is needed.
    checked(&low.replace("\"ceiling\"", "\"inheritance\""));
}

#[test]
fn servers_have_the_time_that_their_protocol_wants() {
    assert_refused(&with("best-effort"), &["`outer` has no time of its own"]);
    let active = "budget = \"1ms\"\nperiod = \"1ms\"";
    checked(&with("best-effort").replace("passive = true", active));
    for protocol in ["ceiling", "inheritance"] {
        let text = with(protocol).replacen("passive = true", active, 1);
        assert_refused(&text, &["`outer` has time of its own", "best-effort"]);
    }
}

/// A reply object for each thread that may wait, beside the endpoint's own.
#[test]
fn a_server_of_several_requests_gets_what_they_wait_with() {
    let blocking = with("blocking").replace(
        "{ component = \"high\" }",
        "{ component = \"high\", badge = 8 }",
    );
    let description = checked(&blocking);
    let outer = component(&description, "outer");
    for reply in ["a.reply", "a.reply.1", "a.reply.2"] {
        assert!(matches!(object(outer, reply), Object::Reply(_)), "{reply}");
    }
    assert_eq!(
        object(outer, "self.tcb"),
        Object::Tcb(main_of(&description, "outer"))
    );
    assert_refused(
        &blocking.replace("badge = 5", "badge = 1"),
        &["the badges 0 and 1 are those of interrupts"],
    );
    let thread = "passive = true\n[[component.thread]]\nname = \"second\"\npriority = 120\n";
    let workers = with("workers").replacen("passive = true\n", thread, 1);
    let description = checked(&workers.replacen("120\n\n", "120\npassive = true\n\n", 1));
    let outer = component(&description, "outer");
    assert!(matches!(object(outer, "a.reply.second"), Object::Reply(_)));
    let active = "120\nbudget = \"1ms\"\nperiod = \"1ms\"\n\n";
    assert_refused(
        &workers.replacen("120\n\n", active, 1),
        &["the worker `second` has time of its own"],
    );
}

/// Behind a proxy the main thread serves, else a thread each.
#[test]
fn a_thread_serves_one_resource() {
    let two = |protocol: &str| {
        let text = with(protocol).replace("server = \"inner\"", "server = \"outer\"");
        text.replace("{ component = \"outer\", badge = 7 }, ", "")
    };
    for protocol in ["none", "ceiling", "inheritance", "original-ceiling"] {
        let report = check(&source(&two(protocol))).unwrap_err();
        assert_eq!(report.findings.len(), 1, "{report}");
        let shown = report.to_string();
        assert!(shown.contains("`outer` serves both `a` and `inside`"));
        assert!(shown.contains("split it into two components"));
    }
    let thread = "passive = true\n[[component.thread]]\nname = \"second\"\npriority = 120\n\
                  passive = true\n";
    let threads = |protocol: &str| two(protocol).replacen("passive = true\n", thread, 1);
    checked(&threads("ceiling"));
    assert_refused(&threads("inheritance"), &["its main thread serves one"]);
    let beside = "\n[[endpoint]]\nname = \"beside\"\nserver = \"inner\"\n";
    assert_refused(
        &(with("ceiling") + beside),
        &["`inner` serves both `beside` and `inside`"],
    );
    // Whoever serves endpoints only has a loop of its own.
    let plain = beside.replace("inner", "low");
    checked(&(with("ceiling") + &plain + &plain.replace("beside", "further")));
}

/// A handler answers who called, which would be the proxy.
#[test]
fn a_timeout_policy_does_not_reach_behind_a_proxy() {
    let handler = "passive = true\ntimeout-handler = \"outer\"\n[[component.thread]]\n\
                   name = \"handler\"\npriority = 130\nbudget = \"1ms\"\nperiod = \"1ms\"\n\
                   ready = true\n";
    let policy = "\n[[timeout-policy]]\nserver = \"outer\"\nhandler = \"outer/handler\"\n";
    let policed = |protocol: &str| {
        let text = with(protocol).replacen("passive = true\n", handler, 1) + policy;
        check(&source(&text))
    };
    for protocol in ["ceiling", "none"] {
        policed(protocol).unwrap_or_else(|report| panic!("{report}"));
    }
    for (protocol, said) in [
        ("inheritance", "`outer` serves behind a proxy"),
        ("original-ceiling", "`outer` serves behind a proxy"),
        ("bandwidth-inheritance", "`outer` has two timeout handlers"),
    ] {
        let report = policed(protocol).unwrap_err();
        assert_eq!(report.findings.len(), 1, "{report}");
        let shown = report.to_string();
        assert!(
            shown.contains(said) && shown.contains("choose `ceiling`"),
            "{report}"
        );
    }
    let without = with("bandwidth-inheritance") + policy;
    assert_refused(&without, &["the proxy handles its timeouts"]);
}

#[test]
fn what_a_proxy_cannot_do_is_said() {
    let text = with("inheritance");
    assert_refused(
        &text.replace("badge = 5 }", "badge = 5, rights = \"grant\" }"),
        &["`high` may do more than call"],
    );
    assert_refused(
        &text.replace("priority = 120\nbudget", "priority = 254\nbudget"),
        &["needs a higher priority than all clients and servers"],
    );
    assert_refused(
        &text.replacen("\"inheritance\"", "\"original-ceiling\"", 1),
        &["`outer` has no time to lend", "have one protocol"],
    );
    let two_cores = text.replace(
        "name = \"test\"",
        "name = \"test\"\nmachine = { cores = 2 }",
    );
    assert_refused(
        &two_cores.replace("priority = 90", "priority = 90\ncore = 1"),
        &[
            "these protocols are for one core",
            "`ceiling` works across cores",
        ],
    );
    assert_refused(
        &text.replace("server = \"inner\"", ""),
        &["the endpoint `inside` has no server"],
    );
    assert_refused(
        &text.replacen("\"inheritance\"", "\"inheritence\"", 1),
        &[
            "inheritence",
            "bandwidth-inheritance",
            "did you mean `inheritance`?",
        ],
    );
}

/// The outer server makes threads.
fn spawning() -> String {
    let server = "executable = \"hello-shouter\"\npriority = 120";
    let text = with("ceiling").replacen("\"ceiling\"", "\"stack-spawning\"", 1);
    text.replacen(
        server,
        &format!("{server}\nspawns = {{ threads = 3, stack = \"5KiB\" }}"),
        1,
    )
}

#[test]
fn a_spawner_gets_what_its_threads_are_made_of() {
    let description = checked(&spawning());
    let outer = component(&description, "outer");
    let spawning = outer.spawning.unwrap();
    assert_eq!(
        (spawning.threads, spawning.stack_bytes, spawning.priority),
        (3, 8192, 121)
    );
    // Two pages of stack, one of the IPC buffer, a TCB: 14 KiB, of an untyped of 16.
    assert_eq!(
        (spawning.slots_per_thread(), spawning.bytes()),
        (5, 3 << 14)
    );
    assert_eq!(outer.threads[0].mcp, 121, "it may give out that priority");
    for reply in ["a.reply", "a.reply.1", "a.reply.2", "a.reply.3"] {
        assert!(matches!(object(outer, reply), Object::Reply(_)), "{reply}");
    }
    assert!(matches!(object(outer, "a.handover"), Object::Endpoint(_)));
    let own = Object::SchedContext(main_of(&description, "outer"));
    assert_eq!(object(outer, "self.context"), own);
    assert_eq!(component(&description, "inner").spawning, None);
}

/// A blocking server keeps a reply object for each thread that may wait for it.
#[test]
fn threads_that_are_made_later_are_clients_too() {
    let text = spawning().replacen("\"ceiling\"", "\"blocking\"", 1);
    let description = checked(&text.replace(
        "{ component = \"high\" }",
        "{ component = \"high\", badge = 8 }",
    ));
    let inner = component(&description, "inner");
    // Four of the outer server, one of the high task.
    assert!(matches!(object(inner, "inside.reply.5"), Object::Reply(_)));
    let grants = &inner.grants;
    assert!(!grants.iter().any(|grant| grant.name == "inside.reply.6"));
}

#[test]
fn what_a_spawner_cannot_do_is_said() {
    let text = spawning();
    let with_spawns = |keys: &str| {
        text.replace(
            "{ threads = 3, stack = \"5KiB\" }",
            &format!("{{ {keys} }}"),
        )
    };
    for (keys, said) in [
        ("threads = 0", "must be from 1 to 64"),
        ("threads = 65", "must be from 1 to 64"),
        ("threads = 3, stack = 100", "a stack of 100 bytes"),
        ("threads = 3, priority = 255", "must be from 0 to 254"),
        (
            "threads = 3, priority = 120",
            "the threads that `outer` makes must have a higher priority than it",
        ),
        ("stack = \"8KiB\"", "the key `threads` is missing"),
        ("threads = 3, time = 5", "unknown key `time`"),
        ("threads = 64", "`cspace-bits` must be from 10"),
        (
            "threads = 64, stack = \"16MiB\"",
            "the system's memory and files need 2048 MiB",
        ),
    ] {
        assert_refused(&with_spawns(keys), &[said]);
    }
    assert_refused(
        &with("stack-spawning"),
        &[
            "`outer` is not allowed to make threads",
            "spawns = { threads = N }",
        ],
    );
    assert_refused(
        &text.replacen("\"stack-spawning\"", "\"ceiling\"", 1),
        &[
            "`outer` has no use for threads that it makes",
            "stack-spawning",
        ],
    );
    assert_refused(
        &text.replacen(
            "passive = true",
            "passive = true\nbudget = 109\nperiod = \"10ms\"",
            1,
        ),
        &[
            "the budget that `outer` starts on is too small for 3 threads",
            "must be at least 110 µs",
        ],
    );
    assert_refused(
        &text.replacen(
            "passive = true",
            "passive = true\ntimeout-handler = \"high\"",
            1,
        ),
        &["`outer` has a timeout handler, which knows its main thread only"],
    );
    assert_refused(
        &text.replace("badge = 5 }", "badge = 5, rights = \"grant\" }"),
        &["`high` may send capabilities"],
    );
    let twice = text
        .replace("server = \"inner\"", "server = \"outer\"")
        .replace("{ component = \"outer\", badge = 7 }, ", "");
    assert_refused(
        &twice.replacen("\"ceiling\"", "\"stack-spawning\"", 1),
        &["`outer` serves both `a` and `inside`"],
    );
    let highest = text.replacen("priority = 120\nspawns", "priority = 254\nspawns", 1);
    assert_refused(&highest, &["must be below 254, the highest"]);
}
