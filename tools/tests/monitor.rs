//! The ready-made monitor from outside: what is typed, and what it answers. That its figures are right, `trace::monitor`
//! of the test command checks.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use regex::Regex;
use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::qemu::{self, Boot, End, Input};
use sandglass_tools::system::{self, Source};

/// Ends at once: it has nothing of what it asks for.
const LOST: &str = r#"
[[component]]
name = "lost"
executable = "hello-visitor"
priority = 20
budget = "1ms"
period = "10ms"
"#;

/// The port is set up while the machine starts, and what comes before that is lost; an empty line means nothing. The second
/// time, all have ended that end at once.
const TYPED: &str = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\
                     ps\nbudget periodic 3ms\nbudget tally 1ms\nbudget periodic 9ms\nreboot\nps\ntop\n";

#[test]
fn what_is_typed_at_the_monitor_is_answered() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let path = root.join("systems/examples/monitor/SYSTEM.toml");
    let mut source = Source::read(&path).unwrap();
    for line in described_in_the_page(root) {
        assert!(source.text.contains(&line), "the example has no `{line}`");
    }
    // Above everybody, so that it sees who runs.
    source.text = source.text.replace("priority = 10\n", "priority = 250\n") + LOST;
    let description = system::check(&source).unwrap_or_else(|report| panic!("{report}"));
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join("monitor.elf");
    let built = system::build(&description, Some(&image)).unwrap();
    let kernel = kernel::build(&KernelOptions::new(Variant::Release)).unwrap();
    let mut boot = Boot {
        timeout: Some(Duration::from_secs(120)),
        input: Input::Bytes(TYPED.into()),
        ..built.boot(kernel)
    };
    boot.machine.icount = Some(0);
    let outcome = qemu::run(&boot).unwrap();
    let console = outcome.console.replace('\r', "");
    assert_eq!(outcome.end, End::Guest(0), "{console}");
    let lines: Vec<Vec<&str>> = console
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let says = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(lines.contains(&words), "`{line}` is not in:\n{console}");
    };
    for line in page_lines(root) {
        assert!(line.is_match(&console), "`{line}` is not in:\n{console}");
    }
    says("lost 20 0 ended ended with status 101");
    let refusals = [
        "it may not change the budget of `tally`",
        "the kernel refuses 9000 us of 8000 us",
    ];
    for refusal in refusals {
        assert!(console.contains(refusal), "{console}");
    }
    says("monitor: there are `ps`, `top`, `budget` and `help`");
    let changed =
        |line: &Vec<&str>| line.first() == Some(&"periodic") && line.get(5) == Some(&"3000");
    assert!(lines.iter().any(changed), "{console}");
}

/// `sandglass boot` of the example with these options.
fn boot(options: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let source = Source::read(&root.join("systems/examples/monitor/SYSTEM.toml")).unwrap();
    let description = system::check(&source).unwrap_or_else(|report| panic!("{report}"));
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typed.elf");
    system::build(&description, Some(&image)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .arg("boot")
        .arg(&image)
        .args(["--kernel", "release", "--icount", "0", "--timeout", "60"])
        .args(options)
        .output()
        .unwrap()
}

#[test]
fn boot_types_a_file_at_a_machine_with_more_devices() {
    let typed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typed.txt");
    fs::write(&typed, TYPED).unwrap();
    let answer = "there are `ps`, `top`";
    let typed = typed.to_str().unwrap();
    let network = [
        "--device",
        "e1000,netdev=net",
        "--qemu",
        "-netdev",
        "--qemu",
        "user,id=net",
    ];
    let options = [&["--input", typed, "--until", answer][..], &network].concat();
    let out = boot(&options);
    let console = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{console}");
    assert!(console.contains(answer), "{console}");
    // Without the rest of it, there is no such device.
    let out = boot(&network[..2]);
    assert_eq!(out.status.code(), Some(1));
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(error.contains("e1000"), "{error}");
}

/// The lines that the page "Debugging" shows of a monitor's console, as patterns: blanks are any number of them, and `...`
/// is anything. Who waits there may be at work here: when typed text comes depends on the host.
fn page_lines(root: &Path) -> Vec<Regex> {
    let page = fs::read_to_string(root.join("docs/src/how-to/debugging.md")).unwrap();
    let listings = page.split("```console\n").skip(1);
    let lines = listings.flat_map(|rest| rest.split("```").next().unwrap().lines());
    let patterns = lines.map(|line| {
        let words: Vec<String> = line.split_whitespace().map(regex::escape).collect();
        let pattern = words.join(" +").replace(r"\.\.\.", ".*");
        let pattern = match pattern.split_once("waits") {
            Some((who, what)) => format!("{who}(waits{what}|runs)"),
            None => pattern,
        };
        Regex::new(&format!("(?m)^{pattern} *$")).unwrap()
    });
    let patterns: Vec<Regex> = patterns.collect();
    assert!(!patterns.is_empty(), "the page shows a monitor");
    patterns
}

/// What the page describes of a monitor, line by line, without comments.
fn described_in_the_page(root: &Path) -> Vec<String> {
    let page = fs::read_to_string(root.join("docs/src/how-to/debugging.md")).unwrap();
    let listing = page.split("```toml\n").nth(1).unwrap();
    let lines = listing.split("```").next().unwrap().lines();
    lines
        .map(|line| line.split('#').next().unwrap().trim_end().to_owned())
        .collect()
}
