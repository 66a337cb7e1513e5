//! Tests that run on the host: the workspace's unit, integration and documentation tests.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use super::harness::{self, Harness};
use super::lines::{self, Verdict};
use super::report::{Report, Shared};
use super::Filter;
use crate::arch::Arch;
use crate::built;
use crate::side_by_side;
use crate::toolchain;
use crate::visits;
use crate::workspace;
use anyhow::{Context, Result};
use sandglass_abi::profile::Profile;

/// What cargo builds tests of.
struct Part {
    /// For messages.
    name: &'static str,
    /// What comes before the harness in the names of its tests, if not just its kind.
    prefix: &'static str,
    /// All its tests are long ones.
    is_long: bool,
    /// Arguments of `cargo test`.
    arguments: &'static [&'static str],
}

/// Features of the kernel that is the opposite of the workspace's.
const OPPOSITE: &str = "aarch64,debug,smp,trace";

const PARTS: &[Part] = &[
    Part {
        name: "the host's tests",
        prefix: "host",
        is_long: false,
        arguments: &["--workspace"],
    },
    Part {
        name: "the tests in parallel virtual time, and lock step on several cores",
        prefix: "host::cores",
        is_long: false,
        arguments: &[
            "--package",
            "sandglass-parallel",
            "--package",
            "sandglass-gates",
            "--package",
            "sandglass-assurance",
            "--features",
            "smp",
        ],
    },
    // The whole workspace has the release kernel of x86_64 for one core without traces, and this the opposite in all, with
    // all that there is about traces; mutants and coverage run what else there is.
    Part {
        name: "the tests of aarch64's debug SMP kernel with traces on the host",
        prefix: "host::aarch64",
        is_long: false,
        arguments: &["--package", "sandglass-kernel", "--features", OPPOSITE],
    },
    // What options change beyond numbers: domains that are several. Their root tasks in C are usual.
    Part {
        name: "the kernel's tests in a profile with several domains",
        prefix: "host::microkit-release",
        is_long: true,
        arguments: &[
            "--package",
            "sandglass-kernel",
            "--test",
            "tests",
            "--features",
            "microkit-release",
        ],
    },
    Part {
        name: "lock step and parallel virtual time with that kernel",
        prefix: "host::aarch64",
        is_long: true,
        arguments: &[
            "--package",
            "sandglass-parallel",
            "--package",
            "sandglass-gates",
            "--package",
            "sandglass-assurance",
            "--features",
            OPPOSITE,
        ],
    },
];

/// The features of profiles with which the tests of `package` are run on the kernels for x86_64, `None` for base; whether with
/// the kernel for several cores; and whether only with `--all` or by name.
pub(crate) fn profiles_of(package: &str) -> Vec<(Option<&'static str>, bool, bool)> {
    let mut profiles = Vec::new();
    for part in PARTS {
        let features = part.arguments.iter().skip_while(|&&it| it != "--features");
        let features: Vec<&str> = features.skip(1).flat_map(|it| it.split(',')).collect();
        let has = |name: &str| part.arguments.contains(&name);
        if (has(package) || has("--workspace")) && !features.contains(&Arch::Aarch64.name()) {
            let mut named = features.iter().filter_map(|name| Profile::named(name));
            let profile = named.next().and_then(crate::profile::feature);
            profiles.push((profile, features.contains(&"smp"), part.is_long));
        }
    }
    profiles
}

impl Part {
    /// Whether one of its tests can be wanted: not if the pattern says of which other part the wanted
    /// are.
    fn may_have(&self, filter: &Filter) -> bool {
        if self.is_long && matches!(filter, Filter::Usual) {
            return false;
        }
        let Some(pattern) = filter.pattern().filter(|p| p.starts_with("host::")) else {
            return true;
        };
        self.prefix.starts_with(pattern) || pattern.starts_with(self.prefix)
    }

    /// What builds its harnesses.
    fn cargo(&self) -> Command {
        let mut cargo = toolchain::linted_cargo();
        cargo.args(["test", "--no-run", "--profile", toolchain::HOST_PROFILE]);
        cargo.args(self.arguments);
        cargo
    }
}

/// What builds the host's usual tests: all that runs on the host, in every configuration that is usually tested. clippy looks
/// at it on the way.
pub fn builds() -> impl Iterator<Item = Command> {
    let usual = PARTS.iter().filter(|part| !part.is_long);
    usual.map(Part::cargo)
}

/// Builds and runs the host's tests; those of the tool at the end, as they wait for kernels and programs.
pub fn run(filter: &Filter, report: &mut Report) -> Result<()> {
    let mut last = Vec::new();
    for part in PARTS.iter().filter(|part| part.may_have(filter)) {
        let begin = Instant::now();
        let built = build(part)?;
        report.took(format!("building {}", part.name), begin.elapsed());
        match built {
            Ok(mut harnesses) => {
                let begin = Instant::now();
                last.extend(harnesses.extract_if(.., |harness| harness.folder == tools()));
                run_harnesses(&harnesses, filter, report)?;
                report.took(format!("running {}", part.name), begin.elapsed());
            }
            Err(messages) => report.failed(&format!("{}::build", part.prefix), &messages),
        }
    }
    let begin = Instant::now();
    run_harnesses(&last, filter, report)?;
    report.took("running the tests of the tool", begin.elapsed());
    Ok(())
}

/// The folder of the tool's package.
fn tools() -> PathBuf {
    workspace::root().join("tools")
}

/// Builds the harnesses of `part`; the inner error is the compiler's.
fn build(part: &Part) -> Result<Result<Vec<Harness>, String>> {
    eprintln!("building {}", part.name);
    let mut cargo = part.cargo();
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let artifacts = match toolchain::build(&mut cargo, part.name) {
        Ok(artifacts) => artifacts,
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    Ok(Ok(harness::of(&artifacts, part.prefix)?))
}

/// Runs the wanted tests of all harnesses. Many of them wait for one emulator or one compiler most of the
/// time.
fn run_harnesses(harnesses: &[Harness], filter: &Filter, report: &mut Report) -> Result<()> {
    let report = Shared::new(report);
    let work = |harness: &Harness| run_harness(harness, filter, &report);
    side_by_side::run(harnesses, work, |(), _| ())?;
    Ok(())
}

/// Runs the wanted tests of one harness. If its process dies, those that it owes a result are run again, each in a process of its own.
fn run_harness(harness: &Harness, filter: &Filter, report: &Shared<'_>) -> Result<()> {
    let mut wanted = list(harness)?;
    wanted.retain(|test| filter.accepts(&harness.full_name(test)));
    if wanted.is_empty() {
        return Ok(());
    }
    report.lock().started(&harness.prefix);
    let begin = Instant::now();
    let (owed, _) = run_tests(harness, &wanted, report)?;
    for test in owed {
        let (died, output) = run_tests(harness, &BTreeSet::from([test]), report)?;
        for test in died {
            let reason = format!("its process died\n{output}");
            report.lock().failed(&harness.full_name(&test), &reason);
        }
    }
    report.lock().took(&harness.prefix, begin.elapsed());
    Ok(())
}

/// Runs `tests` of a harness in one process. Returns those without a result, and the output.
fn run_tests(
    harness: &Harness,
    tests: &BTreeSet<String>,
    report: &Shared<'_>,
) -> Result<(BTreeSet<String>, String)> {
    let mut owed = tests.clone();
    let mut command = Command::new(&harness.executable);
    // What a test boots is watched as what we boot.
    command.envs(visits::folder().map(|folder| (visits::VARIABLE, folder)));
    // And what is built need not be looked for in what it starts.
    command.envs(built::folder().map(|folder| (built::VARIABLE, folder)));
    command.arg("--exact").args(tests);
    command
        .current_dir(&harness.folder)
        .env("CARGO_MANIFEST_DIR", &harness.folder);
    let (_, output) = follow(&mut command, |line| {
        let Some((test, verdict)) = lines::result(line) else {
            return;
        };
        if owed.remove(test) {
            record(&mut report.lock(), &harness.full_name(test), verdict);
        }
    })?;
    for (test, explanation) in lines::explanations(&output) {
        report
            .lock()
            .explain(&harness.full_name(test), &explanation);
    }
    Ok((owed, output))
}

/// Names of a harness's tests.
fn list(harness: &Harness) -> Result<BTreeSet<String>> {
    let out = Command::new(&harness.executable)
        .args(["--list", "--format", "terse"])
        .output()
        .with_context(|| format!("cannot run {}", harness.executable.display()))?;
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(text
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}

/// Runs the examples of the documentation. Their names begin with their file.
pub fn run_doc_tests(filter: &Filter, report: &mut Report) -> Result<()> {
    let mut cargo = toolchain::linted_cargo();
    cargo.args([
        "test",
        "--profile",
        toolchain::HOST_PROFILE,
        "--workspace",
        "--doc",
        "--no-fail-fast",
        "--quiet",
        "--",
    ]);
    cargo.args(["--format", "pretty"]);
    // The harness knows the names without our prefix.
    if let Some(pattern) = filter
        .pattern()
        .filter(|pattern| !"doc::".contains(pattern))
    {
        cargo.arg(pattern.trim_start_matches("doc::"));
    }
    let mut reported = false;
    let (success, output) = follow(&mut cargo, |line| {
        let Some((test, verdict)) = lines::result(line) else {
            return;
        };
        reported = true;
        record(report, &format!("doc::{test}"), verdict);
    })?;
    for (test, explanation) in lines::explanations(&output) {
        report.explain(&format!("doc::{test}"), &explanation);
    }
    if !success && !reported {
        report.failed("doc::build", &output);
    }
    Ok(())
}

fn record(report: &mut Report, name: &str, verdict: Verdict) {
    match verdict {
        Verdict::Passed => report.passed(name),
        Verdict::Skipped(reason) => report.skipped(name, &reason),
        Verdict::Failed(reason) => report.failed(name, &reason),
    }
}

/// Runs `command` and shows each line of its output to `see`. Returns whether it succeeded, and
/// all that it said.
fn follow(command: &mut Command, mut see: impl FnMut(&str)) -> Result<(bool, String)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let mut stderr = child
        .stderr
        .take()
        .context("the test has no standard error")?;
    let complaints = thread::spawn(move || {
        let mut text = Vec::new();
        // A read error ends the text like its end does.
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let stdout = child
        .stdout
        .take()
        .context("the test has no standard output")?;
    let mut output = String::new();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read the test's output")?;
        let line = String::from_utf8_lossy(&line);
        see(&line);
        output.push_str(&line);
        output.push('\n');
    }
    let status = child.wait().context("cannot wait for the test")?;
    output.push_str(&complaints.join().unwrap_or_default());
    Ok((status.success(), output))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(filter: &Filter) -> Vec<&'static str> {
        let parts = PARTS.iter().filter(|part| part.may_have(filter));
        parts.map(|part| part.prefix).collect()
    }

    fn parts_with(pattern: &str) -> Vec<&'static str> {
        parts(&Filter::Only(pattern.to_owned()))
    }

    #[test]
    fn what_cannot_have_a_wanted_test_is_not_built() {
        let all = parts(&Filter::All);
        assert_eq!(all.len(), PARTS.len());
        let usual = PARTS.iter().filter(|part| !part.is_long);
        assert_eq!(parts(&Filter::Usual).len(), usual.count());
        assert_eq!(parts_with("time"), all);
        assert_eq!(parts_with("host::"), all);
        assert_eq!(parts_with("host::tools::demo"), ["host"]);
        assert_eq!(parts_with("host::cores::"), ["host", "host::cores"]);
    }
}
