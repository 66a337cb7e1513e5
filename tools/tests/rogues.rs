//! A component that nobody trusts beside honest ones (`systems/rogues`): whatever it does, the others are served,
//! meet their deadlines, and come to their end.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use sandglass_tools::arch::Arch;
use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::qemu::{self, End, Outcome};
use sandglass_tools::storm::policies::{Lab, Policy};
use sandglass_tools::system::rogue::{self, Rogue};
use sandglass_tools::system::{self, Source};

/// As in `systems/rogues`.
const SEND: u64 = 1;
const PANIC: u64 = 2;
const BLOCK: u64 = 3;
const NEVER: u64 = 4;
const SPIN: u64 = 5;
const ELSEWHERE: u64 = 6;
const FLOOD: u64 = 7;
const ANEW: u64 = 8;
const LEAVE: u64 = 10;
const KILL: u64 = 11;
const FAULT: u64 = 12;
const ASK: u64 = 13;
const REFUSED: u64 = 14;
const BUG: u64 = 15;
const TEASE: u64 = 16;

/// Who ends the system: when all of `all` are done, or after so many ms.
fn judge(all: u64, ms: u64) -> String {
    let periods = ms / 5;
    format!(
        r#"
name = "rogues"
machine = {{ memory = 64 }}

[[component]]
name = "judge"
executable = "rogues"
priority = 240
budget = 500
period = "5ms"
console = true
exit = true
parameters = {{ all = {all}, periods = {periods} }}
"#
    )
}

fn component(name: &str, priority: u8, time: &str, more: &str) -> String {
    format!(
        r#"
[[component]]
name = "{name}"
executable = "rogues"
priority = {priority}
{time}
console = true
{more}
"#
    )
}

/// A signal from each of `honest` to the judge, with the bits of their order.
fn done(honest: &[&str]) -> String {
    let signallers = honest.iter().enumerate().map(|(index, name)| {
        let badge = 1 << index;
        format!("  {{ component = \"{name}\", badge = {badge} }},\n")
    });
    let signallers: String = signallers.collect();
    format!(
        "[[notification]]\nname = \"done\"\nwaiter = \"judge\"\nsignallers = [\n{signallers}]\n"
    )
}

fn run(name: &str, text: String) -> Outcome {
    let source = Source {
        arch: None,
        name: name.to_owned(),
        text,
        folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems/rogues"),
    };
    run_source(name, &source)
}

fn run_source(name: &str, source: &Source) -> Outcome {
    let description = system::check(source).unwrap_or_else(|report| panic!("{report}"));
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rogues-{name}.elf"));
    let built = system::build(&description, Some(&image)).unwrap();
    let kernel = kernel::build(&KernelOptions::new(Variant::Release)).unwrap();
    let mut boot = built.boot(kernel);
    boot.machine.icount = Some(0);
    boot.timeout = Some(Duration::from_secs(120));
    qemu::run(&boot).unwrap()
}

/// Runs a system in which everybody honest is to be done; returns the console.
#[track_caller]
fn assert_honest_done(name: &str, text: String) -> String {
    let outcome = run(name, text);
    assert_eq!(outcome.end, End::Guest(0), "{name}:\n{}", outcome.console);
    outcome.console
}

/// An honest client and a rogue one at a resource, whatever its protocol.
fn shared(protocol: &str, attack: u64) -> String {
    let clients = "calls = 12";
    let time = |us| format!("budget = {us}\nperiod = \"2ms\"");
    [
        judge(1, 100),
        component(
            "honest",
            150,
            &time(300),
            &format!("criticality = \"high\"\nparameters = {{ {clients} }}"),
        ),
        component(
            "rogue",
            100,
            &time(300),
            &format!("parameters = {{ attack = {attack} }}"),
        ),
        component("server", 200, "passive = true", ""),
        format!(
            r#"
[[resource]]
name = "server"
protocol = "{protocol}"
server = "server"
clients = [{{ component = "honest", badge = 5 }}, {{ component = "rogue", badge = 6 }}]
"#
        ),
        done(&["honest"]),
    ]
    .concat()
}

/// The server is another component.
fn served_by(server: &str, text: &str) -> String {
    text.replace(
        "name = \"server\"\nexecutable",
        &format!("name = \"{server}\"\nexecutable"),
    )
    .replace("server = \"server\"", &format!("server = \"{server}\""))
}

/// The rogue has further threads of these names.
fn with_threads(text: &str, names: &[&str]) -> String {
    with_threads_of(text, names, "budget = 200\nperiod = \"2ms\"")
}

/// As [`with_threads`]; each has such time.
fn with_threads_of(text: &str, names: &[&str], time: &str) -> String {
    let thread = |name: &&str| {
        format!("\n[[component.thread]]\nname = \"{name}\"\npriority = 101\n{time}\n")
    };
    let threads: String = names.iter().map(thread).collect();
    let rogue = text
        .find("parameters = { attack")
        .expect("there is a rogue");
    let end = rogue + text[rogue..].find('\n').expect("a line ends");
    [&text[..end], "\nready = true\n", &threads, &text[end..]].concat()
}

/// Finding 1 of the hostile reading of the user level: one message that brings no time.
#[test]
fn who_sends_to_a_server_that_expects_calls_harms_nobody() {
    for protocol in [
        "ceiling",
        "inheritance",
        "original-ceiling",
        "bandwidth-inheritance",
    ] {
        let console = assert_honest_done(&format!("send-{protocol}"), shared(protocol, SEND));
        assert!(console.contains("rogue: sends"), "{console}");
    }
}

/// Finding 4: a client whose time is elsewhere asks the proxy, which has to go on without it.
#[test]
fn who_has_taken_its_time_elsewhere_does_not_end_the_proxy() {
    for protocol in ["inheritance", "original-ceiling", "bandwidth-inheritance"] {
        let text = with_threads(&shared(protocol, ELSEWHERE), &["second"]);
        // Below the second thread, so that this one asks while the first is there.
        let far = component("other", 100, "passive = true", "");
        let endpoint = "[[endpoint]]\nname = \"other\"\nserver = \"other\"\nclients = [{ component = \"rogue\", as = \"far\" }]\n";
        let console = assert_honest_done(&format!("elsewhere-{protocol}"), text + &far + endpoint);
        // `proxy::label::NO_TIME`.
        assert!(console.contains("rogue: is answered 0x50004"), "{console}");
    }
}

/// A thread that never comes back from a server leaves its time there, and the server would serve others on that: a client
/// that ends while one of its threads is with the server has little of it.
#[test]
fn who_ends_while_a_server_works_for_it_leaves_no_time_there() {
    let text = shared("ceiling", LEAVE)
        .replace(
            "name = \"server\"\nexecutable",
            "name = \"worker\"\nexecutable",
        )
        .replace("server = \"server\"", "server = \"worker\"")
        // A third of what it has.
        .replace("calls = 12", "calls = 12, work = 25_000");
    let text = with_threads_of(&text, &["second"], "budget = 40\nperiod = \"8ms\"");
    assert_honest_done("leave", text);
}

/// The end of a component reaches whoever is described to hear of it.
#[test]
fn the_end_of_a_component_is_signalled() {
    for (name, attack) in [("end-panic", PANIC), ("end-fault", FAULT)] {
        // Nobody else says that anything is done.
        let text = shared("ceiling", attack)
            .replace("calls = 12", "calls = 1_000")
            .replace(
                "component = \"honest\", badge = 1",
                "component = \"rogue\", badge = 1, at = \"end\"",
            );
        assert!(text.contains("at = \"end\""), "{text}");
        assert_honest_done(name, text);
    }
}

/// The end of a task reaches the manager of its modes, and the mode falls afterwards as ever.
#[test]
fn the_mode_manager_hears_of_the_end_of_a_task() {
    for (name, attack) in [("modes-panic", PANIC), ("modes-fault", FAULT)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems/rogues/policies");
        let text = std::fs::read_to_string(folder.join("modes.toml")).unwrap();
        let text = text.replace("attack = 0", &format!("attack = {attack}"));
        let text = text
            .replace("verbose = 0", "verbose = 1")
            .replace("within = 2560", "within = 3500");
        let console = assert_honest_done(name, text);
        let end = console.find("modes: rogue has ended").expect(&console);
        assert!(console[end..].contains("from high to low"), "{console}");
    }
}

/// Whoever has no time left in the timer service delays nobody: the service ends the request on its own.
#[test]
fn a_timer_is_in_time_beside_one_whose_time_ends_in_the_service() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems/rogues/policies");
    let text = std::fs::read_to_string(folder.join("timers.toml")).unwrap();
    let text = text.replace("attack = 0", &format!("attack = {TEASE}"));
    assert_honest_done("tease", text);
}

/// A fault of a server with timeout policies ends the request, and no more.
#[test]
fn a_server_goes_on_after_a_fault() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems/rogues/policies");
    let text = std::fs::read_to_string(folder.join("timeouts.toml")).unwrap();
    let text = text.replace("attack = 0", &format!("attack = {BUG}"));
    // They say here that they are answered.
    let text = text.replace(
        "parameters = { attack",
        "console = true\nparameters = { attack",
    );
    let console = assert_honest_done("bug", text);
    // Each of the four, and once more.
    let answers = console.matches("rogue: is answered").count();
    assert!(answers >= 8, "{console}");
}

/// The end of a server reaches its proxy, which tells those who ask.
#[test]
fn who_waits_for_a_server_that_ended_is_told() {
    for protocol in ["inheritance", "original-ceiling", "bandwidth-inheritance"] {
        // `proxy::label::GONE`.
        let until = "calls = 1_000, until = 0x5_0005";
        let text = served_by("fragile", &shared(protocol, KILL)).replace("calls = 12", until);
        let console = assert_honest_done(&format!("kill-{protocol}"), text);
        assert!(
            console.contains("`fragile` ended with status 101"),
            "{console}"
        );
    }
}

/// Finding 10: a proxy works on time of its own, above its clients, and longer for a request than who makes it. For each
/// client it works no longer than that one may run.
#[test]
fn a_proxy_works_for_nobody_longer_than_its_share() {
    const PERIOD_US: u64 = 2_000;
    // The rogue's budget, and what is above it in a period for the last request, the clock, and the honest client.
    const MOST_US: u64 = 300 + 60;
    for protocol in ["inheritance", "original-ceiling", "bandwidth-inheritance"] {
        for attack in [ASK, REFUSED] {
            let mut text = shared(protocol, attack);
            let mut client = "rogue";
            if attack == REFUSED {
                text = with_threads(&served_by("worker", &text), &["second", "third"]);
                client = "rogue/third";
            }
            let controls =
                format!("exit = true\ncontrols = [\"sharing-{protocol}\", \"{client}\"]\n");
            let text = text.replace("exit = true\n", &controls);
            // Who is served for ever keeps the server from others: nothing ends that here.
            let console = run(&format!("flood-{protocol}-{attack}"), text).console;
            let line = console.lines().find(|line| line.contains("the proxy took"));
            let line = line.unwrap_or_else(|| panic!("{console}"));
            let numbers: Vec<u64> = line
                .split(' ')
                .filter_map(|word| word.parse().ok())
                .collect();
            let [us, proxy, client] = numbers[..] else {
                panic!("{line}")
            };
            assert!(
                client > 100 && us > 5 * PERIOD_US,
                "nothing was seen: {line}"
            );
            let periods = us / PERIOD_US + 1;
            assert!(proxy <= periods * MOST_US, "{protocol}, {attack}: {line}");
        }
    }
}

/// Finding 6: more requests than a client has threads.
#[test]
fn a_blocking_server_keeps_requests_of_its_clients_apart() {
    for (name, attack) in [("blocking-send", SEND), ("blocking-anew", ANEW)] {
        let mut text = shared("blocking", attack);
        if attack == ANEW {
            text = with_threads(&text, &["second", "third"]);
            // Whoever has the capabilities of its threads can do this; by itself no component has them.
            let controls = "ready = true\ncontrols = [\"rogue/second\", \"rogue/third\"]\n";
            text = text.replace("ready = true\n", controls);
        }
        let server = "name = \"server\"\nexecutable = \"rogues\"\npriority = 200\npassive = true\n";
        assert!(text.contains(server));
        let device =
            server.replace("\"server\"", "\"device\"") + "budget = \"1ms\"\nperiod = \"10ms\"\n";
        let text = text.replace(server, &device);
        let text = text.replace("server = \"server\"", "server = \"device\"");
        let interrupt = "[[interrupt]]\nname = \"interrupt\"\ncomponent = \"device\"\npin = 9\n";
        let console = assert_honest_done(name, text + interrupt);
        if attack == ANEW {
            // `blocking::BUSY`.
            assert!(console.contains("rogue: is answered 0x50002"), "{console}");
        }
    }
}

/// Finding 7: messages to the launcher.
#[test]
fn who_floods_the_launcher_costs_nobody_else_time() {
    let console = assert_honest_done("flood", shared("ceiling", FLOOD));
    assert!(console.contains("rogue: floods"), "{console}");
    assert!(
        !console.contains("stopped by a fault"),
        "a forged report: {console}"
    );
}

/// A set of three tasks, of which one is a rogue; the others are to meet 10 deadlines each.
fn tasks(attack: u64) -> String {
    let task = |name: &str, more: &str| component(name, 100, "", more);
    [
        // A set begins without who does not call after ten of the longest period.
        judge(0b11, 200),
        r#"
[[edf]]
name = "scheduler"
priority = 150
mode = "preemptive"
tasks = [
  { component = "fast", period = "2ms", budget = 500 },
  { component = "slow", period = "5ms", budget = 1200 },
  { component = "rogue", period = "8ms", budget = "1ms" },
]
"#
        .to_owned(),
        task("fast", "parameters = { work = 50_000, jobs = 10 }"),
        task("slow", "parameters = { work = 150_000, jobs = 10 }"),
        task(
            "rogue",
            &format!("parameters = {{ work = 50_000, jobs = 1, attack = {attack} }}"),
        ),
        "[[notification]]\nname = \"never\"\nwaiter = \"rogue\"\nsignallers = []\n".to_owned(),
        done(&["fast", "slow"]),
    ]
    .concat()
}

/// Findings 2, 3 and 5: a task that sends, panics, blocks, never calls or never ends.
#[test]
fn whatever_a_task_does_the_others_of_its_set_meet_their_deadlines() {
    for (name, attack) in [
        ("sends", SEND),
        ("panics", PANIC),
        ("blocks", BLOCK),
        ("never", NEVER),
        ("spins", SPIN),
    ] {
        let console = assert_honest_done(&format!("task-{name}"), tasks(attack));
        assert!(!console.contains("is late"), "{name}: {console}");
    }
}

/// What `--rogue SEED` adds to a system does something: its time runs out in the server that it shares.
#[test]
fn a_rogue_client_uses_what_it_shares() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems/examples/timeouts/SYSTEM.toml");
    let source = Source::read(&path).unwrap();
    let beside = Rogue::of_seed(4).beside(&source).unwrap();
    let console = run_source("beside", &beside).console;
    let said = format!("handler: {} ran out (consumed", rogue::NAME);
    assert!(console.contains(&said), "{console}");
}

/// Whatever comes to the rogue's mind: a seed of each policy. `./sandglass storm --policies` tries more.
#[test]
fn a_storm_harms_nobody_honest() {
    harms_nobody_honest(Arch::X86_64, 1..2);
}

/// The same policies; without the oracle.
#[test]
fn a_storm_on_aarch64_harms_nobody_honest() {
    harms_nobody_honest(Arch::Aarch64, 1..3);
}

fn harms_nobody_honest(arch: Arch, seeds: Range<u64>) {
    let lab = Lab::new(arch).unwrap();
    let policies = Policy::all().unwrap();
    assert!(policies.len() >= 6, "no policy is lost");
    for policy in policies {
        let (findings, _) = policy.storm(&lab, seeds.clone(), || {}).unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
