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
use sandglass_abi::profile::{Profile, BASE};

use crate::arch::Arch;
use crate::cli::{ConformanceAction, ConformanceArgs, SelectionArgs};
use crate::cores::{Cores, MOST_CORES};
use crate::kernel::{self, KernelOptions, Variant};
use crate::mutants::named::Set;
use crate::profile;
use crate::program;
use crate::qemu::{self, Outcome};
use crate::test::lines::{self, Verdict};
use crate::test::suite::Config;
use crate::wcet;
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
        Some(ConformanceAction::Wrong { arch }) => run_wrong_kernels(arch),
    }
}

/// Runs the whole suite on each wrong kernel and says what fails.
fn run_wrong_kernels(arch: Arch) -> Result<ExitCode> {
    let findings = wrong::run(
        Set::of_rules(arch),
        &wrong::kernels(Set::of_rules(arch))?,
        wrong::Extent::Whole,
        |finding| {
            let (Ok(text) | Err(text)) = finding.verdict();
            let name = wrong::name(&finding.kernel);
            match &finding.kernel {
                Some(mutant) => println!("{name} ({}): {}\n    {text}", mutant.rule, mutant.breaks),
                None => println!("{name}\n    {text}"),
            }
        },
    )?;
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
    // What is analysed is the kernel that ships.
    let asked = match args.platform {
        Some(_) => Some(Variant::Release),
        None => args.kernel,
    };
    let (profile, cores) = (args.profile.profile, args.cores.cores());
    let options = profile::kernel(profile, args.arch, asked, Variant::Debug, cores)?;
    let options = args.speculation.of(options)?.with_user_timer();
    let on = Place {
        options: &options,
        cores: args.cores.cores(),
        model: args.model.clone(),
        platform: args.platform.as_deref(),
    };
    let outcome = boot(&on, &args.selection, true)?;
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

/// What the suite is run on.
struct Place<'a> {
    options: &'a KernelOptions,
    cores: Cores,
    /// QEMU's machine type, if not the architecture's usual one.
    model: Option<String>,
    /// For which platform the release kernel is analysed first.
    platform: Option<&'a Path>,
}

/// Boots the suite, without what is left out; with `echo`, shows its console.
fn boot(on: &Place, selection: &SelectionArgs, echo: bool) -> Result<Outcome> {
    let Place { options, cores, .. } = *on;
    let mut config = Config::of_package(PACKAGE)?;
    config.model.clone_from(&on.model);
    config.profile = options.profile();
    config.cpu = options.cpu().map(str::to_owned).or(config.cpu);
    let profile = options.profile();
    let checks = checks_of(profile)?;
    let root_task = program::build_of_profile(options.arch, PACKAGE, profile)?;
    let root_task = selection::apply(selection, &checks, root_task)?;
    let mut kernel = kernel::build(options)?;
    if let Some(platform) = on.platform {
        kernel = wcet::analysed(&kernel, platform)?;
    }
    qemu::run(&qemu::Boot {
        echo,
        ..config.boot(options.arch, &kernel, cores, &root_task)
    })
}

/// Runs the suite on all kernels and writes the table, unless a check fails or passes nowhere, or
/// the suite ran other checks than its source names.
fn write_table() -> Result<()> {
    let (sections, checks) = read()?;
    for arch in Arch::ALL {
        run_all(arch, &checks)?;
    }
    let path = table_path();
    fs::write(&path, table::render(&sections, &checks))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// Runs the suite on all kernels of `arch`.
///
/// # Errors
/// A check fails, or is skipped on each, or is in the source or in the run only.
fn run_all(arch: Arch, checks: &[Check]) -> Result<()> {
    let own = checks.iter().filter(|check| check.is_of(arch));
    let named: BTreeSet<&str> = own.map(|check| check.name.as_str()).collect();
    let mut passed = BTreeSet::new();
    let kernels = [Cores::Single, Cores::Smp(MOST_CORES)];
    let kernels = kernels.map(|cores| Variant::ALL.map(|variant| (variant, cores)));
    for (variant, cores) in kernels.concat() {
        let kernel = format!("{} {}{cores}", arch.name(), variant.name());
        let options = KernelOptions::on(variant, cores);
        let options = options.for_arch(arch).with_user_timer();
        let on = Place {
            options: &options,
            cores,
            model: None,
            platform: None,
        };
        let outcome = boot(&on, &SelectionArgs::default(), true)?;
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
        bail!("{name} is skipped on every kernel of {}", arch.name());
    }
    Ok(())
}

/// The sections and the checks.
fn read() -> Result<(Vec<Section>, Vec<Check>)> {
    let folder = workspace::root().join(FOLDER);
    let sections = sections::read(&folder.join("sections.toml"))?;
    let checks = checks::read(&folder.join("src"))?;
    Ok((sections, checks))
}

/// The checks of a suite that is built for `profile`.
fn checks_of(profile: &Profile) -> Result<Vec<Check>> {
    let (_, mut checks) = read()?;
    if *profile != BASE {
        checks.extend(checks::of_profiles(
            &workspace::root().join(FOLDER).join("src"),
        )?);
    }
    Ok(checks)
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
    let on = Place {
        options: &KernelOptions::new(Variant::Debug),
        cores: Cores::Single,
        model: None,
        platform: None,
    };
    let outcome = boot(&on, &selection, false)?;
    let (_, mut checks) = read()?;
    checks.retain(|check| check.is_of(Arch::X86_64));
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
