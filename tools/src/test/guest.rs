//! Tests that run in QEMU, as root tasks on the kernel.
//!
//! A root task that takes part ([`suite`]) prints `test NAME ... ok`, `... FAILED: reason` or
//! `... skipped: reason` for each test, then `N passed, N failed`, and ends the run with status 0
//! if nothing failed.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{bail, Context, Result};

use super::lines::{self, Verdict};
use super::report::{Report, Shared};
use super::suite::{self, Config, OnKernel, Suite};
use super::Filter;
use crate::arch::Arch;
use crate::kernel::{self, KernelOptions};
use crate::program::{self, Profile};
use crate::qemu::{self, Boot, End, Outcome};
use crate::side_by_side;

/// Between the seeds of a run and its repetition.
const SEED_STRIDE: u64 = 1_000;

/// One boot of one suite on one kernel.
struct Run {
    on: OnKernel,
    root_task: PathBuf,
}

/// A test's full name and verdict.
type NamedResult = (String, Verdict);

/// Builds and boots every test system that can have a wanted test.
pub(super) fn run(filter: &Filter, report: &mut Report) -> Result<()> {
    let begin = Instant::now();
    if filter.pattern().is_none() {
        build_kernels_early(filter)?;
        report.took("building kernels", begin.elapsed());
        // All will be wanted: one cargo builds them quicker than many. What does not build is the failure of what needs it.
        let programs = program::workspace_metadata().and_then(|all| {
            program::read_all(Arch::X86_64, &program::packages(&all), Profile::Release)
        });
        if let Err(error) = programs {
            eprintln!("{error:#}");
        }
    }
    let built = suite::build_all();
    report.took("building the test systems", begin.elapsed());
    let suites = match built {
        Ok(suites) => suites,
        Err(error) => {
            report.failed("qemu::build", &format!("{error:#}"));
            return Ok(());
        }
    };
    let mut runs = Vec::new();
    for suite in suites {
        match runs_of(&suite, filter) {
            Ok(more) => runs.extend(more),
            Err(error) => report.failed(&format!("qemu::{}", suite.name), &format!("{error:#}")),
        }
    }
    let kernels = build_kernels(&runs, report);
    runs.retain(|run| kernels.contains_key(&run.on.kernel));
    boot_all(&runs, &kernels, filter, report)
}

/// The runs of `suite` that can have a wanted test.
fn runs_of(suite: &Suite, filter: &Filter) -> Result<Vec<Run>> {
    let mut runs = those_that_may_have(suite.on_x86_64(), &suite.root_task, filter)?;
    let mut wanted = suite.on_aarch64();
    wanted.retain(|on| {
        let is_of_another = |pattern| names_another(pattern, &format!("{}::", on.prefix));
        on.is_wanted(filter) && !filter.pattern().is_some_and(is_of_another)
    });
    if !wanted.is_empty() {
        runs.extend(those_that_may_have(
            wanted,
            &suite.build_for_aarch64()?,
            filter,
        )?);
    }
    Ok(runs)
}

/// Those of `wanted` of which the file `root_task` can have a wanted test.
fn those_that_may_have(
    wanted: Vec<OnKernel>,
    root_task: &Path,
    filter: &Filter,
) -> Result<Vec<Run>> {
    let image =
        fs::read(root_task).with_context(|| format!("cannot read {}", root_task.display()))?;
    let wanted = wanted.into_iter();
    let runs = wanted
        .filter(|on| may_have(filter, &on.prefix, &image))
        .map(|on| Run {
            on,
            root_task: root_task.to_owned(),
        });
    Ok(runs.collect())
}

/// Builds the kernels that wanted tests run on, before the programs: kernels are built one after the other, each on one core,
/// while the tests on the host, which need none, have the other. One that does not build is the failure of what needs it.
fn build_kernels_early(filter: &Filter) -> Result<()> {
    let runs = suite::declared()?.into_iter();
    let wanted = runs.filter(|on| on.is_wanted(filter));
    let mut kernels: Vec<KernelOptions> = Vec::new();
    for on in wanted {
        if !kernels.contains(&on.kernel) {
            kernels.push(on.kernel);
        }
    }
    for kernel in kernels {
        if let Err(error) = kernel::build(&kernel) {
            eprintln!("{error:#}");
        }
    }
    Ok(())
}

/// Builds the kernels of `runs`; one that does not build is a failure, and missing.
fn build_kernels(runs: &[Run], report: &mut Report) -> HashMap<KernelOptions, PathBuf> {
    let wanted: HashSet<&KernelOptions> = runs.iter().map(|run| &run.on.kernel).collect();
    let mut kernels = HashMap::new();
    for options in wanted {
        match kernel::build(options) {
            Ok(path) => {
                kernels.insert(options.clone(), path);
            }
            Err(error) => {
                let name = format!("qemu::{}", options.file_name());
                report.failed(&name, &format!("{error:#}"));
            }
        }
    }
    kernels
}

/// Whether the pattern begins with the name of another run than that whose tests' names begin with `whole`.
fn names_another(pattern: &str, whole: &str) -> bool {
    pattern.starts_with("qemu::") && !pattern.starts_with(whole) && !whole.contains(pattern)
}

/// Whether the root task `image` can print a wanted name: each word of the pattern is in the
/// prefix or in the image. (Digits may be computed, so they do not count.)
fn may_have(filter: &Filter, prefix: &str, image: &[u8]) -> bool {
    let Some(pattern) = filter.pattern() else {
        return !filter.leaves_out(&format!("{prefix}::"));
    };
    let whole = format!("{prefix}::");
    if whole.contains(pattern) {
        return true;
    }
    if names_another(pattern, &whole) {
        return false;
    }
    let rest = pattern.strip_prefix(&whole).unwrap_or(pattern);
    rest.split(|c: char| !c.is_alphabetic() && c != '_')
        .filter(|word| !word.is_empty())
        .all(|word| {
            prefix.contains(word)
                || image
                    .windows(word.len())
                    .any(|part| part == word.as_bytes())
        })
}

/// Boots `runs`, and reports each when it ends.
fn boot_all(
    runs: &[Run],
    kernels: &HashMap<KernelOptions, PathBuf>,
    filter: &Filter,
    report: &mut Report,
) -> Result<()> {
    let report = Shared::new(report);
    let work = |run: &Run| {
        eprintln!("booting {}", run.on.prefix);
        let kernel = &kernels[&run.on.kernel];
        let boot = run
            .on
            .config
            .boot(run.on.kernel.arch, kernel, run.on.cores, &run.root_task);
        let outcome = run_repeatedly(boot, run.on.config.repeats);
        let mut report = report.lock();
        for (name, verdict) in judge(run, outcome, filter) {
            match verdict {
                Verdict::Passed => report.passed(&name),
                Verdict::Skipped(reason) => report.skipped(&name, &reason),
                Verdict::Failed(reason) => report.failed(&name, &reason),
            }
        }
        Ok(())
    };
    side_by_side::run(runs, work, |(), _| ())?;
    Ok(())
}

/// Boots, and again with another seed while QEMU leaves long mode: at most so many `times` more.
fn run_repeatedly(mut boot: Boot, times: u64) -> Result<Outcome> {
    boot.watches_mode = times > 0;
    let args = boot.extra_args.clone();
    for time in 1..=times {
        match qemu::run(&boot)? {
            outcome if outcome.end != End::Guest(qemu::LEFT_LONG_MODE) => return Ok(outcome),
            _ => eprintln!("QEMU has left long mode: repeating with another seed"),
        }
        let seed = format!("name=opt/sandglass/seed,string={}", time * SEED_STRIDE);
        let seed = ["-fw_cfg".into(), seed.into()];
        boot.extra_args = args.iter().cloned().chain(seed).collect();
    }
    qemu::run(&boot)
}

/// The results of a run: its wanted tests', and one more under its own name, wanted or not, if it
/// did not end well.
fn judge(run: &Run, outcome: Result<Outcome>, filter: &Filter) -> Vec<NamedResult> {
    let (mut results, ending) = match outcome {
        Ok(outcome) => {
            let results: Vec<NamedResult> = outcome
                .console
                .lines()
                .filter_map(lines::result)
                .map(|(test, verdict)| (format!("{}::{test}", run.on.prefix), verdict))
                .collect();
            let ending = check_ending(&run.on.config, &outcome, &results)
                .with_context(|| format!("console:\n{}", tail(&outcome.console)));
            (
                results
                    .into_iter()
                    .chain(departures(run, &outcome))
                    .collect(),
                ending,
            )
        }
        Err(error) => (Vec::new(), Err(error)),
    };
    results.retain(|(name, _)| filter.accepts(name));
    if let Err(error) = ending {
        results.push((run.on.prefix.clone(), Verdict::Failed(format!("{error:?}"))));
    }
    results
}

/// A failure for each check that found that this kernel, which is Sandglass, does as the reference
/// where it is to differ. The check itself accepts both.
fn departures<'a>(run: &'a Run, outcome: &'a Outcome) -> impl Iterator<Item = NamedResult> + 'a {
    let departures = outcome.console.lines().filter_map(lines::departure);
    departures.map(|(test, way)| {
        let name = format!("{}::{test}::differs", run.on.prefix);
        let reason = format!(
            "this kernel should differ from the reference here, but behaves like it: {way}"
        );
        (name, Verdict::Failed(reason))
    })
}

/// Whether the run ended by itself, with the number of tests that it reported, enough of them,
/// and a status that agrees.
fn check_ending(config: &Config, outcome: &Outcome, results: &[NamedResult]) -> Result<()> {
    let status = match outcome.end {
        End::Guest(status) => status,
        End::TimedOut => bail!("did not end within {} s", config.timeout),
        End::Until => bail!("ended too early"),
    };
    let Some(closing) = outcome.console.lines().rev().find_map(lines::closing) else {
        bail!("ended with status {status}, without the line `N passed, N failed`");
    };
    let count = |wanted: fn(&Verdict) -> bool| results.iter().filter(|(_, v)| wanted(v)).count();
    let passed = count(|verdict| *verdict == Verdict::Passed);
    let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    if closing != (passed, failed) {
        bail!("ends with {closing:?} passed and failed, but reported {passed} and {failed}");
    }
    if (status == 0) != (failed == 0) {
        bail!("ended with status {status} after {failed} failures");
    }
    if passed + failed < config.min_passed {
        bail!(
            "ran {} tests, but must run at least {}",
            passed + failed,
            config.min_passed
        );
    }
    Ok(())
}

/// The last lines of a console.
fn tail(console: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = console.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::Cores;
    use crate::kernel::Variant;
    use sandglass_abi::profile::BASE;

    fn judge_console(console: &str, end: End, min_passed: usize) -> Vec<NamedResult> {
        judge_wanted(console, end, min_passed, &Filter::All)
    }

    fn judge_wanted(
        console: &str,
        end: End,
        min_passed: usize,
        filter: &Filter,
    ) -> Vec<NamedResult> {
        let config = Config {
            profile: &BASE,
            kernels: suite::both_kernels(),
            icount: None,
            memory: 256,
            cpu: None,
            qemu: Vec::new(),
            repeats: 0,
            timeout: 1,
            min_passed,
            aarch64: None,
            says_end: false,
            model: None,
        };
        let prefix = "qemu::x::debug".to_owned();
        let run = Run {
            on: OnKernel {
                prefix,
                kernel: KernelOptions::new(Variant::Debug),
                cores: Cores::Single,
                config,
            },
            root_task: PathBuf::new(),
        };
        judge(
            &run,
            Ok(Outcome {
                end,
                console: console.to_owned(),
            }),
            filter,
        )
    }

    fn failures(results: &[NamedResult]) -> Vec<&str> {
        results
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_)))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    #[test]
    fn a_good_run_has_its_tests_alone() {
        let results = judge_console(
            "hello\ntest a ... ok\n1 passed, 0 failed\n",
            End::Guest(0),
            1,
        );
        assert_eq!(results, [("qemu::x::debug::a".to_owned(), Verdict::Passed)]);
    }

    #[test]
    fn a_run_that_ends_otherwise_has_failed() {
        for (console, end, min_passed) in [
            ("test a ... ok\n", End::Guest(0), 1),
            ("test a ... ok\n1 passed, 0 failed\n", End::TimedOut, 1),
            ("test a ... ok\n1 passed, 0 failed\n", End::Guest(1), 1),
            ("test a ... ok\n2 passed, 0 failed\n", End::Guest(0), 1),
            ("test a ... ok\n1 passed, 0 failed\n", End::Guest(0), 2),
        ] {
            let results = judge_console(console, end, min_passed);
            assert_eq!(failures(&results), ["qemu::x::debug"], "{console} {end:?}");
        }
    }

    #[test]
    fn a_failed_test_is_reported_once() {
        let console = "test a ... FAILED: no\n0 passed, 1 failed\n";
        let results = judge_console(console, End::Guest(1), 1);
        assert_eq!(failures(&results), ["qemu::x::debug::a"]);
    }

    #[test]
    fn a_kernel_that_does_not_differ_where_it_is_to_has_failed() {
        let console = "test a ... ok\nnote a: the reference's way: late\n\
                       test b ... ok\nnote b: Sandglass's way: at once\n2 passed, 0 failed\n";
        let results = judge_console(console, End::Guest(0), 1);
        assert_eq!(failures(&results), ["qemu::x::debug::a::differs"]);
    }

    #[test]
    fn unwanted_tests_are_left_out_and_a_bad_end_is_not() {
        let filter = Filter::Only("::b".into());
        let console = "test a ... FAILED: no\ntest b ... ok\n1 passed, 1 failed\n";
        let results = judge_wanted(console, End::Guest(1), 1, &filter);
        assert_eq!(results, [("qemu::x::debug::b".to_owned(), Verdict::Passed)]);
        let results = judge_wanted(console, End::Guest(0), 1, &filter);
        assert_eq!(failures(&results), ["qemu::x::debug"]);
    }

    #[test]
    fn a_system_is_booted_if_it_can_have_a_wanted_test() {
        let may = |pattern: &str| {
            may_have(
                &Filter::Only(pattern.into()),
                "qemu::time::debug",
                b"..herd_of_..",
            )
        };
        assert!(may("time::debug"));
        assert!(may("herd"));
        assert!(may("debug::herd_of_10"));
        assert!(!may("cspace"));
        assert!(names_another("qemu::time::release", "qemu::time::debug::"));
        for of_this in ["qemu::time", "qemu::time::debug::a", "e::debug", "a"] {
            assert!(!names_another(of_this, "qemu::time::debug::"), "{of_this}");
        }
        assert!(may_have(&Filter::All, "qemu::time::debug", b""));
        // One whose tests are all long is not booted for nothing, and another whose name begins as its does is.
        let usual = |run| may_have(&Filter::Usual, run, b"");
        assert!(!usual("qemu::conformance::debug"));
        assert!(usual("qemu::conformance::debug-smp-4"));
        assert!(may_have(&Filter::All, "qemu::conformance::debug", b""));
    }
}
