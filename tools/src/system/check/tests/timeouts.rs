//! `[[timeout-policy]]`: what handlers are told and given, and what is refused.

use sandglass_description::policy::timeouts::{Last, Policy, Timeouts};
use sandglass_description::{Object, ThreadId};

use super::{described, one_finding, packed, RIGHT};

const POLICY: &str = r#"
[[timeout-policy]]
server = "server"
handler = "server/handler"
default = "reset"
clients = [{ component = "client", policy = "extend", by = "1ms", limit = 3, then = "kill" }]
"#;

/// With `old` replaced by `new` in a right description, exactly this is said.
#[track_caller]
fn assert_found(old: &str, new: &str, said: &[&str]) {
    one_finding(&format!("{RIGHT}{POLICY}"), old, new, said);
}

#[test]
fn the_handler_is_told_each_clients_policy() {
    let table: Timeouts = packed(&described(&format!("{RIGHT}{POLICY}")));
    assert_eq!(
        (table.endpoint.as_str(), table.default),
        ("work", Last::Reset)
    );
    let [client] = table.clients.as_slice() else {
        panic!("round robin never runs out: {:?}", table.clients);
    };
    assert_eq!((client.name.as_str(), client.badge), ("client", 7));
    assert_eq!((client.caller, client.budget_us), (Some(1), 2_000));
    let extend = Policy::Extend {
        by_us: 1_000,
        limit: 3,
        then: Last::Kill,
    };
    assert_eq!(client.policy, extend);
    assert!(table.emergency_badge != 0 && table.emergency_badge != 7);
}

#[test]
fn the_handler_gets_what_its_policies_take_and_nothing_more() {
    let client = ThreadId {
        component: 1,
        thread: 0,
    };
    let has = |text: &str, object: Object| {
        let server = &described(text).system.components[0];
        server.grants.iter().any(|grant| grant.object == object)
    };
    let policy = |line: &str| {
        let old = "policy = \"extend\", by = \"1ms\", limit = 3, then = \"kill\"";
        format!("{RIGHT}{POLICY}").replace(old, line)
    };
    let takes = |line: &str| {
        let text = policy(line);
        [
            has(&text, Object::SchedContext(client)),
            has(&text, Object::Tcb(client)),
            has(&text, Object::SchedControl(0)),
        ]
    };
    assert_eq!(takes("policy = \"rollback\""), [true, false, false]);
    assert_eq!(takes("policy = \"kill\""), [true, true, false]);
    let emergency = "policy = \"emergency\", budget = \"1ms\"";
    assert_eq!(takes(emergency), [true, false, true]);
    let extend = "policy = \"extend\", by = \"1ms\", limit = 2, then = \"kill\"";
    assert_eq!(takes(extend), [true, true, true]);
}

#[test]
fn time_without_a_badge_gets_one() {
    let text = format!("{RIGHT}{POLICY}").replace("timeout-badge = 7", "");
    let description = described(&text);
    let given = description.system.components[1].threads[0].time.badge;
    assert!(given != 0);
    assert_eq!(packed::<Timeouts>(&description).clients[0].badge, given);
}

#[test]
fn policies_of_what_is_not_there_are_refused() {
    assert_found(
        "server = \"server\"\nhandler",
        "server = \"sever\"\nhandler",
        &["no component is called `sever`", "did you mean `server`?"],
    );
    assert_found(
        "handler = \"server/handler\"",
        "handler = \"server/handle\"",
        &["there is no thread `server/handle`"],
    );
    assert_found(
        "{ component = \"client\", policy",
        "{ component = \"cleint\", policy",
        &["no component is called `cleint`"],
    );
    assert_found(
        "policy = \"extend\"",
        "policy = \"extent\"",
        &["unknown value", "did you mean `extend`?"],
    );
    assert_found(
        "default = \"reset\"",
        "endpoint = \"wrok\"",
        &["does not serve `wrok`", "did you mean `work`?"],
    );
}

#[test]
fn who_cannot_handle_is_refused() {
    assert_found(
        "timeout-handler = \"server\"\n",
        "",
        &[
            "do not go to `server/handler`",
            "timeout-handler = \"server\"",
        ],
    );
    assert_found(
        "handler = \"server/handler\"",
        "handler = \"server\"",
        &["no time of its own"],
    );
    assert_found(
        "ready = true\n",
        "",
        &[
            "`server/handler` does not signal when it is ready",
            "add `ready = true`",
        ],
    );
    assert_found(
        "priority = 201",
        "priority = 199",
        &["too low", "delayed by the server"],
    );
    assert_found(
        "passive = true\n",
        "passive = true\nbudget = \"1ms\"\nperiod = \"2ms\"\n",
        &["starts on a budget that can run out"],
    );
}

#[test]
fn policies_that_mean_nothing_are_refused() {
    assert_found("by = \"1ms\", ", "", &["needs `by`"]);
    assert_found("limit = 3, ", "", &["needs `limit`"]);
    assert_found("limit = 3", "limit = 0", &["limit 0 is out of range"]);
    assert_found(
        "limit = 3",
        "limit = 8",
        &["10000 µs of 10000 µs", "below the period"],
    );
    assert_found("by = \"1ms\"", "by = 0", &["an extension of 0 µs"]);
    assert_found(
        "by = \"1ms\", ",
        "by = \"1ms\", budget = \"1ms\", ",
        &["`budget` is not a key of this policy"],
    );
    assert_found(
        "policy = \"extend\", by = \"1ms\", limit = 3, then = \"kill\"",
        "policy = \"emergency\", budget = \"10ms\"",
        &[
            "an emergency budget of 10000 µs",
            "below the client's period",
        ],
    );
    assert_found(
        "component = \"client\", policy = \"extend\", by = \"1ms\", limit = 3, then = \"kill\"",
        "component = \"other\", policy = \"rollback\"",
        &["the budget of `other` never runs out"],
    );
    assert_found(
        "component = \"client\", policy = \"extend\", by = \"1ms\", limit = 3, then = \"kill\"",
        "component = \"server/handler\", policy = \"rollback\"",
        &["is not a client of `server`"],
    );
}
