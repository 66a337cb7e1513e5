//! What is to be expected of systems: loads and waits, against figures worked out by hand.

use crate::system::check::{Assumption, Bound, Description};

use super::described;

/// A server of priority 200, its policy, and clients: name, priority, budget and period in µs, further keys of the
/// client.
fn system(policy: bool, clients: &[(&str, u8, u64, u64, &str)]) -> Description {
    let mut text = "name = \"a\"\n[[component]]\nname = \"server\"\nexecutable = \"hello-shouter\"\npriority = 200\n\
                    passive = true\n"
        .to_owned();
    if policy {
        text += "timeout-handler = \"server\"\n[[component.thread]]\nname = \"handler\"\npriority = 201\n\
                 budget = 1000\nperiod = 1000\nready = true\n\
                 [[timeout-policy]]\nserver = \"server\"\nhandler = \"server/handler\"\n";
    }
    let mut listed = String::new();
    for (badge, (name, priority, budget, period, keys)) in clients.iter().enumerate() {
        text += &format!(
            "[[component]]\nname = \"{name}\"\nexecutable = \"hello-visitor\"\npriority = {priority}\n\
             budget = {budget}\nperiod = {period}\nexit = true\n"
        );
        listed += &format!("{{ component = \"{name}\", badge = {badge} {keys} }}, ");
    }
    text += &format!("[[endpoint]]\nname = \"work\"\nserver = \"server\"\nclients = [{listed}]\n");
    described(&text)
}

/// The wait of a client, and for whom.
fn wait(description: &Description, client: &str) -> (Bound, Option<String>) {
    let mut rows = description.outlook.blocking.iter();
    let row = rows.find(|row| row.client == client).unwrap();
    (row.bound.clone(), row.by.clone())
}

fn by(name: &str) -> Option<String> {
    Some(name.to_owned())
}

const HIGH: (&str, u8, u64, u64, &str) = ("high", 180, 2_000, 10_000, "");

#[test]
fn with_a_policy_a_client_waits_for_the_largest_lower_budget() {
    let low = ("low", 10, 5_000, 20_000, "");
    let middle = ("middle", 100, 1_000, 20_000, "");
    let system = system(true, &[HIGH, middle, low]);
    assert_eq!(
        wait(&system, "high"),
        (Bound::Us(5_000, Assumption::Nothing), by("low"))
    );
    assert_eq!(
        wait(&system, "middle"),
        (Bound::Us(5_000, Assumption::Nothing), by("low"))
    );
    assert_eq!(
        wait(&system, "low"),
        (Bound::Us(0, Assumption::Nothing), None)
    );
}

#[test]
fn without_one_it_also_waits_for_the_rest_of_the_period() {
    let low = ("low", 10, 5_000, 20_000, "");
    let system_a = system(false, &[HIGH, low]);
    assert_eq!(
        wait(&system_a, "high"),
        (Bound::Us(20_000, Assumption::OneBudget), by("low"))
    );
    let short = ("low", 10, 5_000, 20_000, ", longest = 300");
    let system_b = system(false, &[HIGH, short]);
    assert_eq!(
        wait(&system_b, "high"),
        (Bound::Us(15_300, Assumption::Longest), by("low"))
    );
}

#[test]
fn clients_of_one_priority_wait_for_each_other_in_turn() {
    let twins = [
        ("a", 10, 1_000, 20_000, ""),
        ("b", 10, 2_000, 20_000, ""),
        ("c", 10, 3_000, 20_000, ""),
    ];
    let system = system(true, &twins);
    assert_eq!(
        wait(&system, "a"),
        (Bound::Us(5_000, Assumption::Nothing), by("c"))
    );
    assert_eq!(
        wait(&system, "c"),
        (Bound::Us(3_000, Assumption::Nothing), by("b"))
    );
}

#[test]
fn nothing_limits_the_wait_for_a_round_robin_client() {
    let low = ("low", 10, 20_000, 20_000, "");
    let system_a = system(true, &[HIGH, low]);
    let (bound, who) = wait(&system_a, "high");
    assert!(
        matches!(&bound, Bound::None(why) if why.contains("`low` never runs out")),
        "{bound:?}"
    );
    assert_eq!(who, by("low"));
    // Unless it is said how long its requests take.
    let trusted = ("low", 10, 20_000, 20_000, ", longest = 300");
    let system_b = system(false, &[HIGH, trusted]);
    assert_eq!(
        wait(&system_b, "high"),
        (Bound::Us(300, Assumption::Longest), by("low"))
    );
    assert!(system_b.outlook.warnings.is_empty());
}

#[test]
fn a_client_above_the_server_waits_for_whoever_is_between() {
    let text = "name = \"a\"\n[[component]]\nname = \"server\"\nexecutable = \"hello-shouter\"\npriority = 20\n\
                passive = true\n\
                [[component]]\nname = \"high\"\nexecutable = \"hello-visitor\"\npriority = 90\nbudget = 100\nperiod = 1000\n\
                [[component]]\nname = \"low\"\nexecutable = \"hello-visitor\"\npriority = 10\nbudget = 100\nperiod = 1000\n\
                [[endpoint]]\nname = \"work\"\nserver = \"server\"\n\
                clients = [{ component = \"high\", badge = 1 }, { component = \"low\", badge = 2 }]\n";
    let (bound, _) = wait(&described(text), "high");
    assert!(
        matches!(&bound, Bound::None(why) if why.contains("priority 20")),
        "{bound:?}"
    );
}

#[test]
fn loads_add_up_by_core() {
    let system = system(
        true,
        &[
            HIGH,
            ("low", 10, 5_000, 20_000, ""),
            ("rest", 1, 500, 500, ""),
        ],
    );
    let core = &system.outlook.cores[0];
    assert_eq!(core.millionths, 450_000);
    assert_eq!(core.unlimited, ["server/handler", "rest"]);
    assert_eq!(core.demand(), "45.0 %");
}
