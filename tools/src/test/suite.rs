//! The test suites that are root tasks: where they are declared, and how they are built.
//!
//! A package takes part by `[package.metadata.sandglass] test = { ... }` in its `Cargo.toml`; the
//! root tasks in C, by a line in their `tests.toml`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use sandglass_abi::profile::{Nodes, Profile, BASE};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::Filter;
use crate::arch::Arch;
use crate::c_roots;
use crate::cores::{Cores, MOST_CORES};
use crate::kernel::{KernelOptions, Variant};
use crate::profile;
use crate::program;
use crate::qemu::{Boot, Machine};
use crate::storm;
use crate::workspace;

/// How a suite's tests are run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Kernels to run on, each in turn.
    #[serde(default = "both_kernels")]
    pub(super) kernels: Vec<Variant>,
    /// Profile of the ABI that it is built for, and its kernel with it; the base profile if absent.
    #[serde(default = "base_profile", deserialize_with = "profile_named")]
    pub(crate) profile: &'static Profile,
    /// Virtual time with 2^icount ns for an instruction; real time if absent.
    pub(super) icount: Option<u8>,
    /// Memory of the machine, in MiB.
    #[serde(default = "default_memory")]
    pub(super) memory: u32,
    /// QEMU's `-cpu`.
    pub(crate) cpu: Option<String>,
    /// More arguments for QEMU.
    #[serde(default)]
    pub(super) qemu: Vec<String>,
    /// Times that a run is repeated, each with another seed, in which QEMU has left long mode.
    #[serde(default)]
    pub(super) repeats: u64,
    /// Limit of a run, in seconds of the host's time.
    #[serde(default = "default_timeout")]
    pub(super) timeout: u64,
    /// The least number of tests that must pass: guards against a suite that loses its tests.
    pub(super) min_passed: usize,
    /// How they are run on aarch64, if they are.
    pub(super) aarch64: Option<OnAarch64>,
    /// Programs must not reach the host there, by which others end a machine: the system says its end.
    #[serde(skip)]
    pub(crate) says_end: bool,
    /// QEMU's machine type, if not the architecture's usual one.
    #[serde(skip)]
    pub(crate) model: Option<String>,
}

/// What differs on aarch64.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnAarch64 {
    min_passed: usize,
    /// The system has hostile programs, which must not reach the host; it says its end as the storm does.
    #[serde(default)]
    hostile: bool,
    /// On kernels of the ABI's profile, which let programs have neither the clock nor the physical timer.
    #[serde(default, rename = "base-profile")]
    base_profile: bool,
    /// Each in turn.
    runs: Vec<RunOnAarch64>,
}

/// A run on aarch64.
#[derive(Debug, Clone, Deserialize)]
struct RunOnAarch64 {
    kernel: Variant,
    /// Of the SMP kernel; the single-core kernel if absent.
    cores: Option<u32>,
    /// Where.
    #[serde(flatten)]
    on: Place,
}

/// A machine for aarch64.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// QEMU's `virt`, with this version of the interrupt controller.
    Gic(u8),
    /// Another one, by QEMU's name of it.
    Board(String),
}

impl Config {
    /// That of the package `name`.
    ///
    /// # Errors
    /// It has none, or a wrong one.
    pub(crate) fn of_package(name: &str) -> Result<Self> {
        declared_by_packages()?
            .remove(name)
            .with_context(|| format!("the package `{name}` has no tests for QEMU"))
    }

    /// The kernels for x86_64 that `suite` is run on, each with the cores of its machine. A profile that is for several cores
    /// has no other kernels: it is run on one, on as many as the base profile, and on all.
    fn kernels(&self, suite: &str) -> Vec<(Variant, Cores)> {
        let allowed = |&variant: &Variant| profile::allows(self.profile, variant);
        let variants = self.kernels.iter().copied().filter(allowed);
        let on = |cores: &[Cores]| -> Vec<(Variant, Cores)> {
            let each = |variant| cores.iter().map(move |&cores| (variant, cores));
            variants.clone().flat_map(each).collect()
        };
        match self.profile.nodes {
            _ if *self.profile == BASE => {
                let mut kernels = on(&[Cores::Single]);
                kernels.extend(smp_kernels(suite));
                kernels
            }
            Nodes::One => on(&[Cores::Single]),
            Nodes::OneOr(most) => on(&[Cores::Single, Cores::Smp(most)]),
            Nodes::Several(most) => on(&[1, MOST_CORES, most].map(Cores::Smp)),
        }
    }

    /// The runs of `suite` on x86_64.
    fn on_x86_64(&self, suite: &str) -> Vec<OnKernel> {
        let on = |(variant, cores): (Variant, Cores)| OnKernel {
            prefix: format!("qemu::{suite}::{}{cores}", variant.name()),
            kernel: KernelOptions::on(variant, cores).of_profile(self.profile),
            cores,
            config: self.clone(),
        };
        let mut runs: Vec<_> = self.kernels(suite).into_iter().map(on).collect();
        if is_run_without_isolation(suite) {
            let variant = Variant::Release;
            let kernel = KernelOptions::new(variant).without_isolation();
            runs.push(OnKernel {
                prefix: format!("qemu::{suite}::{}-no-isolation", variant.name()),
                cores: Cores::Single,
                config: Config {
                    cpu: kernel.cpu().map(str::to_owned),
                    ..self.clone()
                },
                kernel,
            });
        }
        runs
    }

    /// Those on aarch64.
    fn on_aarch64(&self, suite: &str) -> Vec<OnKernel> {
        let Some(on) = &self.aarch64 else {
            return Vec::new();
        };
        let run = |run: &RunOnAarch64| {
            let cores = run.cores.map_or(Cores::Single, Cores::Smp);
            let variant = run.kernel.name();
            let (board, model) = match &run.on {
                Place::Gic(version) => (String::new(), format!("virt,gic-version={version}")),
                Place::Board(board) => (format!("{board}-"), board.clone()),
            };
            let kernel = KernelOptions::on(run.kernel, cores).for_arch(Arch::Aarch64);
            OnKernel {
                prefix: format!("qemu::{suite}::aarch64-{board}{variant}{cores}"),
                kernel: match on.base_profile {
                    true => kernel,
                    false => kernel.with_user_timer(),
                },
                cores,
                config: Config {
                    min_passed: on.min_passed,
                    model: Some(model),
                    says_end: on.hostile,
                    ..self.clone()
                },
            }
        };
        on.runs.iter().map(run).collect()
    }

    /// This one on aarch64, on the usual machine.
    pub(crate) fn for_aarch64(self) -> Self {
        Self {
            says_end: self.aarch64.as_ref().is_some_and(|on| on.hostile),
            ..self
        }
    }

    /// A boot on the configured machine with these cores, with the configured limit.
    pub(crate) fn boot(&self, arch: Arch, kernel: &Path, cores: Cores, root_task: &Path) -> Boot {
        let mut machine = Machine {
            cores: cores.number(),
            memory_mib: self.memory,
            ..Machine::of(arch)
        };
        if let Some(shift) = self.icount {
            machine.keep_virtual_time(shift);
        }
        if let Some(model) = &self.model {
            machine.model.clone_from(model);
        }
        // Processors and devices are those of x86_64.
        let own = arch == Arch::X86_64;
        let cpu = self.cpu.as_deref().or(profile::cpu(self.profile));
        if let Some(cpu) = cpu.filter(|_| own) {
            machine.cpu = cpu.to_owned();
        }
        let options = self.qemu.iter().filter(|_| own);
        Boot {
            machine,
            timeout: Some(Duration::from_secs(self.timeout)),
            user_semihosting: !self.says_end,
            says_end: (self.says_end && !own).then_some(storm::END),
            extra_args: options.map(OsString::from).collect(),
            ..Boot::new(kernel, root_task)
        }
    }
}

fn base_profile() -> &'static Profile {
    &BASE
}

fn profile_named<'de, D: Deserializer<'de>>(name: D) -> Result<&'static Profile, D::Error> {
    profile::named(&String::deserialize(name)?).map_err(D::Error::custom)
}

pub(super) fn both_kernels() -> Vec<Variant> {
    Variant::ALL.to_vec()
}

fn default_memory() -> u32 {
    256
}

fn default_timeout() -> u64 {
    120
}

/// The SMP kernels that a suite is run on besides the single-core kernels, each with the cores of
/// its machine: as many as the time of the whole test command allows.
fn smp_kernels(suite: &str) -> Vec<(Variant, Cores)> {
    let both = |cores| Variant::ALL.map(|variant| (variant, Cores::Smp(cores)));
    match suite {
        // Entries of the debug SMP kernel take longer than a thread's log takes for an entry.
        "kernel-tests" => vec![(Variant::Release, Cores::Smp(MOST_CORES))],
        // Inside its turns the debug kernel also prints and checks objects: no bound is promised there.
        "waiting" => [2, MOST_CORES]
            .map(|cores| (Variant::Release, Cores::Smp(cores)))
            .to_vec(),
        // What thousands of threads cost, what is given to the root task of one core, and what user code takes by itself.
        "herd" | "c-roots::inventory" | "signature-tests" => Vec::new(),
        // What only aarch64 keeps from programs.
        "base-profile" => Vec::new(),
        // Cores make no difference to where an image lies.
        _ if suite.starts_with("c-roots::layout-") => Vec::new(),
        _ => both(MOST_CORES).to_vec(),
    }
}

/// Whether a suite is also run on the release kernel without page-table isolation: what asks for each invocation, and what looks
/// for kernel memory and for translations that should be gone.
fn is_run_without_isolation(suite: &str) -> bool {
    matches!(suite, "conformance" | "kernel-tests" | "storm")
}

/// What the names of those in C begin with.
const C_ROOTS: &str = "c-roots::";

/// A suite on one kernel.
pub(super) struct OnKernel {
    /// What its tests' names begin with.
    pub(super) prefix: String,
    pub(super) kernel: KernelOptions,
    pub(super) cores: Cores,
    pub(super) config: Config,
}

impl OnKernel {
    /// Whether it can be wanted at all: not if it is one of the long ones, and just the usual are.
    pub(super) fn is_wanted(&self, filter: &Filter) -> bool {
        !filter.leaves_out(&format!("{}::", self.prefix))
    }
}

/// The runs of all suites on both architectures, as they are declared: nothing is built.
///
/// # Errors
/// One is declared wrongly.
pub(super) fn declared() -> Result<Vec<OnKernel>> {
    let mut declared: Vec<(String, Config)> = declared_by_packages()?.into_iter().collect();
    for (program, config) in declared_c_roots()? {
        declared.push((format!("{C_ROOTS}{program}"), config));
    }
    let runs = declared.iter().flat_map(|(suite, config)| {
        let on_x86_64 = config.on_x86_64(suite).into_iter();
        on_x86_64.chain(config.on_aarch64(suite))
    });
    Ok(runs.collect())
}

/// A root task that is a suite of tests.
pub(super) struct Suite {
    /// What its tests' names begin with, between `qemu::` and the kernel.
    pub(super) name: String,
    pub(super) config: Config,
    pub(super) root_task: PathBuf,
}

impl Suite {
    /// The runs on x86_64.
    pub(super) fn on_x86_64(&self) -> Vec<OnKernel> {
        self.config.on_x86_64(&self.name)
    }

    /// Builds it for aarch64.
    ///
    /// # Errors
    /// It does not build, or a compiler is missing.
    pub(super) fn build_for_aarch64(&self) -> Result<PathBuf> {
        match self.name.strip_prefix(C_ROOTS) {
            Some(program) => {
                let folder = c_roots::build(Arch::Aarch64)?;
                Ok(folder.join(program).with_extension("elf"))
            }
            None => program::build_for(Arch::Aarch64, &self.name),
        }
    }

    /// The runs on aarch64.
    pub(super) fn on_aarch64(&self) -> Vec<OnKernel> {
        self.config.on_aarch64(&self.name)
    }
}

/// A kernel with the cores of its machine, and whether a suite is run on it only with `--all` or by name.
pub(crate) type Wanted = ((Variant, Cores), bool);

/// The kernels for x86_64 that the suite of a package is run on.
///
/// # Errors
/// The package has none, or declares it wrongly.
pub(crate) fn kernels_of(package: &str) -> Result<Vec<Wanted>> {
    Ok(wanted(package, &Config::of_package(package)?))
}

/// The kernels of `profile` that root tasks in C are run on.
///
/// # Errors
/// What declares them cannot be read.
pub(crate) fn c_roots_of(profile: &Profile) -> Result<Vec<Wanted>> {
    let declared = declared_c_roots()?.into_iter();
    let own = declared.filter(|(_, config)| config.profile == profile);
    Ok(own
        .flat_map(|(program, config)| wanted(&format!("{C_ROOTS}{program}"), &config))
        .collect())
}

/// The kernels for x86_64 that `suite` is run on.
fn wanted(suite: &str, config: &Config) -> Vec<Wanted> {
    let kernels = config.kernels(suite).into_iter();
    let each = kernels.map(|(variant, cores)| {
        let tests = format!("qemu::{suite}::{}{cores}::", variant.name());
        ((variant, cores), super::is_long(&tests))
    });
    each.collect()
}

/// Builds all suites.
///
/// # Errors
/// One is declared wrongly or does not build.
pub(super) fn build_all() -> Result<Vec<Suite>> {
    let mut suites = packages()?;
    suites.extend(c_roots()?);
    Ok(suites)
}

/// What packages declare, by their names.
fn declared_by_packages() -> Result<BTreeMap<String, Config>> {
    let mut declared = BTreeMap::new();
    for package in program::workspace_metadata()?.packages {
        let test = &package.metadata["sandglass"]["test"];
        if !test.is_null() {
            let config = Config::deserialize(test).with_context(|| {
                format!(
                    "[package.metadata.sandglass] test in {}",
                    package.manifest_path
                )
            })?;
            declared.insert(package.name.to_string(), config);
        }
    }
    Ok(declared)
}

/// The suites that are packages.
fn packages() -> Result<Vec<Suite>> {
    let declared = declared_by_packages()?;
    let names: Vec<&str> = declared.keys().map(String::as_str).collect();
    let programs = program::build_all(&names)?;
    Ok(declared
        .into_iter()
        .zip(programs)
        .map(|((name, config), root_task)| Suite {
            name,
            config,
            root_task,
        })
        .collect())
}

/// Where root tasks in C are declared.
fn c_roots_file() -> PathBuf {
    workspace::root().join(c_roots::FOLDER).join("tests.toml")
}

/// What is declared there, by their names.
fn declared_c_roots() -> Result<BTreeMap<String, Config>> {
    let path = c_roots_file();
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("in {}", path.display()))
}

/// The suites that are root tasks in C.
fn c_roots() -> Result<Vec<Suite>> {
    let path = c_roots_file();
    let folder = c_roots::build(Arch::X86_64)?;
    let mut suites = Vec::new();
    for (program, config) in declared_c_roots()? {
        let root_task = folder.join(&program).with_extension("elf");
        if !root_task.is_file() {
            bail!(
                "{} names `{program}`, but the Makefile beside it does not make {program}.elf",
                path.display()
            );
        }
        suites.push(Suite {
            name: format!("{C_ROOTS}{program}"),
            config,
            root_task,
        });
    }
    Ok(suites)
}
