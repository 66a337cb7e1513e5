//! What is logged, and what becomes of components that fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::qemu::{self, Boot, End};
use sandglass_tools::system::{self, LevelOf, Source};
use sandglass_tools::trace::{self, check};

const TIMEOUT: Option<Duration> = Some(Duration::from_secs(120));

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems/recovery/SYSTEM.toml")
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a system with these levels, and 2^`icount` ns for an instruction; returns what is shown of its console.
fn shown(name: &str, source: &Source, levels: &[&str], icount: u8) -> String {
    let mut description = system::check(source).unwrap_or_else(|report| panic!("{report}"));
    for level in levels {
        let level: LevelOf = level.parse().unwrap();
        level.apply(&mut description).unwrap();
    }
    let folder = folder(name);
    let built = system::build(&description, Some(&folder.join("image.elf"))).unwrap();
    let options = KernelOptions::on(Variant::Release, built.cores_with(None).unwrap());
    let log = folder.join("log");
    let mut boot = Boot {
        timeout: TIMEOUT,
        log: Some(log.clone()),
        ..built.boot(kernel::build(&options).unwrap())
    };
    boot.machine.icount = Some(icount);
    let outcome = qemu::run(&boot).unwrap();
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    fs::read_to_string(log).unwrap()
}

/// Whether a line of `who` that ends like this is there so many times.
#[track_caller]
fn assert_says(console: &str, who: &str, text: &str, times: usize) {
    let end = format!(" {who}: {text}");
    let count = console.lines().filter(|line| line.ends_with(&end));
    assert_eq!(count.count(), times, "`{end}` in:\n{console}");
}

/// What the description of the system promises of each failure.
#[track_caller]
fn assert_recovers(console: &str) {
    // By a fault, twice: the client is told, and is served right after.
    assert_says(console, "launcher", "`divider` is restarted", 2);
    for (text, times) in [
        ("60 / 4 = 15", 1),
        ("60 / 0: the server has failed", 2),
        ("60 / 5 = 12", 1),
        ("60 / 6 = 10", 1),
    ] {
        assert_says(console, "client", text, times);
    }
    // A server that does not answer: once its client's request, twice the other's.
    assert_says(console, "launcher", "`dreamer` is restarted", 3);
    for text in [
        "7: it dreams of 7",
        "0: the server has failed",
        "8: it dreams of 8",
        "is done",
    ] {
        assert_says(console, "client", text, 1);
    }
    // One whose time is with that server: it does not go on when it comes back.
    assert_says(console, "hasty", "asks", 2);
    assert_says(console, "hasty", "is answered", 0);
    assert_says(console, "launcher", "`hasty` is restarted", 1);
    // The guard page below the stack, until it is too often.
    assert_says(console, "launcher", "`deep` is restarted", 2);
    let stopped = "`deep` is stopped: it has failed again, restarted 2 times within 10000 ms";
    assert_says(console, "launcher", stopped, 1);
    assert_says(console, "launcher", "`silent` is restarted", 3);
    // Because of its second thread; the first waits meanwhile.
    assert_says(console, "pair", "the second thread runs", 3);
    assert_says(console, "launcher", "`pair` is restarted", 2);
    assert!(console.contains("`pair/second` was stopped by a fault: reading address 0x8"));
    // Not described to be restarted.
    assert_says(console, "launcher", "`steep` is restarted", 0);
    assert!(console.contains("`steep` was stopped by a fault: writing address 0x"));
    // Nothing is left of what a component did before.
    let starts = console.matches("starts, and finds ").count();
    let fresh = console
        .matches("starts, and finds 0 earlier starts")
        .count();
    // All nine, and thirteen restarts.
    assert_eq!((starts, fresh), (22, 22), "{console}");
    assert!(!console.contains("cannot be restarted"), "{console}");
}

/// With the kernel that checks who runs when: no budget, priority or deadline is violated meanwhile.
#[test]
fn components_that_fail_are_restarted_as_described_and_nobody_is_late() {
    let options = trace::Options {
        timeout: TIMEOUT,
        ..Default::default()
    };
    let traced = trace::trace(&path(), None, &options).unwrap();
    assert_eq!(traced.end, End::Guest(0), "{}", traced.console);
    assert_recovers(&traced.console);
    let verdict = check::check(&traced.history);
    assert!(verdict.violations.is_empty(), "{:?}", verdict.violations);
    assert_eq!(verdict.looked.jobs, 100);
}

#[test]
fn components_that_fail_are_restarted_on_four_cores_and_their_backtraces_have_names() {
    let mut source = Source::read(&path()).unwrap();
    source.text = source.text.replace("memory = 64", "memory = 64, cores = 4");
    for (name, core) in [
        ("divider", 1),
        ("dreamer", 2),
        ("client", 1),
        ("deep", 3),
        ("silent", 2),
        ("hasty", 3),
        ("pair", 1),
    ] {
        let name = format!("\nname = \"{name}\"\nexecutable");
        let there = name.replace("executable", &format!("core = {core}\nexecutable"));
        assert!(source.text.contains(&name));
        source.text = source.text.replace(&name, &there);
    }
    // Time passes on all cores while one executes, and components that fail execute until they are stopped: a nanosecond for
    // an instruction would be a run five times as long, of the same steps.
    let console = shown("recovery-4", &source, &[], 3);
    assert_recovers(&console);
    let (_, divider) = console
        .split_once("launcher: `divider`: backtrace: ")
        .unwrap();
    let has = |function: &str, file: &str| {
        let mut calls = divider
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with(' '));
        calls.any(|call| call.contains(function) && call.contains(file))
    };
    assert!(
        has(" recovery::divide at ", "recovery/src/main.rs:"),
        "{divider}"
    );
    assert!(
        has(
            " sandglass::server::handle_requests at ",
            "runtime/src/server.rs:"
        ),
        "{divider}"
    );
}

/// Two that log, one of them with evil intent, and one that ends the system when they have had their time.
const LOG: &str = r#"
name = "log"
machine = { memory = 64 }

[[component]]
name = "flooder"
executable = "recovery"
priority = 100
budget = "10ms"
period = "10ms"
log = "info"
parameters = { lines = 2_000 }

[[component]]
name = "honest"
executable = "recovery"
priority = 90
budget = "10ms"
period = "10ms"
log = "info"

[[component]]
name = "control"
executable = "recovery"
priority = 80
budget = "1ms"
period = "5ms"
log = "warn"
exit = true
parameters = { jobs = 1, period = "5ms", deadline = "1ms", steps = 0 }
"#;

#[test]
fn lines_are_whole_and_named_whatever_another_component_logs() {
    let source = Source {
        arch: None,
        name: "log.toml".to_owned(),
        text: LOG.to_owned(),
        folder: folder("log"),
    };
    let console = shown("log", &source, &["honest=debug"], 0);
    for text in [
        "an error",
        "a warning",
        "something",
        "details",
        "a line in pieces",
        "and another",
    ] {
        assert_says(&console, "honest", text, 1);
    }
    let long = format!("{:>300}|", "long");
    assert_says(&console, "honest", &long, 1);
    assert!(!console.contains("every detail"), "{console}");
    assert!(!console.contains("control:"), "only warnings: {console}");
    // What does not fit is dropped, and only from whom it is.
    let dropped: Vec<&str> = console
        .lines()
        .filter(|line| line.contains("dropped"))
        .collect();
    assert!(!dropped.is_empty());
    assert!(dropped.iter().all(|line| line.contains(" WARN  flooder: ")));
    // Every line begins with a time and a level, and ends with the device's only line feed.
    for line in console.lines() {
        let stamp = line.get(..15).unwrap_or_default();
        assert!(stamp.starts_with('[') && stamp.ends_with("] "), "{line}");
    }
    assert!(!console.contains('\x1b'));
    assert_says(&console, "launcher", "`honest` is stopped", 0);
}
