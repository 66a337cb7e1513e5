//! Clients of a gate that ask for others.

use sandglass_abi::rights::Rights;
use sandglass_description::policy::allocations::{Ahead, Allocations};
use sandglass_description::policy::mc_ipc::{names, Courier};
use sandglass_description::policy::Table;
use sandglass_description::{Component, MemorySource, Object};

use super::super::{check, Content, Description};
use super::{changed, described, refused, source};

/// A time manager with a scheduler of partitions and another client, and a gate whose couriers ask for a thread and that client.
const SYSTEM: &str = r#"
name = "test"
machine = { memory = 64 }

[time-manager]
name = "time"
priority = 150
shortest-period = "4ms"
clients = [
  { component = "windows", share = "1/4" },
  { component = "loop", tasks = [{ budget = "500us", period = "10ms", deadline = "4ms" }] },
]

[partitions]
name = "windows"
order = "frames"
priority = 151
time = "time"

[[frame]]
name = "frame"
length = "20ms"
windows = [{ partition = "guidance", at = "0us", length = "2ms" }]

[[partition]]
name = "guidance"
threads = [
  { component = "pilot", kind = "periodic", priority = 2, period = "20ms" },
  { component = "radio", kind = "sporadic", priority = 1, interval = "20ms", arrivals = ["first"] },
]

[[component]]
name = "pilot"
executable = "hello-visitor"
priority = 149

[[component]]
name = "radio"
executable = "hello-visitor"
priority = 149

[[component]]
name = "loop"
executable = "hello-visitor"
priority = 50
exit = true

[[component]]
name = "keys"
executable = "hello-shouter"
priority = 200

[[component]]
name = "first"
executable = "courier"
priority = 170
budget = "400us"
period = "20ms"

[[component]]
name = "second"
executable = "courier"
priority = 160
budget = "500us"
period = "10ms"

[[resource]]
name = "seal"
protocol = "mc-ipc"
server = "keys"
length = "100us"
clients = [
  { component = "first", on-behalf-of = ["pilot", "radio"] },
  { component = "second", as = "there", on-behalf-of = ["loop"] },
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

fn component<'d>(description: &'d Description, name: &str) -> &'d Component {
    let mut components = description.system.components.iter();
    components.find(|component| component.name == name).unwrap()
}

/// The table that a component is given under its name.
fn packed<T: Table>(description: &Description, of: &str) -> T {
    let seen = &component(description, of).maps;
    let mut files = description.files.iter().filter(|file| {
        let is_named = description.system.memory[file.memory].name == T::NAME;
        is_named && seen.iter().any(|map| map.memory as usize == file.memory)
    });
    match files.next().map(|file| &file.content) {
        Some(Content::Bytes(bytes)) => T::decode(bytes).unwrap(),
        _ => panic!("no table `{}` of `{of}`", T::NAME),
    }
}

#[test]
fn a_courier_and_those_it_asks_for_have_what_they_talk_by() {
    let description = described(SYSTEM);
    let table: Courier = packed(&description, "first");
    let expected = Courier {
        gate: "seal".to_owned(),
        endpoint: "seal".to_owned(),
        threads: vec!["pilot".to_owned(), "radio".to_owned()],
    };
    assert_eq!(table, expected);
    let other: Courier = packed(&description, "second");
    assert_eq!(other.endpoint, "there");
    let courier = component(&description, "first");
    for (number, name) in ["pilot", "radio"].into_iter().enumerate() {
        let of = component(&description, name);
        // A page for the two, that nobody else sees.
        let memory = description.system.memory.iter();
        let mail = names::mail("seal", name);
        let mail = memory
            .clone()
            .position(|memory| memory.name == mail)
            .unwrap();
        assert!(matches!(
            description.system.memory[mail].source,
            MemorySource::New { bytes: 4096 }
        ));
        let sees = |component: &Component| {
            let mut maps = component.maps.iter();
            maps.any(|map| map.memory as usize == mail && map.writable)
        };
        let who = description.system.components.iter().filter(|of| sees(of));
        let who: Vec<&str> = who.map(|of| of.name.as_str()).collect();
        assert_eq!(who.len(), 2, "{who:?}");
        assert!(who.contains(&"first") && who.contains(&name), "{who:?}");
        // It may signal, with a flag of its own, and not wait.
        let post = of
            .grants
            .iter()
            .find(|grant| grant.name == names::post("seal"));
        let wait = courier
            .grants
            .iter()
            .find(|grant| grant.name == names::POSTED);
        let (post, wait) = (post.unwrap(), wait.unwrap());
        assert!(matches!(post.object, Object::Notification(_)));
        assert_eq!((post.object, post.badge), (wait.object, 1 << number));
        assert_eq!(post.rights, Rights::WRITE.raw());
        assert!(of.grants.iter().all(|grant| grant.name != "seal"));
    }
}

/// The manager leaves time for couriers that are above its turns, and for none that are on another core.
#[test]
fn reservations_above_turns_are_counted_with_them() {
    let ahead = |text: &str| {
        let table: Allocations = packed(&described(text), "time");
        table.ahead
    };
    let of = |budget_us, period_us| Ahead {
        budget_us,
        period_us,
    };
    assert_eq!(ahead(SYSTEM), [of(400, 20_000), of(500, 10_000)]);
    let elsewhere = with(&[
        ("memory = 64", "memory = 64, cores = 2"),
        (
            "executable = \"courier\"",
            "core = 1\nexecutable = \"courier\"",
        ),
        ("budget = \"400us\"", "budget = \"700us\""),
        ("budget = \"500us\"\n", "budget = \"700us\"\n"),
    ]);
    // The first of them is the one that has moved.
    assert_eq!(ahead(&elsewhere), [of(700, 10_000)]);
}

#[test]
fn couriers_leave_what_turns_are_given() {
    assert_refused(
        &[(
            "budget = \"500us\"\nperiod = \"10ms\"",
            "budget = \"3ms\"\nperiod = \"10ms\"",
        )],
        &[
            "`windows` is given more than the clients before it leave of the core",
            "beside the clients of gates that are above turns",
        ],
    );
    assert_refused(
        &[("deadline = \"4ms\"", "deadline = \"3ms\"")],
        &[
            "a deadline of 3000 µs",
            "must be at least 4000 µs, the shortest period of a reservation",
        ],
    );
    assert_refused(
        &[(
            "budget = \"500us\"\nperiod = \"10ms\"",
            "budget = \"5ms\"\nperiod = \"10ms\"",
        )],
        &["clients of gates above turns have more than the core"],
    );
}

#[test]
fn couriers_come_before_those_they_ask_for() {
    assert_refused(
        &[("priority = 170", "priority = 140")],
        &[
            "`first` would not have its budget when it is asked",
            "must be above 150",
        ],
    );
}

#[test]
fn who_may_not_be_asked_for_is_named() {
    for (list, said) in [
        ("[]", "`second` asks for nobody"),
        ("[\"looop\"]", "did you mean `loop`?"),
        ("[\"second\"]", "`second` cannot ask for `second`"),
        ("[\"first\"]", "asks at this gate itself"),
        ("[\"keys\"]", "has the gate"),
        ("[\"loop\", \"loop\"]", "two ask for `loop`"),
        ("[\"pilot\"]", "two ask for `pilot`"),
    ] {
        assert_refused(&[("[\"loop\"]", list)], &[said]);
    }
}

#[test]
fn a_courier_is_at_one_gate() {
    let second = r#"
[[resource]]
name = "other"
protocol = "mc-ipc"
server = "others"
length = "30us"
clients = [{ component = "first", on-behalf-of = ["pilot"] }]

[[component]]
name = "others"
executable = "hello-shouter"
priority = 210

[[resource]]"#;
    assert_refused(
        &[("\n[[resource]]", second), ("\"400us\"", "\"600us\"")],
        &["`first` is a courier at two gates"],
    );
}

/// What others schedule cannot be a gate's client itself, and the message says who can.
#[test]
fn who_needs_a_courier_is_told_so() {
    assert_refused(
        &[(
            "{ component = \"second\", as = \"there\", on-behalf-of = [\"loop\"] }",
            "{ component = \"loop\", kind = \"best-effort\" }",
        )],
        &[
            "the time of `loop` is moved by two",
            "on-behalf-of = [\"loop\"]",
        ],
    );
}

#[test]
fn plain_resources_know_no_couriers() {
    let endpoint = "[[endpoint]]\nname = \"plain\"\nserver = \"keys\"\nclients = [{ component = \"loop\", on-behalf-of = [\"pilot\"] }]\n\n[[resource]]";
    let report = check(&source(&with(&[("[[resource]]", endpoint)]))).unwrap_err();
    assert!(report
        .to_string()
        .contains("`on-behalf-of` has no effect here"));
}
