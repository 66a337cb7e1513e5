//! `sandglass test`: the tests, on the host and in QEMU, as one list.
//!
//! - `host::PACKAGE::...`: the workspace's own tests, the tool's included;
//! - `doc::...`: examples in the documentation;
//! - `check::...`: the rules of `sandglass check`;
//! - `conformance::...`: what the conformance suite must cover;
//! - `qemu::PACKAGE::KERNEL::...`: tests that run as root tasks on the kernel;
//! - `qemu::image::FIRMWARE`: the demo's system boots from a disk image, by U-Boot on aarch64;
//! - `machine::START::KERNEL`: the processor's state while user code runs is what it must be;
//! - `experiment::NAME`: the experiment works, in its smallest form, and its claims hold;
//! - `beside::NAME`: figures of the demo, an experiment, or an example are the same beside a rogue client;
//! - `trace::SYSTEM`: the trace of an example system is accepted by the checker; and a trace point is
//!   short;
//! - `wrong::MUTANT`: the conformance suite, or the storm, notices a kernel that breaks a rule;
//! - `wcet::visits`, `wcet::aarch64::visits`: no visit of the release kernel, in any of these tests, took longer than was computed of its binary;
//! - `wcet::bounds`, `wcet::aarch64::bounds`: what is computed of the release kernel is what is recorded, or up to 2 % more;
//! - `mutants::changed`: the host's tests notice small changes of the kernel where it is changed;
//! - `mutants::named`: they notice the kernels that are wrong on purpose.

mod guest;
pub(crate) mod harness;
mod host;
mod image;
pub(crate) mod lines;
mod monitor;
mod report;
pub(crate) mod suite;
mod trace;

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{ensure, Result};

use crate::arch::Arch;
use crate::beside::{self, Subject};
use crate::built;
use crate::check;
use crate::cli::TestArgs;
use crate::conformance::{self, wrong};
use crate::experiment::{self, Experiment, Extent, Size};
use crate::machine;
use crate::mutants::{self, named::Set};
use crate::side_by_side;
use crate::system::rogue::Rogue;
use crate::visits::{
    self,
    verdict::{self, Expected, Seen},
};
use crate::wcet;
use crate::workspace;

pub(crate) use host::builds;
use report::Report;

/// Runs the wanted tests of one kind; an error is one of the machine, not of a test.
type Runner = fn(&Filter, &mut Report) -> Result<()>;

/// The kinds of tests, which begin their names, in two rows: each row's are run one after the other, and both rows beside
/// each other. Where one compiles on one core, or waits for its last test, the other has work.
const ROWS: [&[(&str, Runner)]; 2] = [
    &[
        ("host", host::run),
        ("doc", host::run_doc_tests),
        ("mutants", run_mutants),
    ],
    &[
        ("qemu", guest::run),
        ("qemu", image::run),
        ("machine", run_machine),
        ("conformance", run_conformance_rules),
        ("wrong", run_wrong_kernels),
        ("trace", trace::run),
        ("experiment", run_experiments),
        ("beside", run_beside),
        // What it lints is built with the host's tests.
        ("check", run_checks),
        ("wcet", run_bounds),
    ],
];

/// Runs the wanted tests of a row, with workers of its own.
fn run_row(row: &[(&str, Runner)], filter: &Filter) -> Report {
    let mut report = Report::default();
    let wanted = row.iter().filter(|(kind, _)| filter.may_accept(kind));
    side_by_side::with_own_workers(|| {
        for (kind, run) in wanted {
            let begin = Instant::now();
            // Whatever happens, the other kinds are run and the closing line is printed.
            if let Err(error) = run(filter, &mut report) {
                report.failed(kind, &format!("{error:#}"));
            }
            report.took(format!("all of `{kind}`"), begin.elapsed());
        }
    });
    report
}

/// Beginnings of the names of tests that are run with `--all` or by name only: what they show is also shown by others, for
/// another architecture or beside another system.
const LONG: &[&str] = &[
    // Each policy has tests with a client that does the worst.
    "beside::",
    // Its programs run there, and the policies are the same.
    "experiment::aarch64::",
    "experiment::multicore",
    // Its protocol has tests of its own, on the host and under attack; and its example is traced.
    "experiment::mc-ipc",
    // Each of the policies that it compares has an experiment and tests.
    "experiment::policies",
    // What is wrong with windows is looked for in tests of the tool.
    "experiment::partitions",
    // Components are compiled once more for it, and the commands are the same.
    "host::tools::debug::the_session_of_the_page_goes_as_it_says_on_aarch64",
    // Smaller images are usual, and the time goes with the pages.
    "host::tools::bench::a_boot_with_an_image_of_100_mib_takes_what_the_page_says",
    // Seven kernels more are built for it; all at once is usual.
    "host::tools::bench::each_thing_done_against_speculation_costs_what_the_book_says",
    // What is computed of kernels is compared with all visits in tests; these drive the longest.
    "host::tools::bounds::no_operation_exceeds_its_bounds_on_aarch64",
    "host::tools::bounds::constructed_worst_cases",
    "host::tools::waiting::waiting_for_the_kernel_has_a_bound_on_aarch64",
    // One number of the kernel is another.
    "host::tools::platforms::",
    // With the caches of processors; instructions are usual, of all machines.
    "host::tools::bounds::no_visit_takes_longer_than_computed_on_aarch64",
    // The kernel's tests are usual, and these are for x86_64.
    "host::aarch64::assurance",
    "host::aarch64::gates",
    "host::aarch64::parallel",
    "host::tools::aarch64::described_systems_run",
    // What the table says is compared with running machines; this shows that it would notice.
    "host::tools::machine_state::",
    // Another board; what descriptions make of it is usual.
    "host::tools::aarch64::described_systems_have_the_devices_of_a_board",
    // The same root task on the release kernel is usual.
    "qemu::c-roots::stock-debug",
    // `hello` is booted from an image by U-Boot; for this, the demo is built for aarch64.
    "qemu::image::u-boot",
    // Another machine for an option that is passed on as it is.
    "host::tools::monitor::boot_types_a_file_at_a_machine_with_more_devices",
    // Root tasks in C share the processor by domains; the rest is as in the base profile.
    "host::microkit-release::",
    // Projects are built as they are for x86_64, and each builds the library anew.
    "host::tools::projects::aarch64::",
    // Two are usual, and what is in these has an example here.
    "host::tools::projects::the_template_in_c_passes_its_tests",
    "host::tools::projects::the_template_of_deadline_scheduling_passes_its_tests",
    "host::tools::projects::the_template_of_modes_passes_its_tests",
    // As a component in Rust, in a session of the book; these components are compiled once more for it.
    "host::tools::c_components::a_debugger_stops_in_functions_in_c",
    // The policies are the same on x86_64.
    "host::tools::rogues::a_storm_on_aarch64_harms_nobody_honest",
    // The layouts that are usual are those that differ most; all are usual on x86_64.
    "qemu::c-roots::layout-high::aarch64-",
    "qemu::c-roots::layout-large-pages::aarch64-",
    "qemu::c-roots::layout-lld::aarch64-",
    "qemu::c-roots::layout-low::aarch64-",
    "qemu::c-roots::layout-packed::aarch64-",
    "qemu::c-roots::layout-plain::aarch64-",
    "qemu::c-roots::layout-stack::aarch64-",
    "qemu::c-roots::layout-stripped::aarch64-",
    "qemu::c-roots::layout-swapped::aarch64-",
    "qemu::c-roots::tour::aarch64-debug",
    // The release kernel is stormed there.
    "qemu::storm::aarch64-debug",
    // Others are booted by UEFI, and look at the processor after other starts.
    "machine::uefi::",
    // Another board.
    "qemu::conformance::aarch64-xlnx-zcu102-",
    // Conformance runs there.
    "qemu::kernel-tests::aarch64-",
    // The kernel's points are the same on both, and the checker is the host's.
    "trace::aarch64::",
    // Other systems show the checker as much, and these take the longest.
    "trace::mc-ipc",
    "trace::modes",
    // They show that tests would notice what the kernel does not do; each set takes a kernel of its own. Of a kernel that is
    // changed, `mutants::changed` asks it.
    "wrong::",
    "host::tools::time_oracle::a_kernel_of_aarch64_that_charges_half_is_found",
    "host::tools::time_oracle::a_kernel_that_charges_half_is_found",
    "mutants::named",
    // Usual are the release kernel for one core and the debug kernel for several.
    "qemu::conformance::debug::",
    "qemu::conformance::release-smp-4::",
    "qemu::storm::release-smp-4::",
    // The kernel's tests look for memory and translations of the kernel there.
    "qemu::conformance::release-no-isolation::",
    "qemu::storm::release-no-isolation::",
    // What thousands of threads cost is asked of what ships.
    "qemu::herd::debug::",
    // The bound is asked for by `host::tools::waiting`, on four cores.
    "qemu::waiting::",
    // The release kernel of that profile is usual.
    "qemu::base-profile::aarch64-debug",
    // A profile is usual on one of its kernels.
    "qemu::c-roots::avx::debug",
    "qemu::c-roots::avx::release::",
    // Those with several domains, and the debug kernel for sixteen cores, are usual.
    "qemu::c-roots::stock-smp-release",
    // All at once is usual, where the kernel's tests see it on several cores; each of these takes a kernel of its own.
    "host::tools::speculation::of_",
    "host::tools::speculation::what_the_processor_lacks",
    "host::tools::bench::all_that_is_done_against_speculation_costs_what_the_book_says",
    // As that, and the ratio of x86_64 is usual.
    "host::tools::bench::an_operation_takes_at_most_15_percent_more_on_the_smp_kernel_of_aarch64",
];

pub(crate) use host::profiles_of;

/// Whether `name`, of a test or the beginning of that of several, is one of a long test.
pub(crate) fn is_long(name: &str) -> bool {
    LONG.iter().any(|long| name.starts_with(long))
}

/// Which tests are wanted.
#[derive(Debug, Clone)]
enum Filter {
    /// All but long ones.
    Usual,
    All,
    /// Those whose name contains the pattern.
    Only(String),
}

impl Filter {
    fn pattern(&self) -> Option<&str> {
        match self {
            Filter::Only(pattern) => Some(pattern),
            Filter::Usual | Filter::All => None,
        }
    }

    fn accepts(&self, name: &str) -> bool {
        !self.leaves_out(name) && self.pattern().is_none_or(|pattern| name.contains(pattern))
    }

    /// Whether `name`, of a test or the beginning of that of several, is one of a long test, which is not wanted.
    fn leaves_out(&self, name: &str) -> bool {
        matches!(self, Filter::Usual) && is_long(name)
    }

    /// Whether a test of `kind`, the first part of its name, can be wanted: not if the pattern
    /// begins with another kind.
    fn may_accept(&self, kind: &str) -> bool {
        let Some((first, _)) = self.pattern().and_then(|pattern| pattern.split_once("::")) else {
            return true;
        };
        first == kind
            || !ROWS
                .iter()
                .copied()
                .flatten()
                .any(|(other, _)| *other == first)
    }
}

/// `sandglass test`: fails if a test failed, or if none was run.
pub fn run(args: &TestArgs) -> Result<ExitCode> {
    let filter = match &args.only {
        Some(pattern) => Filter::Only(pattern.clone()),
        None if args.all => Filter::All,
        None => Filter::Usual,
    };
    let begin = Instant::now();
    let mut report = Report::default();
    built::remember_into(workspace::target_dir().join("built"))?;
    let watched = visits::watch_into(workspace::target_dir().join("visits"))?;
    thread::scope(|scope| {
        let rows = ROWS.map(|row| scope.spawn(|| run_row(row, &filter)));
        for row in rows {
            report.absorb(row.join().expect("a row reports what goes wrong"));
        }
    });
    if let Some(folder) = watched {
        judge_visits(folder, &filter, &mut report);
    }
    if matches!(filter, Filter::All) {
        report.demand_long();
    }
    Ok(report.close(begin.elapsed()))
}

/// Compares what all other tests saw of the kernels with what was computed. Wanted or not, it fails if that is exceeded.
fn judge_visits(folder: &Path, filter: &Filter, report: &mut Report) {
    for (name, arch) in [
        ("wcet::visits", Arch::X86_64),
        ("wcet::aarch64::visits", Arch::Aarch64),
    ] {
        match judge_visits_of(arch, folder, filter) {
            Ok(Some(most)) if filter.accepts(name) => {
                report.passed(name);
                print!("{most}");
            }
            Ok(_) => {}
            Err(error) => report.failed(name, &format!("{error:#}")),
        }
    }
}

/// Returns the most that was seen; `None` if nothing was, which is an error unless some tests alone are wanted.
fn judge_visits_of(arch: Arch, folder: &Path, filter: &Filter) -> Result<Option<String>> {
    let seen = Seen::gather(folder, arch)?;
    if seen.machines() == 0 {
        let is_expected = filter.pattern().is_some();
        ensure!(
            is_expected,
            "no machine was watched, although many boot the release kernel"
        );
        return Ok(None);
    }
    let expected = Expected::recorded(arch)?;
    let most = format!(
        "{} machines; the most that was seen:\n{}",
        seen.machines(),
        seen.maxima(&expected)
    );
    let findings = seen.findings(&expected);
    ensure!(findings.is_empty(), "{}\n{most}", findings.join("\n"));
    Ok(Some(most))
}

/// The kernels whose computed bounds are compared with recorded ones, with the names of the tests.
const BOUNDS: [(&str, Arch); 2] = [
    ("wcet::bounds", Arch::X86_64),
    ("wcet::aarch64::bounds", Arch::Aarch64),
];

/// Computes the bounds of the release kernels, and compares them with those that are recorded.
fn run_bounds(filter: &Filter, report: &mut Report) -> Result<()> {
    for (name, arch) in BOUNDS.iter().filter(|(name, _)| filter.accepts(name)) {
        report.started(name);
        let begin = Instant::now();
        match check_bounds(*arch) {
            Ok(()) => report.passed(name),
            Err(error) => report.failed(name, &format!("{error:#}")),
        }
        report.took((*name).to_owned(), begin.elapsed());
    }
    Ok(())
}

/// Of each kernel that ships for an architecture, in instructions and on each processor.
fn check_bounds(arch: Arch) -> Result<()> {
    for kernel in visits::shipped(arch) {
        for (model, file) in verdict::recorded(arch) {
            wcet::check(&kernel, &workspace::root().join(file), model)?;
        }
    }
    Ok(())
}

fn run_checks(filter: &Filter, report: &mut Report) -> Result<()> {
    let mut context = match filter {
        Filter::Usual => check::Context::quick(),
        Filter::All | Filter::Only(_) => check::Context::default(),
    };
    for rule in check::RULES {
        let name = format!("check::{}", rule.name);
        if filter.accepts(&name) {
            report.started(&name);
            let begin = Instant::now();
            match (rule.check)(&mut context) {
                check::Verdict::Kept => report.passed(&name),
                check::Verdict::Skipped(reason) => report.skipped(&name, &reason),
                check::Verdict::Broken(findings) => report.failed(&name, &findings.join("\n")),
            }
            report.took(name, begin.elapsed());
        }
    }
    Ok(())
}

fn run_conformance_rules(filter: &Filter, report: &mut Report) -> Result<()> {
    for rule in conformance::RULES {
        let name = format!("conformance::{}", rule.name);
        if filter.accepts(&name) {
            match (rule.findings)() {
                Ok(findings) if findings.is_empty() => report.passed(&name),
                Ok(findings) => report.failed(&name, &findings.join("\n")),
                Err(error) => report.failed(&name, &format!("{error:#}")),
            }
        }
    }
    Ok(())
}

fn run_machine(filter: &Filter, report: &mut Report) -> Result<()> {
    let starts = machine::STARTS.iter().filter(|start| start.is_test);
    let tests = starts.map(|start| (format!("machine::{}", start.name), start));
    run_side_by_side(tests, filter, report, |start| machine::look(start))?;
    let machines = machine::matrix::MACHINES.iter();
    let tests = machines
        .filter(|entry| entry.is_test)
        .map(|entry| (format!("machine::matrix::{}", entry.name), entry));
    run_side_by_side(tests, filter, report, |entry| machine::matrix::look(entry))
}

/// Runs the wanted ones of tests that wait for one emulator most of the time, as many at a time as the host has
/// cores. Each has a name, and `findings` of what it is about.
fn run_side_by_side<T: Sync>(
    tests: impl IntoIterator<Item = (String, T)>,
    filter: &Filter,
    report: &mut Report,
    findings: impl Fn(&T) -> Result<Vec<String>> + Sync,
) -> Result<()> {
    let wanted: Vec<_> = tests
        .into_iter()
        .filter(|(name, _)| filter.accepts(name))
        .collect();
    let work = |(name, test): &(String, T)| {
        eprintln!("running {name}");
        let begin = Instant::now();
        // An error is one test's: the others go on.
        let reason = match findings(test) {
            Ok(findings) => (!findings.is_empty()).then(|| findings.join("\n")),
            Err(error) => Some(format!("{error:#}")),
        };
        Ok((reason, begin.elapsed()))
    };
    let outcomes = side_by_side::run(&wanted, work, |_, _| {})?;
    for ((name, _), (reason, time)) in wanted.iter().zip(outcomes) {
        match reason {
            None => report.passed(name),
            Some(reason) => report.failed(name, &reason),
        }
        report.took(name, time);
    }
    Ok(())
}

fn run_experiments(filter: &Filter, report: &mut Report) -> Result<()> {
    for (arch, of) in [(Arch::X86_64, ""), (Arch::Aarch64, "aarch64::")] {
        let extent = Extent {
            arch,
            ..Extent::of_size(Size::Smoke)
        };
        let both = experiment::CATALOGUE.iter();
        for experiment in both.filter(|it| arch == Arch::X86_64 || it.boots) {
            let name = format!("experiment::{of}{}", experiment.name);
            run_experiment(&name, experiment, &extent, filter, report);
            // On x86_64, `beside` has it with more, and compares.
            if arch == Arch::Aarch64 && experiment.name == BESIDE_QUICKLY {
                let extent = Extent {
                    rogue: Some(Rogue::of_seed(SEED)),
                    ..extent.clone()
                };
                let name = format!("{name}-with-a-rogue");
                run_experiment(&name, experiment, &extent, filter, report);
            }
        }
    }
    Ok(())
}

/// Runs an experiment as the test `name`, if that is wanted.
fn run_experiment(
    name: &str,
    experiment: &Experiment,
    extent: &Extent,
    filter: &Filter,
    report: &mut Report,
) {
    if !filter.accepts(name) {
        return;
    }
    report.started(name);
    let begin = Instant::now();
    let outcome = experiment.run(extent);
    match outcome.map(|outcome| outcome.findings(experiment)) {
        Ok(findings) if findings.is_empty() => report.passed(name),
        Ok(findings) => report.failed(name, &findings.join("\n")),
        Err(error) => report.failed(name, &format!("{error:#}")),
    }
    report.took(name, begin.elapsed());
}

/// The quickest experiment beside which an untrusted client can be, and the client's seed.
const BESIDE_QUICKLY: &str = "timeouts";
const SEED: u64 = 4;

/// The figures of everything that is quick to run, without and with an untrusted client.
fn run_beside(filter: &Filter, report: &mut Report) -> Result<()> {
    let quick = |subject: &Subject| match subject {
        Subject::Demo | Subject::Example(_) => true,
        Subject::Experiment(experiment) => experiment.name == BESIDE_QUICKLY,
    };
    for (arch, of) in [(Arch::X86_64, ""), (Arch::Aarch64, "aarch64::")] {
        let subjects = Subject::all()?.into_iter().filter(quick);
        let tests = subjects.map(|subject| (format!("beside::{of}{}", subject.name()), subject));
        run_side_by_side(tests, filter, report, |subject| {
            beside::findings(arch, subject, Size::Smoke, SEED)
        })?;
    }
    Ok(())
}

fn run_wrong_kernels(filter: &Filter, report: &mut Report) -> Result<()> {
    for (set, of) in [
        (Set::Rules, "wrong::"),
        (Set::Aarch64, "wrong::aarch64::"),
        (Set::Profile, "wrong::profile::"),
    ] {
        let mut kernels = wrong::kernels(set)?;
        let name = |kernel: &wrong::Kernel| format!("{of}{}", wrong::name(kernel));
        kernels.retain(|kernel| filter.accepts(&name(kernel)));
        if kernels.is_empty() {
            continue;
        }
        for finding in wrong::run(set, &kernels, wrong::Extent::Named, |_| ())? {
            match finding.verdict() {
                Ok(how) => {
                    report.passed(&name(&finding.kernel));
                    println!("    {how}");
                }
                Err(reason) => report.failed(&name(&finding.kernel), &reason),
            }
        }
    }
    Ok(())
}

fn run_mutants(filter: &Filter, report: &mut Report) -> Result<()> {
    for (name, choice) in [
        ("mutants::changed", mutants::Choice::Changed),
        ("mutants::named", mutants::Choice::Named),
    ] {
        if !filter.accepts(name) {
            continue;
        }
        report.started(name);
        let mutants::Report { text, findings } = mutants::report(choice, "")?;
        print!("{text}");
        if findings.is_empty() {
            report.passed(name);
        } else {
            report.failed(name, &findings.join("\n"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn a_pattern_is_a_substring_and_its_absence_accepts_all() {
        assert!(Filter::Usual.accepts("host::a"));
        assert!(Filter::Only("t::a".into()).accepts("host::a"));
        assert!(!Filter::Only("b".into()).accepts("host::a"));
    }

    #[test]
    fn long_tests_are_run_with_all_or_by_name() {
        let long = "experiment::multicore";
        assert!(!Filter::Usual.accepts(long));
        assert!(Filter::All.accepts(long));
        assert!(Filter::Only("multicore".into()).accepts(long));
        assert!(Filter::Usual.accepts("experiment::sharing"));
    }

    #[test]
    fn a_pattern_that_names_a_kind_excludes_the_others() {
        let filter = Filter::Only("qemu::time".into());
        assert!(filter.may_accept("qemu"));
        assert!(!filter.may_accept("host"));
        assert!(Filter::Only("time::herd".into()).may_accept("host"));
        assert!(Filter::Only("qemu".into()).may_accept("host"));
    }
}
