//! Kernels that break a rule each, on purpose ([`Set::of_rules`], [`Set::Profile`]): the check that each names must notice it,
//! or, if it says so, the storm of instructions. All are one kernel with a switch.
//!
//! Mutants about time are noticed by the oracle for time, elsewhere (`tools/tests/time_oracle.rs`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use sandglass_abi::profile::{Profile, BASE, MICROKIT_DEBUG};

use super::checks::Check;
use super::{selection, PACKAGE};
use crate::arch::Arch;
use crate::c_roots;
use crate::cli::SelectionArgs;
use crate::cores::Cores;
use crate::kernel::{self, KernelOptions, Variant};
use crate::mutants::named::{self, Catalogue, Named, Set};
use crate::profile;
use crate::program;
use crate::qemu::{self, Boot, End, Outcome};
use crate::side_by_side;
use crate::storm;
use crate::test::lines::{self, Verdict};
use crate::test::suite::Config;

/// Limit of a run, in seconds of the host's time. A check that hangs is ended by the suite itself,
/// in virtual time; only a kernel that stops altogether gets here.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Instructions of the storm in which it must have noticed: no more than a short run has.
const STORM: storm::Extent = storm::Extent {
    calls: 0,
    instructions: 10_000,
};
/// Ends a run at the first check that fails.
const FAILURE: &str = " ... FAILED";
/// What a mutant names that the storm of instructions must notice, or the oracle for time.
const BY_STORM: &str = "storm";
const BY_ORACLE: &str = "time";
/// What the name begins with of a test of this root task in C that must notice it.
const BY_ROOT_TASK: &str = "c-roots::stock-debug::";
const ROOT_TASK: &str = "stock-debug.elf";

/// How much of the suite runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The checks that the mutants name: on each kernel that of its mutant, and all of them on the one
    /// that breaks no rule.
    Named,
    /// Every check, whatever fails.
    Whole,
}

/// The catalogues, the usual one first.
pub const SETS: [Set; 3] = [Set::Rules, Set::Aarch64, Set::Profile];

/// A kernel: that with this mutant, or that with none, which shows that what is noticed is the mutant.
pub type Kernel = Option<Named>;

/// Of a kernel, for names of tests.
pub fn name(kernel: &Kernel) -> &str {
    kernel.as_ref().map_or("none", |mutant| &mutant.name)
}

/// The kernel that breaks no rule, and those that break one.
///
/// # Errors
/// The catalogue is malformed, or names a check that does not exist.
pub fn kernels(set: Set) -> Result<Vec<Kernel>> {
    let checks = super::checks_of(profile(set))?;
    let mutants = Catalogue::read(set)?.mutants;
    if let Some(unknown) = mutants.iter().find(|mutant| !is_known(mutant, &checks)) {
        bail!(
            "{}: `{}` is to be caught by `{}`, which is no check of the conformance suite, nor \
             `{BY_STORM}` nor `{BY_ORACLE}`, nor a test of `{BY_ROOT_TASK}`",
            set.path(),
            unknown.name,
            unknown.caught_by
        );
    }
    let ours = mutants
        .into_iter()
        .filter(|mutant| mutant.caught_by != BY_ORACLE);
    Ok([None].into_iter().chain(ours.map(Some)).collect())
}

fn is_known(mutant: &Named, checks: &[Check]) -> bool {
    let by = mutant.caught_by.as_str();
    [BY_STORM, BY_ORACLE].contains(&by)
        || by.starts_with(BY_ROOT_TASK)
        || checks.iter().any(|check| check.name == by)
}

/// A root task that must notice something.
struct Judge {
    arch: Arch,
    root_task: PathBuf,
    config: Config,
    extra_args: Vec<OsString>,
}

impl Judge {
    fn of_package(set: Set, name: &str, extra_args: Vec<OsString>) -> Result<Self> {
        let (arch, profile) = (arch(set), profile(set));
        let mut config = Config::of_package(name)?;
        config.profile = profile;
        Ok(Self {
            arch,
            root_task: program::build_of_profile(arch, name, profile)?,
            config: match arch {
                Arch::X86_64 => config,
                Arch::Aarch64 => config.for_aarch64(),
            },
            extra_args,
        })
    }

    /// As this one, the root task in C.
    fn in_c(&self) -> Result<Self> {
        Ok(Self {
            arch: self.arch,
            root_task: c_roots::build(self.arch)?.join(ROOT_TASK),
            config: self.config.clone(),
            extra_args: Vec::new(),
        })
    }

    /// Boots a kernel for `root_task`, which is the judge's own or has fewer checks; without `all`,
    /// until the first fails.
    fn boot(&self, kernel: &Path, root_task: &Path, all: bool) -> Result<Outcome> {
        qemu::run(&Boot {
            until: (!all).then(|| FAILURE.to_owned()),
            timeout: Some(TIMEOUT),
            extra_args: self.extra_args.clone(),
            ..self
                .config
                .boot(self.arch, kernel, Cores::Single, root_task)
        })
    }
}

/// What was said of a kernel.
#[derive(Debug)]
pub struct Finding {
    pub kernel: Kernel,
    /// The checks that failed, or why there is no telling. A run that ends at the first has one.
    pub caught_by: Result<Vec<String>>,
}

impl Finding {
    /// Whether it is as it should be: a wrong kernel is caught by what it names, the other by nothing.
    pub fn verdict(&self) -> Result<String, String> {
        let failed = match &self.caught_by {
            Ok(failed) => failed,
            Err(error) => return Err(format!("{error:#}")),
        };
        match &self.kernel {
            None if failed.is_empty() => Ok("every check passes".to_owned()),
            None => Err(format!(
                "the kernel that breaks no rule fails {}",
                failed.join(", ")
            )),
            Some(mutant) if failed.is_empty() => {
                Err(format!("no check notices it: {}", mutant.breaks))
            }
            Some(mutant) if is_caught(mutant, failed) => {
                Ok(format!("caught by {}", failed.join(", ")))
            }
            Some(mutant) => Err(format!(
                "{} does not notice it, but {} does: {}",
                mutant.caught_by,
                failed.join(", "),
                mutant.breaks
            )),
        }
    }
}

/// Whether what the mutant names is among what failed.
fn is_caught(mutant: &Named, failed: &[String]) -> bool {
    let by = mutant.caught_by.as_str();
    let test = by.strip_prefix(BY_ROOT_TASK).unwrap_or(by);
    by == BY_STORM || failed.iter().any(|failed| failed == test)
}

fn arch(set: Set) -> Arch {
    match set {
        Set::Aarch64 | Set::StateAarch64 => Arch::Aarch64,
        Set::Rules | Set::Profile | Set::State | Set::Panics => Arch::X86_64,
    }
}

/// The profile of its kernel: the one that has all that any profile adds for one core.
pub fn profile(set: Set) -> &'static Profile {
    match set {
        Set::Profile => &MICROKIT_DEBUG,
        _ => &BASE,
    }
}

/// The kernel that the mutants are in.
///
/// # Errors
/// The profile has none.
pub fn options(set: Set) -> Result<KernelOptions> {
    let (arch, profile) = (arch(set), profile(set));
    let options = profile::kernel(profile, arch, None, Variant::Release, Cores::Single)?;
    Ok(options.with_user_timer().with_mutants(set))
}

/// Builds the kernel with all mutants and runs on each of `kernels` what must notice; shows each finding to `see`
/// when it is there.
///
/// # Errors
/// The kernel or a suite does not build.
pub fn run(
    set: Set,
    kernels: &[Kernel],
    extent: Extent,
    see: impl Fn(&Finding) + Sync,
) -> Result<Vec<Finding>> {
    let conformance = Judge::of_package(set, PACKAGE, Vec::new())?;
    let storm = Judge::of_package(set, storm::PACKAGE, STORM.options(storm::FIRST_SEED))?;
    let in_c = (set == Set::Profile).then(|| conformance.in_c());
    let in_c = in_c.transpose()?;
    let checks = super::checks_of(profile(set))?;
    let built = kernel::build(&options(set)?)?;
    let work = |kernel: &Kernel| -> Result<Finding> {
        let by = kernel.as_ref().map(|mutant| mutant.caught_by.as_str());
        let outcome = named::switch_on(&built, kernel.as_ref()).and_then(|image| match extent {
            _ if by == Some(BY_STORM) => {
                storm.boot(&image, &storm.root_task, extent == Extent::Whole)
            }
            _ if by.is_some_and(|by| by.starts_with(BY_ROOT_TASK)) => {
                let judge = in_c.as_ref().context("only profiles have such tests")?;
                judge.boot(&image, &judge.root_task, extent == Extent::Whole)
            }
            Extent::Whole => conformance.boot(&image, &conformance.root_task, true),
            Extent::Named => {
                let root_task = with_checks(set, kernel, &conformance.root_task, &checks)?;
                conformance.boot(&image, &root_task, false)
            }
        });
        Ok(Finding {
            kernel: kernel.clone(),
            caught_by: outcome.and_then(failures),
        })
    };
    side_by_side::run(kernels, work, |finding, _| see(finding))
}

/// The suite, of which only the checks run that the mutant names; or those of all mutants.
fn with_checks(set: Set, kernel: &Kernel, root_task: &Path, checks: &[Check]) -> Result<PathBuf> {
    let only: Vec<String> = match kernel {
        Some(mutant) => vec![mutant.caught_by.clone()],
        None => {
            let all = Catalogue::read(set)?.mutants.into_iter();
            let mut names: Vec<String> = all
                .map(|mutant| mutant.caught_by)
                .filter(|name| checks.iter().any(|check| check.name == *name))
                .collect();
            names.sort();
            names.dedup();
            names
        }
    };
    let selection = SelectionArgs {
        only,
        ..SelectionArgs::default()
    };
    let file = root_task.with_extension(format!("{}.elf", name(kernel)));
    selection::write(&selection, checks, root_task, &file)?;
    Ok(file)
}

/// The checks that failed.
///
/// # Errors
/// None failed, and yet the run did not end well.
fn failures(outcome: Outcome) -> Result<Vec<String>> {
    let mut failed: Vec<String> = Vec::new();
    for line in outcome.console.lines() {
        if let Some((name, Verdict::Failed(_))) = lines::result(line) {
            failed.push(name.to_owned());
        }
    }
    let ended_well = match outcome.end {
        End::Guest(0) => outcome.console.lines().any(|l| lines::closing(l).is_some()),
        // The last line may lack its end.
        End::Until => {
            let cut = outcome.console.rsplit_once(FAILURE);
            if let (true, Some((before, _))) = (failed.is_empty(), cut) {
                let line = before.lines().last().unwrap_or_default();
                failed.push(line.trim_start_matches("test ").to_owned());
            }
            true
        }
        _ => false,
    };
    if failed.is_empty() && !ended_well {
        let last = outcome.console.lines().last().unwrap_or("nothing");
        bail!("no check fails, but the run does not end correctly, after: {last}");
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_mutants_name_exists() {
        assert!(kernels(Set::Rules).unwrap().len() > 20);
        assert!(kernels(Set::Aarch64).unwrap().len() > 15);
        assert!(kernels(Set::Profile).unwrap().len() > 8);
    }

    #[test]
    fn the_first_failure_is_found_even_if_its_line_is_cut() {
        let outcome = |console: &str, end| Outcome {
            end,
            console: console.to_owned(),
        };
        let cut = outcome("test a ... ok\ntest 01/1/b ... FAILED", End::Until);
        assert_eq!(failures(cut).unwrap(), ["01/1/b"]);
        let cut = outcome("test 01/1/b ... FAILED: 1 i", End::Until);
        assert_eq!(failures(cut).unwrap(), ["01/1/b"]);
        let good = outcome("test a ... ok\n1 passed, 0 failed\n", End::Guest(0));
        assert!(failures(good).unwrap().is_empty());
        assert!(failures(outcome("test a ... ok\n", End::TimedOut)).is_err());
    }

    #[test]
    fn a_wrong_kernel_must_be_caught_by_what_it_names_and_a_right_one_not() {
        let mutants = Catalogue::read(Set::Rules).unwrap().mutants;
        let verdict = |mutant: Option<&Named>, caught: &[&str]| {
            let caught_by = Ok(caught.iter().map(|&name| name.to_owned()).collect());
            let kernel = mutant.cloned();
            Finding { kernel, caught_by }.verdict()
        };
        assert!(verdict(None, &[]).is_ok());
        assert!(verdict(None, &["a"]).is_err());
        let mutant = &mutants[0];
        assert!(verdict(Some(mutant), &[]).is_err());
        assert!(verdict(Some(mutant), &["a"]).is_err());
        let caught = verdict(Some(mutant), &["a", &mutant.caught_by]).unwrap();
        assert_eq!(caught, format!("caught by a, {}", mutant.caught_by));
    }
}
