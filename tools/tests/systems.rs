//! Described systems from outside: built, booted, ended; and what does not fit is refused.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::qemu::{self, Boot, End, Outcome};
use sandglass_tools::system::{self, Report, Source};

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The example system, with `old` replaced by `new`.
fn hello(old: &str, new: &str) -> Source {
    let path = workspace().join("systems/examples/hello/SYSTEM.toml");
    let mut source = Source::read(&path).unwrap();
    assert!(source.text.contains(old), "`{old}` is in the example");
    source.text = source.text.replace(old, new);
    source
}

/// Builds and boots a system; what is in the file `output` of the folder is its output, if it has
/// one.
fn run(name: &str, source: &Source, variant: Variant) -> Outcome {
    let description = system::check(source).unwrap_or_else(|report| panic!("{report}"));
    let image = folder(name).join(format!("{}.elf", variant.name()));
    let built = system::build(&description, Some(&image)).unwrap();
    let kernel = kernel::build(&KernelOptions::new(variant)).unwrap();
    let mut boot = Boot {
        timeout: Some(Duration::from_secs(120)),
        ..built.boot(kernel)
    };
    boot.machine.icount = Some(0);
    if built.output.is_some() {
        built
            .output_to(&mut boot, &folder(name).join("output"))
            .unwrap();
    }
    qemu::run(&boot).unwrap()
}

/// Builds a system that must be refused.
fn refusal(name: &str, source: &Source) -> String {
    let description = system::check(source).unwrap_or_else(|report| panic!("{report}"));
    let image = folder(name).join("image.elf");
    // What an earlier run may have left.
    let _ = fs::remove_file(&image);
    let error = system::build(&description, Some(&image)).unwrap_err();
    assert!(!image.exists(), "nothing is written of what is refused");
    error.downcast::<Report>().unwrap().to_string()
}

#[track_caller]
fn assert_says(text: &str, said: &[&str]) {
    for expected in said {
        assert!(text.contains(expected), "`{expected}` is not in:\n{text}");
    }
}

#[test]
fn the_example_runs_on_both_kernels() {
    for variant in [Variant::Debug, Variant::Release] {
        let outcome = run("example", &hello("", ""), variant);
        assert_says(
            &outcome.console,
            &["HELLO FROM A FILE (14 letters changed)"],
        );
        assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    }
}

/// An example system as it is.
fn example(name: &str) -> Source {
    let folder = workspace().join("systems/examples").join(name);
    Source::read(&folder.join("SYSTEM.toml")).unwrap()
}

/// Every policy does what it says; the primes below 20,000 are 2,262, however often a request ended
/// early; a client that was suspended in the server hinders nobody; and what is no timeout of the
/// server changes nothing, neither the request under way nor what comes later.
#[test]
fn what_happens_to_clients_that_run_out_of_time_is_described() {
    for variant in [Variant::Debug, Variant::Release] {
        let outcome = run("timeouts", &example("timeouts"), variant);
        assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
        assert_says(
            &outcome.console,
            &[
                "handler: gone ran out (consumed 2999 us): RolledBack",
                "handler: growing ran out (consumed 999 us): Extended { budget_us: 2000 }",
                "handler: growing ran out (consumed 1999 us): Extended { budget_us: 3000 }",
                "growing: 2262 primes, in one request",
                "handler: urgent ran out (consumed 999 us): Emergency { budget_us: 8000 }",
                "urgent: 2262 primes, in one request",
                "handler: greedy ran out (consumed 999 us): Emergency { budget_us: 200 }",
                "handler: the emergency ran out (consumed",
                "greedy: gives up: the answer is 0x7130",
                "handler: strict ran out (consumed 999 us): Reset",
                "strict: gives up: the answer is 0x7130",
                "handler: rogue ran out (consumed 999 us): Killed",
                "handler: patient ran out (consumed 999 us): RolledBack",
                "patient: 2262 primes, in ",
            ],
        );
        for silent in ["rogue: ", "gone: ", "stray: ", "launcher: component"] {
            assert!(!outcome.console.contains(silent), "{}", outcome.console);
        }
        // In the middle of the first request, which runs out later.
        let stray = "handler: this is no timeout of the server";
        assert_eq!(outcome.console.matches(stray).count(), 1);
        let (before, after) = outcome.console.split_once(stray).unwrap();
        assert!(!before.contains("ran out"), "{}", outcome.console);
        assert!(after.contains("gone ran out"), "{}", outcome.console);
    }
}

/// Whoever is waited for at the start, and dies, is named; with no console of its own too.
#[test]
fn a_server_that_ends_before_it_is_ready_ends_the_start() {
    for console in ["console = true", "console = false"] {
        let mut source = changed("timeouts", "name = \"primes\"", "name = \"sums\"");
        source.text = source.text.replace("console = true", console);
        let outcome = run("timeouts-unready", &source, Variant::Release);
        assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);
        let said =
            "cannot start `counter`: it ended before it was ready, with status 101 (a panic)";
        assert_says(&outcome.console, &[said]);
    }
}

/// The critical task misses no deadline though it needs more than its budget now and then, which
/// the shared server's handler and the mode manager bring about together; and the mode falls again.
#[test]
fn who_is_less_critical_gives_way() {
    for variant in [Variant::Debug, Variant::Release] {
        let outcome = run("modes", &example("modes"), variant);
        assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
        assert_says(
            &outcome.console,
            &[
                "handler: control ran out (consumed ",
                "modes: control needs more: from low to high",
                "modes: idle: from high to low",
                "task 0: 80 deadlines, 80 completed, 0 missed",
            ],
        );
        assert!(!outcome
            .console
            .contains("task 1: 160 deadlines, 160 completed, 0 missed"));
    }
}

#[test]
fn what_is_described_is_what_components_get() {
    let path = workspace().join("systems/described-tests/SYSTEM.toml");
    let source = Source::read(&path).unwrap();
    for variant in [Variant::Debug, Variant::Release] {
        let outcome = run("described", &source, variant);
        assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
        assert_says(&outcome.console, &["9 passed, 0 failed"]);
        let expected: Vec<u8> = (0..64).flat_map(|_| 0..=255).collect();
        let output = fs::read(folder("described").join("output")).unwrap();
        assert!(output == expected, "{} bytes", output.len());
    }
}

/// An example system, with `old` replaced by `new`.
fn changed(name: &str, old: &str, new: &str) -> Source {
    let mut source = example(name);
    assert!(source.text.contains(old), "`{old}` is in the example");
    source.text = source.text.replace(old, new);
    source
}

#[test]
fn tasks_scheduled_by_deadlines_are_in_time_and_a_rogue_does_not_matter() {
    for name in ["edf", "edf-cooperative"] {
        let outcome = run(name, &example(name), Variant::Release);
        assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
        let lines = ["task 0: 100 jobs, 0 late", "task 1: 40 jobs, 0 late"];
        assert_says(&outcome.console, &lines);
    }
}

/// A control loop is in time beside clients of the time manager that are given time and lose it, overrun and fail; and
/// what the one that failed had is its heir's.
#[test]
fn time_that_is_handed_out_is_taken_back_and_nobodys_turns_are_late() {
    let outcome = run("time-manager", &example("time-manager"), Variant::Release);
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    let lines = [
        "child: 50 turns, 0 late",
        "hog: 0 turns, 0 late",
        "crasher: 1 turns, 0 late",
        "sleeper: 1 turns, 0 late",
        "turns, 0 late",
    ];
    assert_says(&outcome.console, &lines);
    let late = outcome
        .console
        .lines()
        .filter(|line| line.ends_with(" late") && !line.ends_with(" 0 late"));
    assert_eq!(late.count(), 0, "{}", outcome.console);
}

/// Two subsystems share what a control loop leaves, one by subdividing its time, which is given and taken back, and one by
/// windows in a frame; a thread that never stops and one that waits for ever are in the windows' way. Both have seals of a key
/// server, which others ask all the time, and these are what another implementation makes.
#[test]
fn subsystems_share_a_processor_each_in_its_way_beside_a_control_loop() {
    let outcome = run("subsystems", &example("subsystems"), Variant::Release);
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    let lines = [
        "control: ",
        "tracker: ",
        "mapper: 50 turns, 0 late",
        "pilot: ",
        "player: ",
    ];
    assert_says(&outcome.console, &lines);
    // By their numbers among the gate's clients.
    for (name, client) in [("pilot", 0), ("tracker", 1)] {
        let (number, job, code) = seal(&outcome.console, name);
        assert_eq!(code, authenticated([number, client, job]), "{name}");
    }
}

/// The last seal of a subsystem's: its number, its job, and its code in hexadecimal digits.
fn seal(console: &str, name: &str) -> (u64, u64, String) {
    let of_it = |line: &&str| line.starts_with(name) && line.contains(" seals, ");
    let line = console.lines().find(of_it);
    let line = line.unwrap_or_else(|| panic!("no seal of {name} in:\n{console}"));
    let mut words = line.split([' ', ',', ':']);
    let mut after = |word: &str| {
        let found = words.by_ref().find(|&found| found == word);
        found.and_then(|_| words.next()).unwrap_or_default()
    };
    let (number, job) = (after("number"), after("job"));
    let code = line.rsplit(' ').next().unwrap_or_default();
    let parsed = |text: &str| {
        text.parse()
            .unwrap_or_else(|_| panic!("`{text}` in: {line}"))
    };
    (parsed(number), parsed(job), code.to_owned())
}

/// The HMAC-SHA-256 of these words by the example's key, as the command `openssl` makes it.
fn authenticated(words: [u64; 3]) -> String {
    let message = folder("subsystems").join("sealed");
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    fs::write(&message, bytes).unwrap();
    let output = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac"])
        .arg("a key that is known to everybody")
        .arg(&message)
        .output()
        .unwrap_or_else(|error| panic!("cannot run `openssl`, which must be installed: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "`openssl` said {output:?}");
    said.trim()
        .rsplit(' ')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The answer to a request that ran out of time is not lost, though the task has its own timeout fault
/// when it arrives; the other task has all of its time.
#[test]
fn a_task_that_is_rolled_back_goes_on_with_its_next_job() {
    for variant in [Variant::Debug, Variant::Release] {
        let outcome = run("edf-shared", &example("edf-shared"), variant);
        assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
        assert_says(
            &outcome.console,
            &[
                "handler: counting ran out (consumed ",
                "RolledBack",
                "counting: 2262 primes, in ",
                "task 0: 30 jobs, 0 late",
                "task 1: 1 jobs, 0 late",
            ],
        );
        assert!(
            !outcome.console.contains("in 1 requests"),
            "{}",
            outcome.console
        );
    }
}

#[test]
fn a_task_that_overruns_is_stopped_if_the_description_says_so() {
    let source = changed("edf", "mode =", "overrun = \"stop\"\nmode =");
    let outcome = run("edf-stop", &source, Variant::Release);
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    assert_says(&outcome.console, &["`rogue` is stopped: Timeout"]);
}

#[test]
fn deadlines_that_cannot_be_met_are_missed() {
    // A job takes 100,000 steps, which are more instructions, whatever is promised.
    let source = changed(
        "edf-cooperative",
        "deadline = \"1ms\", longest = \"500us\"",
        "deadline = \"50us\", longest = \"50us\"",
    );
    let outcome = run("edf-overload", &source, Variant::Release);
    assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);
    assert_says(&outcome.console, &["task 0: 100 jobs, 100 late"]);
}

/// A request that begins just before a job is released delays it: that was promised once, and is refused.
#[test]
fn a_deadline_that_a_request_has_no_room_before_is_refused_and_would_be_missed() {
    // The second task begins its request when the first has ended a job.
    let counting = |budget: &str| {
        let new = format!("budget = \"{budget}\", offset = \"1900us\" }}");
        changed("edf-shared", "budget = \"1ms\" }", &new)
    };
    let outcome = run("edf-room", &counting("1ms"), Variant::Release);
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    let mut source = counting("2ms");
    let report = system::check(&source).unwrap_err().to_string();
    assert!(report.contains("2000 by a request to a server"), "{report}");
    source.text = source
        .text
        .replace("mode =", "admission = \"none\"\nmode =");
    let outcome = run("edf-no-room", &source, Variant::Release);
    assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);
    assert_says(
        &outcome.console,
        &["task 0: 30 jobs, ", "task 1: 1 jobs, 0 late"],
    );
}

#[test]
fn each_kind_of_task_keeps_to_its_reservation() {
    let outcome = run("tasks", &example("tasks"), Variant::Release);
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    assert_says(&outcome.console, &["25 polls, 25 found", "100 releases"]);
}

#[test]
fn a_task_that_is_not_limited_is_noticed() {
    // Of a tenth, a fifth.
    let limited = "budget = \"1ms\"\nperiod = \"10ms\"";
    let source = changed("tasks", limited, "budget = \"2ms\"\nperiod = \"10ms\"");
    let outcome = run("tasks-rate", &source, Variant::Release);
    assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);
    assert_says(&outcome.console, &["not so: a rate is limited"]);
}

#[test]
fn the_status_of_the_component_that_ends_the_system_is_the_guests() {
    let outcome = run(
        "status",
        &hello("status = 0", "status = 42"),
        Variant::Release,
    );
    assert_eq!(outcome.end, End::Guest(42), "{}", outcome.console);
    assert_says(&outcome.console, &["system `hello` ends with status 42"]);
}

#[test]
fn the_panic_of_a_component_that_ends_the_system_ends_it() {
    let source = hello("parameters = { status = 0 }", "");
    let outcome = run("panic", &source, Variant::Release);
    assert_eq!(outcome.end, End::Guest(101), "{}", outcome.console);
    assert_says(&outcome.console, &["no parameter is named status"]);
}

/// An executable whose only instruction is the undefined one, at the address returned.
fn undefined_instruction() -> (Vec<u8>, u64) {
    const HEADERS: u64 = 64 + 56;
    const BASE: u64 = 0x40_0000;
    let entry = BASE + HEADERS;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_EXEC, EM_X86_64, version 1.
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for word in [entry, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0; 4]);
    for half in [64u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // PT_LOAD, readable and executable.
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0, BASE, BASE, HEADERS + 2, HEADERS + 2, 0x1000] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0x0f, 0x0b]);
    (file, entry)
}

#[test]
fn a_fault_that_nobody_handles_is_reported_with_name_and_address() {
    let (program, entry) = undefined_instruction();
    let folder = folder("fault");
    fs::write(folder.join("undefined.elf"), program).unwrap();
    let broken = r#"
        [[component]]
        name = "broken"
        executable = "./undefined.elf"
        priority = 150
        budget = "1ms"
        period = "10ms"
    "#;
    let text = "name = \"fault\"\nmachine = { memory = 64 }\n".to_owned() + broken;
    let source = |exit: bool| Source {
        arch: None,
        name: "fault.toml".to_owned(),
        text: format!("{text}\nexit = {exit}\n"),
        folder: folder.clone(),
    };
    let expected = format!("`broken` was stopped by a fault: processor exception 6 with error code 0x0, at instruction {entry:#x}");
    // One that is waited for ends the start.
    let mut awaited = source(true);
    awaited.text.push_str("ready = true\n");
    let outcome = run("fault", &awaited, Variant::Release);
    let why = "cannot start `broken`: it was stopped by a fault before it was ready";
    assert_says(&outcome.console, &[&expected, why]);
    assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);
    // Nobody is left to end the system.
    let outcome = run("fault", &source(true), Variant::Release);
    assert_says(
        &outcome.console,
        &[
            &expected,
            "every component with `exit = true` has been stopped",
        ],
    );
    assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);

    // Another component goes on.
    let mut source = hello("", "");
    source.text += &broken.replace(
        "./undefined.elf",
        folder.join("undefined.elf").to_str().unwrap(),
    );
    let outcome = run("fault-beside", &source, Variant::Release);
    assert_says(&outcome.console, &[&expected, "HELLO FROM A FILE"]);
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
}

#[test]
fn an_image_that_the_kernel_would_refuse_is_refused_with_the_numbers() {
    let name = "large-file";
    let large = folder(name).join("large");
    File::create(&large).unwrap().set_len(32 << 20).unwrap();
    let mut source = hello("memory = 64", "memory = 512");
    source.text = source.text.replace("text.txt", large.to_str().unwrap());
    let report = refusal(name, &source);
    assert_says(
        &report,
        &[
            "33554432 files",
            "at most 32505856 bytes (31 MiB)",
            "SYSTEM.toml:",
        ],
    );
}

#[test]
fn an_input_of_many_mebibytes_is_mapped_without_a_copy() {
    // More pages than the launcher's first CSpace has slots for.
    let name = "mapped-file";
    let large = folder(name).join("large");
    let file = File::create(&large).unwrap();
    file.set_len(24 << 20).unwrap();
    let mut source = hello("memory = 64", "memory = 128");
    source.text = source.text.replace("text.txt", large.to_str().unwrap());
    let outcome = run(name, &source, Variant::Release);
    assert_says(&outcome.console, &["(0 letters changed)"]);
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
}

#[test]
fn components_that_do_not_fit_into_the_machine_are_refused_with_the_numbers() {
    let large = "size = \"60MiB\"\nmaps = [{ component = \"visitor\" }]\n";
    let mut source = hello("memory = 64", "memory = 61");
    source.text += &format!("[[memory]]\nname = \"large\"\n{large}");
    let report = refusal("small-machine", &source);
    assert_says(
        &report,
        &["for its image", "the machine has 61 MiB", "SYSTEM.toml:"],
    );
}

#[test]
fn memory_at_the_address_of_the_executable_is_refused() {
    let (mut program, _) = undefined_instruction();
    // The segment reaches 512 MiB and more.
    program[64 + 40..64 + 48].copy_from_slice(&0x2000_0000u64.to_le_bytes());
    let folder = folder("overlap");
    fs::write(folder.join("vast.elf"), program).unwrap();
    let mut source = hello("\"hello-shouter\"", "\"./vast.elf\"");
    source.folder = folder.clone();
    fs::write(folder.join("text.txt"), "text").unwrap();
    source.text = source.text.replace("memory = 64", "memory = 4096");
    let report = refusal("overlap", &source);
    assert_says(
        &report,
        &["overlaps the executable of `shouter`", "or above"],
    );
}

#[test]
fn output_that_is_not_described_cannot_be_kept() {
    let description = system::check(&hello("", "")).unwrap();
    let image = folder("no-output").join("image.elf");
    let built = system::build(&description, Some(&image)).unwrap();
    let mut boot = built.boot("kernel");
    let error = built.output_to(&mut boot, Path::new("file")).unwrap_err();
    assert!(error.to_string().contains("[[output]]"), "{error}");
}
