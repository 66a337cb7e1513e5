//! The conformance suite as a whole: running it, and which section of the ABI pages has which
//! checks.
//!
//! - [`sections`] reads the list of sections, [`checks`] the checks from the suite's source;
//! - [`coverage`] compares them, [`table`] writes them side by side;
//! - [`selection`] leaves checks out;
//! - [`wrong`] runs the suite on kernels that are wrong on purpose.

pub mod checks;
pub mod coverage;
pub mod sections;
mod selection;
mod table;
pub mod wrong;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context, Result};

use crate::abi_pages::Pages;
use crate::cli::{ConformanceAction, ConformanceArgs, SelectionArgs};
use crate::cores::{Cores, MOST_CORES};
use crate::kernel::{self, KernelOptions, Variant};
use crate::program;
use crate::qemu::{self, Outcome};
use crate::test::lines::{self, Verdict};
use crate::test::suite::Config;
use crate::workspace;

use checks::Check;
use sections::Section;

/// The suite's package, and its folder in the repository.
pub const PACKAGE: &str = "conformance";
const FOLDER: &str = "systems/conformance";
/// Where the table goes, in the repository.
const TABLE: &str = "docs/src/reference/conformance.md";

/// `sandglass conformance`.
pub fn run(args: &ConformanceArgs) -> Result<ExitCode> {
    match args.action {
        None => match &args.root_task {
            Some(file) => write_root_task(&args.selection, file),
            None => run_selection(args),
        },
        Some(ConformanceAction::Table) => {
            write_table()?;
            Ok(ExitCode::SUCCESS)
        }
        Some(ConformanceAction::Wrong) => run_wrong_kernels(),
    }
}

/// Runs the whole suite on each wrong kernel and says what fails.
fn run_wrong_kernels() -> Result<ExitCode> {
    let findings = wrong::run(&wrong::kernels()?, wrong::Extent::Whole, |finding| {
        let (Ok(text) | Err(text)) = finding.verdict();
        let name = wrong::name(&finding.kernel);
        match &finding.kernel {
            Some(mutant) => println!("{name} ({}): {}\n    {text}", mutant.rule, mutant.breaks),
            None => println!("{name}\n    {text}"),
        }
    })?;
    Ok(
        if findings.iter().all(|finding| finding.verdict().is_ok()) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        },
    )
}

/// Writes the suite, without what is left out, to a file.
fn write_root_task(selection: &SelectionArgs, file: &Path) -> Result<ExitCode> {
    let (_, checks) = read()?;
    selection::write(selection, &checks, &program::build(PACKAGE)?, file)?;
    println!("{}", file.display());
    Ok(ExitCode::SUCCESS)
}

/// Runs the suite, without what is left out, on one of our kernels; it fails too if the kernel does
/// as the reference where it is to differ.
fn run_selection(args: &ConformanceArgs) -> Result<ExitCode> {
    let options = KernelOptions::on(args.kernel, args.cores.cores());
    let options = options.for_arch(args.arch).with_user_clock();
    let outcome = boot(&options, args.cores.cores(), &args.selection, true)?;
    let departures: Vec<_> = outcome
        .console
        .lines()
        .filter_map(lines::departure)
        .collect();
    for (name, way) in &departures {
        eprintln!(
            "{name}: this kernel should differ from the reference here, but behaves like it: {way}"
        );
    }
    Ok(match outcome.status() {
        0 if !departures.is_empty() => ExitCode::FAILURE,
        status => ExitCode::from(status),
    })
}

/// Boots the suite on a kernel of this variant, without what is left out; with `echo`, shows its
/// console.
fn boot(
    options: &KernelOptions,
    cores: Cores,
    selection: &SelectionArgs,
    echo: bool,
) -> Result<Outcome> {
    let config = Config::of_package(PACKAGE)?;
    let (_, checks) = read()?;
    let root_task = program::build_for(options.arch, PACKAGE)?;
    let root_task = selection::apply(selection, &checks, root_task)?;
    let kernel = kernel::build(options)?;
    qemu::run(&qemu::Boot {
        echo,
        ..config.boot(options.arch, &kernel, cores, &root_task)
    })
}

/// Runs the suite on all kernels and writes the table, unless a check fails or passes nowhere, or
/// the suite ran other checks than its source names.
fn write_table() -> Result<()> {
    let (sections, checks) = read()?;
    let named: BTreeSet<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    let mut passed = BTreeSet::new();
    let kernels = [Cores::Single, Cores::Smp(MOST_CORES)];
    let kernels = kernels.map(|cores| Variant::ALL.map(|variant| (variant, cores)));
    for (variant, cores) in kernels.concat() {
        let kernel = format!("{}{cores}", variant.name());
        let options = KernelOptions::on(variant, cores);
        let outcome = boot(&options, cores, &SelectionArgs::default(), true)?;
        let results: Vec<(&str, Verdict)> =
            outcome.console.lines().filter_map(lines::result).collect();
        let ran: BTreeSet<&str> = results.iter().map(|(name, _)| *name).collect();
        if let Some(name) = named.symmetric_difference(&ran).next() {
            bail!("on {kernel}: `{name}` is in the source or in the run, not in both");
        }
        for (name, verdict) in results {
            match verdict {
                Verdict::Passed => drop(passed.insert(name.to_owned())),
                Verdict::Skipped(_) => {}
                Verdict::Failed(_) => bail!("on {kernel}: {name} fails"),
            }
        }
    }
    if let Some(name) = named.into_iter().find(|&name| !passed.contains(name)) {
        bail!("{name} is skipped on every kernel");
    }
    let path = table_path();
    fs::write(&path, table::render(&sections, &checks))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// The sections and the checks.
fn read() -> Result<(Vec<Section>, Vec<Check>)> {
    let folder = workspace::root().join(FOLDER);
    let sections = sections::read(&folder.join("sections.toml"))?;
    let checks = checks::read(&folder.join("src"))?;
    Ok((sections, checks))
}

fn table_path() -> PathBuf {
    workspace::root().join(TABLE)
}

/// A rule about the suite's source: its name in `sandglass test`, and what breaks it.
pub struct Rule {
    pub name: &'static str,
    pub findings: fn() -> Result<Vec<String>>,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        name: "every_section_of_the_pages_is_listed",
        findings: || Ok(coverage::unlisted(&read()?.0, &Pages::read()?)),
    },
    Rule {
        name: "every_section_has_a_check",
        findings: || read().map(|(sections, checks)| coverage::unchecked(&sections, &checks)),
    },
    Rule {
        name: "every_check_names_a_section",
        findings: || read().map(|(sections, checks)| coverage::misnamed(&sections, &checks)),
    },
    Rule {
        name: "the_table_is_current",
        findings: || read().and_then(|(sections, checks)| stale(&table_path(), &sections, &checks)),
    },
    Rule {
        name: "a_selection_leaves_checks_out",
        findings: selection_findings,
    },
];

/// Boots a selection; what of it is not as it should be.
fn selection_findings() -> Result<Vec<String>> {
    let selection = SelectionArgs {
        skip: vec!["01/7/set-*".to_owned(), "03/*".to_owned()],
        only: vec!["01/7/*".to_owned(), "08/3/*".to_owned()],
        skip_wrong_debug_calls: true,
    };
    let outcome = boot(
        &KernelOptions::new(Variant::Debug),
        Cores::Single,
        &selection,
        false,
    )?;
    let (_, checks) = read()?;
    Ok(selection::misjudged(&checks, &outcome))
}

fn stale(path: &Path, sections: &[Section], checks: &[Check]) -> Result<Vec<String>> {
    let committed =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut findings = Vec::new();
    if committed != table::render(sections, checks) {
        findings.push(format!(
            "{TABLE} is out of date: run `./sandglass conformance table`"
        ));
    }
    Ok(findings)
}
