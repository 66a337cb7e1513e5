//! Each thing that can be wrong with a description is found, at its place, with what would be
//! right.

use super::{check, findings, one_finding, source, RIGHT};

/// With `old` replaced by `new`, exactly one thing is wrong; it is at `place`, the first text of
/// that kind in `new`, and the report says its position and all of `said`.
#[track_caller]
fn assert_found(old: &str, new: &str, place: &str, said: &[&str]) {
    let report = one_finding(RIGHT, old, new, said);
    let text = RIGHT.replace(old, new);
    let at = RIGHT.find(old).unwrap() + new.find(place).expect("`place` is in `new`");
    let finding = &report.findings[0];
    assert_eq!(&text[finding.span.clone()], place, "{report}");
    assert_eq!(finding.span.start, at, "{report}");
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = at - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    let position = format!("test.toml:{line}:{column}");
    assert!(
        report.to_string().contains(&position),
        "`{position}` is not in:\n{report}"
    );
}

#[test]
fn everything_wrong_is_found_in_one_run() {
    let text = RIGHT
        .replace("priority = 100", "priority = 300")
        .replace("pin = 2", "pin = 77");
    let report = check(&source(&text)).unwrap_err();
    assert_eq!(report.findings.len(), 2, "{report}");
}

#[test]
fn unknown_keys_and_values() {
    assert_found(
        "exit = true",
        "exits = true",
        "exits",
        &["unknown key", "`exit`"],
    );
    assert_found(
        "rights = \"grant\"",
        "rights = \"gant\"",
        "\"gant\"",
        &["`grant`"],
    );
    assert_found("\"3ms\"", "\"3m\"", "\"3m\"", &["5ms"]);
    let unclosed = findings(RIGHT, "name = \"test\"", "name = \"test");
    assert!(unclosed.to_string().contains("test.toml:2:"), "{unclosed}");
}

#[test]
fn missing_keys() {
    let report = findings(RIGHT, "priority = 90\n", "");
    assert!(
        report.to_string().contains("the key `priority` is missing"),
        "{report}"
    );
}

#[test]
fn missing_executables_and_files() {
    assert_found(
        "executable = \"hello-shouter\"",
        "executable = \"hello-shooter\"",
        "\"hello-shooter\"",
        &["no user program", "did you mean `hello-shouter`?"],
    );
    assert_found(
        "executable = \"hello-shouter\"",
        "executable = \"./absent.elf\"",
        "\"./absent.elf\"",
        &["absent.elf", "cannot use"],
    );
    assert_found(
        "executable = \"hello-shouter\"",
        "executable = \"./Cargo.toml\"",
        "\"./Cargo.toml\"",
        &["is not an ELF file"],
    );
    assert_found(
        "path = \"Cargo.toml\"",
        "path = \"absent.txt\"",
        "\"absent.txt\"",
        &["cannot be read"],
    );
    assert_found(
        "path = \"Cargo.toml\"",
        "path = \"src\"",
        "\"src\"",
        &["is not a file"],
    );
}

#[test]
fn budgets_and_periods() {
    assert_found(
        "budget = \"2ms\"",
        "budget = \"11ms\"",
        "\"11ms\"",
        &[
            "11000 µs is above the period",
            "at most the period, 10000 µs",
        ],
    );
    assert_found(
        "budget = \"2ms\"",
        "budget = 19",
        "19",
        &["19 µs is below the kernel's minimum", "at least 20 µs"],
    );
    assert_found(
        "budget = \"2ms\"\nperiod = \"10ms\"",
        "period = \"10ms\"",
        "\"10ms\"",
        &["`client` has no budget"],
    );
    assert_found(
        "period = \"10ms\"",
        "period = \"10ms\"\ndeadline = \"11ms\"",
        "\"11ms\"",
        &[
            "11000 µs is after the period",
            "at most the period, 10000 µs",
        ],
    );
    assert_found(
        "passive = true",
        "passive = true\ndeadline = \"1ms\"",
        "\"1ms\"",
        &["give deadlines to its clients"],
    );
    assert_found(
        "period = \"10ms\"",
        "period = \"4000s\"",
        "\"4000s\"",
        &["at most 3600000000 µs"],
    );
}

#[test]
fn threads_without_time() {
    let text = "budget = 500\nperiod = 500\n";
    let report = findings(RIGHT, text, "");
    assert!(
        report
            .to_string()
            .contains("`other` has no budget and no period"),
        "{report}"
    );
    assert!(report.to_string().contains("passive = true"), "{report}");
}

#[test]
fn numbers_out_of_range() {
    assert_found(
        "priority = 100",
        "priority = 255",
        "255",
        &["priority 255 is out of range", "0 to 254"],
    );
    assert_found(
        "core = 1\n",
        "core = 2\n",
        "2",
        &["no core 2", "cores 0 to 1"],
    );
    assert_found("control = [1]", "control = [-1]", "-1", &["no core -1"]);
    assert_found("memory = 64", "memory = 1", "1", &["memory (MiB) 1", "16"]);
    assert_found("pin = 2", "pin = 24", "24", &["0 to 23"]);
    assert_found("stack = \"8KiB\"", "stack = 7", "7", &["from 4096"]);
}

#[test]
fn endpoints_that_nobody_serves() {
    assert_found(
        "name = \"work\"\nserver = \"server\"",
        "name = \"work\"",
        "\"work\"",
        &["the endpoint `work` has no server", "server ="],
    );
    assert_found(
        "server = \"server\"",
        "server = \"severe\"",
        "\"severe\"",
        &["no component is called `severe`", "did you mean `server`?"],
    );
}

#[test]
fn unknown_names() {
    assert_found(
        "controls = [\"other\"]",
        "controls = [\"server/hander\"]",
        "\"server/hander\"",
        &[
            "no thread `server/hander`",
            "did you mean `server/handler`?",
        ],
    );
    assert_found(
        "revokes = [\"other\"]",
        "revokes = [\"ohter\"]",
        "\"ohter\"",
        &["no component is called `ohter`", "did you mean `other`?"],
    );
    assert_found(
        "timeout-handler = \"server\"",
        "timeout-handler = \"nobody\"",
        "\"nobody\"",
        &["no component is called `nobody`"],
    );
    assert_found(
        "criticality = \"middle\"",
        "criticality = \"medium\"",
        "\"medium\"",
        &["unknown criticality", "low, middle, high"],
    );
    assert_found(
        "waiter = \"client\"",
        "waiter = \"x\"",
        "\"x\"",
        &["client, other, server"],
    );
}

#[test]
fn names_that_are_not_unique() {
    assert_found(
        "name = \"hpet\"",
        "name = \"shared\"",
        "\"shared\"",
        &["two memory regions are called `shared`", "the first"],
    );
    assert_found(
        "name = \"timer\"",
        "name = \"pit\"",
        "\"pit\"",
        &["already has a capability called `pit`"],
    );
    assert_found(
        "name = \"pit\"",
        "name = \"launcher\"",
        "\"launcher\"",
        &["the launcher gives every component `launcher`"],
    );
    assert_found(
        "name = \"done\"",
        "name = \"a b\"",
        "\"a b\"",
        &["`a b` is not a valid name for a notification"],
    );
    let twice = findings(RIGHT, "name = \"other\"\n", "name = \"client\"\n").to_string();
    assert!(
        twice.contains("two components are called `client`"),
        "{twice}"
    );
}

#[test]
fn badges_that_are_not_unique() {
    assert_found(
        "{ component = \"other\", badge = 2,",
        "{ component = \"other\", badge = 1,",
        "1",
        &["the badge 1 is used twice"],
    );
}

#[test]
fn memory_that_overlaps_or_lies_wrong() {
    let second = "maps = [{ component = \"other\", rights = \"read-write\" }]";
    let overlapping = "maps = [{ component = \"client\", address = 0x2000_1000 }]";
    assert_found(
        second,
        overlapping,
        "0x2000_1000",
        &["overlap", "0x20000000 to 0x20002000"],
    );
    assert_found(
        "address = 0x2000_0000",
        "address = 0x2000_0010",
        "0x2000_0010",
        &["multiple of 0x1000"],
    );
    assert_found(
        "address = 0x2000_0000",
        "address = 0x1000",
        "0x1000",
        &["0x10000000"],
    );
    assert_found(
        "size = \"8KiB\"",
        "size = 100",
        "100",
        &["multiple of the page size"],
    );
    assert_found(
        "0xfed0_0000",
        "0xfed0_0001",
        "0xfed0_0001",
        &["physical address"],
    );
}

#[test]
fn more_memory_than_the_machine() {
    assert_found(
        "size = \"8KiB\"",
        "size = \"65MiB\"",
        "\"65MiB\"",
        &["need 66 MiB", "the machine has 64 MiB"],
    );
}

#[test]
fn ports_have_one_owner() {
    assert_found(
        "name = \"pit\"\ncomponent = \"other\"\nfirst = 0x40\nlast = 0x43",
        "name = \"com1\"\ncomponent = \"other\"\nfirst = 0x3f0\nlast = 0x3ff",
        "\"com1\"",
        &["0x3f0 to 0x3ff", "console = true"],
    );
    assert_found(
        "name = \"pit\"\ncomponent = \"other\"\nfirst = 0x40\nlast = 0x43",
        "name = \"com2\"\ncomponent = \"other\"\nfirst = 0x2f8\nlast = 0x2ff",
        "\"com2\"",
        &["already owned by", "`results`"],
    );
    assert_found("last = 0x43", "last = 0x3f", "0x3f", &["at least 0x40"]);
}

#[test]
fn one_output_and_one_interrupt_for_each_pin() {
    let output = "[[output]]\nname = \"results\"\ncomponent = \"client\"\n";
    let second = "[[output]]\nname = \"more\"\ncomponent = \"other\"\n";
    let two = findings(RIGHT, output, &format!("{output}{second}")).to_string();
    assert!(two.contains("only one output to the host"), "{two}");
    let interrupt = "[[interrupt]]\nname = \"timer\"\ncomponent = \"other\"\npin = 2\n";
    let second = "[[interrupt]]\nname = \"again\"\ncomponent = \"client\"\npin = 2\n";
    let two = findings(RIGHT, interrupt, &format!("{interrupt}{second}")).to_string();
    assert!(
        two.contains("pin 2 of the I/O APIC is used by two interrupts"),
        "{two}"
    );
}

#[test]
fn threads_that_nobody_would_start() {
    let report = findings(RIGHT, "passive = true\n", "budget = 100\nperiod = 100\n");
    assert!(
        report
            .to_string()
            .contains("this thread of `server` would never start"),
        "{report}"
    );
}

#[test]
fn passive_servers_that_need_each_other() {
    let text = RIGHT
        .replace("budget = 500\nperiod = 500\n", "passive = true\n")
        + "[[endpoint]]\nname = \"back\"\nserver = \"other\"\nclients = [{ component = \"server\" }]\n";
    let report = check(&source(&text)).unwrap_err();
    assert_eq!(report.findings.len(), 1, "{report}");
    let shown = report.to_string();
    assert!(shown.contains("wait for each other's start"), "{shown}");
    assert!(
        shown.contains("`other`") && shown.contains("`server`"),
        "{shown}"
    );
}

#[test]
fn more_than_a_component_can_hold() {
    let many: Vec<String> = (0..260).map(|i| format!("p{i} = {i}")).collect();
    let report = findings(RIGHT, "rounds = 12", &many.join(", "));
    assert!(
        report
            .to_string()
            .contains("a component can have at most 254"),
        "{report}"
    );
    assert_found(
        "console = true\n",
        "console = true\ncspace-bits = 2\n",
        "2",
        &["must be from"],
    );
}

#[test]
fn a_system_has_components() {
    let report = check(&source("name = \"empty\"\n")).unwrap_err();
    assert!(report.to_string().contains("no component"), "{report}");
}

/// Its message would bring no time, and the server would never run again.
#[test]
fn who_may_send_to_a_passive_server() {
    assert_found(
        "{ component = \"other\", badge = 2, as = \"service\", rights = \"grant\" }",
        "{ component = \"other\", badge = 2, as = \"service\", rights = \"send\" }",
        "\"other\"",
        &["may send to a passive server", "no time of its own"],
    );
}
