//! Components in C, from outside: the library's functions in a system that boots, and what is built of which sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::qemu::{self, Boot, End};
use sandglass_tools::system::{self, Source};

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("c-components")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// What `sandglass` says, called in `folder`.
fn sandglass(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(out: &Output) -> String {
    [&out.stdout[..], &out.stderr[..]]
        .map(String::from_utf8_lossy)
        .concat()
}

#[track_caller]
fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
}

/// Every function does what the header says, and components that end, panic or fault are reported as those in Rust are.
#[test]
fn every_function_of_the_header_works() {
    let source = Source::read(&workspace().join("systems/c-tests/SYSTEM.toml")).unwrap();
    let description = system::check(&source).unwrap_or_else(|report| panic!("{report}"));
    let image = folder("functions").join("image.elf");
    let built = system::build(&description, Some(&image)).unwrap();
    let mut boot = Boot {
        timeout: Some(Duration::from_secs(120)),
        ..built.boot(kernel::build(&KernelOptions::new(Variant::Release)).unwrap())
    };
    boot.machine.icount = Some(0);
    let outcome = qemu::run(&boot).unwrap();
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    let lines = [
        " passed, 0 failed",
        "1 2 3 4 5 6 7 8 9.5 ten",
        "a line",
        "bytes",
        "WARN  the log has 1 line",
        "main.c:90: there are 3 reasons",
        "main.c:92: assertion `1 + 1 == 3` failed",
    ];
    assert_says(&outcome.console, &lines);
    let ends = [
        ("quitter", "status 7"),
        ("panicker", "status 101"),
        ("asserter", "status 101"),
        ("divider", "fault"),
        ("overrunner", "fault"),
    ];
    for (component, how) in ends {
        let mut reports = outcome.console.lines();
        let is_reported = |line: &str| {
            line.contains("launcher:")
                && line.contains(&format!("`{component}`"))
                && line.contains(how)
        };
        assert!(reports.any(is_reported), "{component}: {}", outcome.console);
    }
}

/// The names that begin with `sg_` and are called in a text.
fn called(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_name(c));
    words.filter(|word| word.starts_with("sg_")).collect()
}

#[test]
fn no_function_of_the_header_is_without_a_test() {
    let read = |path: &str| fs::read_to_string(workspace().join(path)).unwrap();
    let header = read("user/c/include/sandglass.h");
    let declared: BTreeSet<&str> = header
        .match_indices('(')
        .map(|(at, _)| {
            let before = &header[..at];
            &before[before
                .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .map_or(0, |end| end + 1)..]
        })
        .filter(|name| name.starts_with("sg_"))
        .collect();
    let tests = ["systems/c-tests", "systems/examples/c/control"]
        .iter()
        .flat_map(|folder| fs::read_dir(workspace().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "c"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect::<String>();
    // Those that the header itself calls, for the functions that are used instead.
    let inner = [
        "sg_vpanic",
        "sg_panic_at",
        "sg_vprintf",
        "sg_vsnprintf",
        "sg_vlog",
    ];
    let called = called(&tests);
    let untested: Vec<_> = declared
        .iter()
        .filter(|name| !called.contains(**name) && !inner.contains(name))
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
    assert!(declared.len() > 60);
}

const DESCRIPTION: &str = r#"
name = "greeter"

[[component]]
name = "greeter"
executable = { c = ["main.c", "greeting.c"], include = ["include"], flags = ["-DTIMES=2"] }
priority = 100
budget = "1ms"
period = "1ms"
console = true
exit = true
"#;

const MAIN: &str = r#"#include <greeting.h>
#include <sandglass.h>

int main(void)
{
    for (int i = 0; i < TIMES; i++)
        sg_puts(greeting());
    return 0;
}
"#;

/// The sources of a system with one component.
fn greeter(name: &str) -> PathBuf {
    let folder = folder(name);
    fs::create_dir(folder.join("include")).unwrap();
    for (file, text) in [
        ("SYSTEM.toml", DESCRIPTION),
        ("main.c", MAIN),
        (
            "greeting.c",
            "#include <greeting.h>\n\nconst char *greeting(void)\n{\n    return GREETING;\n}\n",
        ),
        (
            "include/greeting.h",
            "#define GREETING \"good morning\"\nconst char *greeting(void);\n",
        ),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    folder
}

/// Replaces text that is in a file.
fn change(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "`{old}` is in {}", file.display());
    fs::write(file, text.replace(old, new)).unwrap();
}

#[test]
fn sources_and_headers_are_built_before_they_boot_and_messages_are_about_the_users_files() {
    let folder = greeter("sources");
    let image = folder.join("image.elf");
    let build = || sandglass(&folder, &["build", "SYSTEM.toml", "-o", "image.elf"]);
    let has = |text: &str| {
        let image = fs::read(&image).unwrap();
        image
            .windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    };
    let out = build();
    assert!(
        out.status.success() && has("good morning"),
        "{}",
        said(&out)
    );
    assert!(!said(&out).contains("warning"), "{}", said(&out));

    // A header alone.
    change(
        &folder.join("include/greeting.h"),
        "good morning",
        "good evening",
    );
    let out = build();
    assert!(out.status.success() && has("good evening") && !has("good morning"));

    // A warning is shown each time, not only when something has changed.
    change(
        &folder.join("main.c"),
        "    return 0;",
        "    int unused;\n    return 0;",
    );
    for _ in 0..2 {
        let out = build();
        assert!(out.status.success());
        assert_says(&said(&out), &["main.c:8:9: warning: unused variable"]);
    }

    // What does not compile is not booted, and the former image stays.
    change(&folder.join("main.c"), "int unused;", "missing;");
    let out = build();
    assert!(!out.status.success() && has("good evening"));
    assert_says(
        &said(&out),
        &["main.c does not compile", "main.c:8:5: error:"],
    );

    change(
        &folder.join("main.c"),
        "missing;",
        "int printf(const char *, ...); printf(\"x\");",
    );
    let out = build();
    assert!(!out.status.success());
    assert_says(
        &said(&out),
        &[
            "does not link",
            "undefined symbol: printf",
            "help: `printf`: use `sg_printf`",
        ],
    );
}

#[test]
fn mistakes_in_the_description_of_a_program_in_c_are_shown_where_they_are() {
    let folder = greeter("mistakes");
    let build = |old: &str, new: &str| {
        fs::write(folder.join("SYSTEM.toml"), DESCRIPTION.replace(old, new)).unwrap();
        let out = sandglass(&folder, &["build", "SYSTEM.toml"]);
        assert!(!out.status.success());
        said(&out)
    };
    let wrong = [
        ("\"greeting.c\"", "\"gretting.c\"", "cannot read the source `gretting.c`"),
        ("\"greeting.c\"", "\"greeting.cpp\"", "`greeting.cpp` is no source in C"),
        ("[\"include\"]", "[\"includes\"]", "there is no folder `includes`"),
        ("[\"main.c\", \"greeting.c\"]", "[]", "a program in C needs a source"),
        ("flags =", "flaggs =", "flaggs"),
        ("{ c = [\"main.c\", \"greeting.c\"], include = [\"include\"], flags = [\"-DTIMES=2\"] }", "5", "text in quotes"),
    ];
    for (old, new, message) in wrong {
        assert_says(&build(old, new), &[message, "SYSTEM.toml:6:"]);
    }
}

/// By hand, or by a Makefile; and the file that a debugger reads says which line is where.
#[test]
fn flags_are_told_to_those_who_build_otherwise() {
    flags_suffice("x86_64", "cc");
}

#[test]
fn flags_for_aarch64_are_told_to_those_who_build_otherwise() {
    flags_suffice("aarch64", "aarch64-linux-gnu-gcc");
}

fn flags_suffice(arch: &str, compiler: &str) {
    let folder = greeter(&format!("flags-{arch}"));
    let flags = |kind: &str| {
        let out = sandglass(&folder, &["c-flags", "--arch", arch, kind]);
        assert!(out.status.success(), "{}", said(&out));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let (compile, link) = (flags("--compile"), flags("--link"));
    let script = format!(
        "set -e\n{compiler} {compile} -DTIMES=1 -Iinclude -c main.c\n\
         {compiler} {compile} -Iinclude -c greeting.c\n\
         {compiler} main.o greeting.o {link} -o greeter.elf\nreadelf -S greeter.elf"
    );
    let out = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", said(&out));
    assert_says(&said(&out), &[".debug_line"]);
    let description = DESCRIPTION
        .lines()
        .map(|line| match line.starts_with("executable") {
            true => "executable = \"./greeter.elf\"\n".to_owned(),
            false => format!("{line}\n"),
        });
    fs::write(folder.join("SYSTEM.toml"), description.collect::<String>()).unwrap();
    // A file given by its path is not let end the machine on aarch64. A kernel that other tests have, too.
    let run = [
        "run",
        "SYSTEM.toml",
        "--kernel",
        "release",
        "--arch",
        arch,
        "--icount",
        "0",
        "--timeout",
        "60s",
        "--until",
        "good morning",
    ];
    let out = sandglass(&folder, &run);
    assert!(out.status.success(), "{}", said(&out));
}

/// One of `systems/c-tests/recovery.toml`, with `machine`, and threads on the cores that it says.
fn recovered(cores: u32) -> String {
    let path = workspace().join("systems/c-tests/recovery.toml");
    let mut source = Source::read(&path).unwrap();
    if cores > 1 {
        assert!(source.text.contains("core = 0 # of four: "));
        source.text = source
            .text
            .replace("core = 0 # of four: ", "core = ")
            .replace("memory = 64", &format!("memory = 64, cores = {cores}"));
    }
    let description = system::check(&source).unwrap_or_else(|report| panic!("{report}"));
    let image = folder(&format!("recovery-{cores}")).join("image.elf");
    let built = system::build(&description, Some(&image)).unwrap();
    let options = KernelOptions::on(Variant::Release, built.cores_with(None).unwrap());
    let mut boot = Boot {
        timeout: Some(Duration::from_secs(120)),
        ..built.boot(kernel::build(&options).unwrap())
    };
    boot.machine.icount = Some(0);
    let outcome = qemu::run(&boot).unwrap();
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    outcome.console
}

/// Those that divide by zero, overrun their stacks or never answer are restarted, or not, as described; their client is told;
/// and the control loop misses no deadline.
#[test]
fn components_in_c_that_fail_are_restarted_as_described_and_nobody_is_late() {
    for cores in [1, 4] {
        let console = recovered(cores);
        let count = |text: &str| console.matches(text).count();
        for (text, times) in [
            ("control: 60 jobs, 0 late", 1),
            ("launcher: `divider` is restarted", 2),
            ("launcher: `deep` is restarted", 1),
            ("launcher: `deep` is stopped: it has failed again", 1),
            ("launcher: `deaf` is restarted", 1),
            ("launcher: `once` is restarted", 0),
            ("launcher: `once` was stopped by a fault", 1),
            ("client: 60 / 0: failed", 2),
            ("client: 60 / 4 = 15", 1),
            ("client: no answer: failed", 1),
            ("client: an answer", 1),
        ] {
            assert_eq!(count(text), times, "`{text}` on {cores} cores:\n{console}");
        }
    }
}

/// A debugger stops in a function in C, by its name, and sees its variables and who runs.
#[test]
fn a_debugger_stops_in_functions_in_c() {
    let script = folder("debug").join("commands.gdb");
    let commands = "sg break control controller_step\nsg continue\nprint error\nprint *controller\nsg current\n\
                    sg break filter filter\nsg continue\nprint request->message.length\n";
    fs::write(&script, commands).unwrap();
    let script = script.to_str().unwrap();
    let system = ["debug", "systems/examples/c/SYSTEM.toml", "--icount", "0"];
    let out = sandglass(
        workspace(),
        &[&system[..], &["--unoptimised", "--script", script]].concat(),
    );
    let said = said(&out);
    assert!(out.status.success(), "{said}");
    let lines = [
        "Breakpoint 1, in control",
        "controller_step (controller=0x",
        "systems/examples/c/control/pid.c:10",
        "{proportional = 0.8",
        "Breakpoint 2, in filter",
        "$3 = 4",
    ];
    assert_says(&said, &lines);
}
