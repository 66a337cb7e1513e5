//! `[[timer]]`: what it stands for, and what can be wrong with it; and who has the HPET.

use sandglass_description::policy::timers::{Sender, Timers, EXTRA_REFILLS, SERVICE};
use sandglass_description::{Component, Object};

use super::{check, described, one_finding, packed, source, Description};

/// Two time-triggered tasks, one of which can run out of time, and a shared notification.
const TIMERS: &str = r#"
name = "test"
machine = { memory = 64, cores = 2 }

[[timer]]
name = "tick"
component = "control"
every = "2ms"

[[timer]]
name = "deadlines"
component = "logger"
every = "500us"
burst = 4
count = 100
notification = "news"
badge = 8

[[component]]
name = "control"
executable = "hello-visitor"
priority = 100
budget = "5ms"
period = "5ms"

[[component]]
name = "logger"
executable = "hello-visitor"
priority = 50
budget = "1ms"
period = "10ms"
extra-refills = 3

[[notification]]
name = "news"
waiter = "logger"
signallers = [{ component = "control", badge = 1 }]
"#;

const EDF: &str = r#"
[[edf]]
name = "first"
priority = 150
mode = "preemptive"
tasks = [{ component = "a", period = "2ms", budget = "400us" }]

[[component]]
name = "a"
executable = "hello-visitor"
priority = 120
"#;

const SECOND_EDF: &str = r#"
[[edf]]
name = "second"
priority = 110
mode = "preemptive"
tasks = [{ component = "b", period = "10ms", budget = "1ms" }]

[[component]]
name = "b"
executable = "hello-visitor"
priority = 105
"#;

fn component<'d>(description: &'d Description, name: &str) -> &'d Component {
    let mut components = description.system.components.iter();
    components.find(|component| component.name == name).unwrap()
}

fn object(component: &Component, name: &str) -> (Object, u64) {
    let grant = component.grants.iter().find(|grant| grant.name == name);
    let grant = grant.unwrap_or_else(|| panic!("`{}` has no `{name}`", component.name));
    (grant.object, grant.badge)
}

#[test]
fn the_service_appears_by_itself_and_is_above_its_users() {
    let description = described(TIMERS);
    let service = component(&description, SERVICE);
    let priorities: Vec<u8> = service.threads.iter().map(|t| t.priority).collect();
    assert_eq!(priorities, [101, 102]);
    assert!(service.threads[0].passive);
    let (_, control) = object(component(&description, "control"), "tick");
    let (_, logger) = object(component(&description, "logger"), "deadlines");
    assert_eq!(
        [Sender::of(control), Sender::of(logger)],
        [Sender::User(0), Sender::User(1)]
    );
    let calls = &component(&description, "control").grants;
    assert!(calls
        .iter()
        .any(|grant| grant.name == "tick" && grant.calls_only));
    let table: Timers = packed(&description);
    assert_eq!(table.groups[1].timers, 100);
    let payers: Vec<&str> = table
        .payers
        .iter()
        .map(|payer| payer.name.as_str())
        .collect();
    assert_eq!(payers, ["logger"], "`control` never runs out of time");
}

/// With few pieces of budget, a service that rings often would wait for a whole period once in a while.
#[test]
fn the_service_keeps_as_many_pieces_of_its_budget_as_the_kernel() {
    let description = described(TIMERS);
    let service = component(&description, SERVICE);
    assert_eq!(service.threads[0].time.extra_refills, EXTRA_REFILLS);
}

#[test]
fn expiries_are_signalled_where_the_user_waits() {
    let description = described(TIMERS);
    let service = component(&description, SERVICE);
    let own = object(component(&description, "control"), "tick.signal").0;
    assert_eq!(object(service, "group.0"), (own, 1));
    let named = object(component(&description, "logger"), "news").0;
    assert_eq!(object(service, "group.1"), (named, 8));
}

/// In any period there is time for every burst, for a ring for nothing of each group, for what comes at the mean rate, and
/// for the end of each request that its caller has no time for.
#[test]
fn the_service_has_as_much_time_as_its_timers_can_take() {
    let table: Timers = packed(&described(TIMERS));
    assert_eq!(table.period_us, 4000);
    let (tick, deadlines, ends) = (1 + 1 + 2, 4 + 1 + 8, 2 + 3);
    assert_eq!(table.budget_us, 20 + 10 * (tick + deadlines + ends));
    // Seldom is cheap.
    let seldom = TIMERS
        .replace("\"500us\"", "\"1s\"")
        .replace("\"2ms\"", "\"1s\"");
    let table: Timers = packed(&described(&seldom));
    assert!(table.budget_us < 200, "{table:?}");
}

#[test]
fn schedulers_share_the_hpet_only_if_they_have_to() {
    let text = |more: &str| format!("{TIMERS}{EDF}{more}");
    let alone = format!("name = \"test\"\n{EDF}");
    let description = described(&alone);
    assert!(matches!(
        object(component(&description, "first"), "timer").0,
        Object::Interrupt(_)
    ));
    for shared in [text(""), text(SECOND_EDF), format!("{alone}{SECOND_EDF}")] {
        let description = described(&shared);
        let (timer, _) = object(component(&description, "first"), "timer");
        assert!(matches!(timer, Object::Endpoint(_)), "{timer:?}");
        let service = component(&description, SERVICE);
        assert!(service.threads[0].priority > 150);
    }
    let wanted = alone.replace("mode =", "timer = \"service\"\nmode =");
    component(&described(&wanted), SERVICE);
    one_finding(
        &text(""),
        "priority = 150",
        "priority = 150\ntimer = \"hpet\"",
        &["`first` cannot have the HPET for itself", "or \"service\""],
    );
    one_finding(
        &alone,
        "priority = 150",
        "priority = 150\ntimer = \"tsc\"",
        &["unknown timer `tsc`", "must be \"hpet\" or \"service\""],
    );
}

/// The service is above the tasks, so its time counts.
#[test]
fn admission_counts_the_service() {
    let full = EDF.replace("400us", "1950us");
    described(&format!("name = \"test\"\n{full}"));
    let report = check(&source(&format!("{TIMERS}{full}"))).unwrap_err();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.to_string().contains("of the processor"), "{report}");
}

#[test]
fn a_task_has_one_scheduler() {
    let both = format!("name = \"test\"\n{EDF}{SECOND_EDF}");
    one_finding(
        &both,
        "[{ component = \"b\"",
        "[{ component = \"a\", period = \"9ms\", budget = 300 }, { component = \"b\"",
        &["`a` is a task of two `[[edf]]` tables", "the first"],
    );
}

/// One thing is wrong, whatever of the device is described.
#[test]
fn the_hpet_has_one_owner() {
    let devices = "[[memory]]\nname = \"hpet\"\nsize = \"4KiB\"\nphysical = 0xfed0_0000\n\
                   maps = [{ component = \"a\", rights = \"read-write\" }]\n\
                   [[interrupt]]\nname = \"timer\"\ncomponent = \"a\"\npin = 2\n\
                   [[ports]]\nname = \"pit\"\ncomponent = \"a\"\nfirst = 0x40\nlast = 0x43\n";
    let alone = format!("name = \"test\"\n{EDF}{devices}");
    let shared = format!("{TIMERS}{EDF}{devices}");
    for (text, owner) in [(alone, "first"), (shared, SERVICE)] {
        let report = check(&source(&text)).unwrap_err();
        assert_eq!(report.findings.len(), 1, "{report}");
        let said = format!("the HPET already belongs to `{owner}`");
        assert!(report.to_string().contains(&said), "{report}");
        assert!(
            report
                .to_string()
                .contains("a `[[timer]]` in place of the device"),
            "{report}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_timer_is_said_once() {
    let wrong = |old: &str, new: &str, said: &[&str]| {
        one_finding(TIMERS, old, new, said);
    };
    wrong(
        "name = \"deadlines\"",
        "name = \"all deadlines\"",
        &["`all deadlines` is not a valid name for a timer"],
    );
    wrong(
        "name = \"deadlines\"",
        "name = \"news\"",
        &["already has a capability called `news`"],
    );
    wrong(
        "\"2ms\"",
        "5",
        &["an expiry every 5 µs", "must be from 10 to"],
    );
    wrong(
        "count = 100",
        "count = 0",
        &["`count` 0 is out of range", "from 1 to 65536"],
    );
    wrong("burst = 4", "burst = 0", &["`burst` 0 is out of range"]);
    wrong(
        "count = 100",
        "count = 65536",
        &["65537 timers", "a system can have 65536"],
    );
    wrong(
        "notification = \"news\"\n",
        "",
        &["the badge of a notification that is not named"],
    );
    wrong(
        "notification = \"news\"",
        "notification = \"new\"",
        &["no notification is called `new`", "did you mean `news`?"],
    );
    wrong(
        "waiter = \"logger\"\nsignallers = [{ component = \"control\"",
        "waiter = \"control\"\nsignallers = [{ component = \"logger\"",
        &["`control` would be signalled for timers of `logger`"],
    );
    wrong("badge = 8", "badge = 1", &["the badge 1 is used twice"]);
    wrong(
        "priority = 100",
        "priority = 253",
        &[
            "no room for the timer service above `control`",
            "must be at most 252",
        ],
    );
    wrong(
        "component = \"control\"\nevery",
        "component = \"controls\"\nevery",
        &["no component is called `controls`"],
    );
    wrong(
        "\"500us\"",
        "10",
        &["the timers need more than half of the processor"],
    );
    let missing = TIMERS.replace("every = \"2ms\"\n", "");
    let report = check(&source(&missing)).unwrap_err();
    assert!(
        report.to_string().contains("the key `every` is missing"),
        "{report}"
    );
}
