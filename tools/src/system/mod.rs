//! Described systems: `sandglass build` and `sandglass run`.
//!
//! ```text
//! SYSTEM.toml --document--> keys and values --check--> description --pack--> root-task image
//! ```
//!
//! Nothing is built of a description in which something is wrong: [`check`] finds it, and the
//! error, a [`Report`], shows it with its place and what would be right. The image is the launcher
//! (`systems/launcher`), which finds behind itself the description in the form of
//! `sandglass-description` and everything that it names.

mod check;
mod document;
mod executable;
mod findings;
mod format;
mod images;
mod levels;
mod pack;
mod parse;
pub(crate) mod quantity;
pub mod rogue;
mod schema;
mod source;
mod spanned;
mod validate;
mod warning;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use sandglass_description::Blob;

pub use check::{check, check_on, Description};
pub use document::LogLevel;
pub use findings::{Finding, Report, Span};
pub use images::RunImage;
pub use levels::LevelOf;
pub use source::Source;
pub use validate::{run as run_validate, ValidateArgs, WarningArgs};
pub use warning::Warning;

use self::pack::Programs;
use self::rogue::Rogue;
use crate::arch::Arch;
use crate::backtrace::Executables;
use crate::board::{Devices, Output};
use crate::boot;
use crate::cli::{BuildArgs, RunArgs};
use crate::cores::Cores;
use crate::kernel::{self, KernelOptions, Variant};
use crate::program::Profile;
use crate::qemu::{Boot, Machine};
use crate::workspace;

/// Where a blob will be, before anything is packed.
const NO_BLOB: Blob = Blob { offset: 0, len: 0 };

/// On aarch64, the serial port that output leaves through, where the launcher looks for it.
const PCI_OUTPUT: &str = "pci-serial,chardev=output,addr=0x10";

/// A system that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// ELF file of the root task.
    pub image: PathBuf,
    pub arch: Arch,
    /// A component has the machine's timer.
    pub has_timer: bool,
    /// On aarch64, what the machine has for components.
    pub board: &'static Devices,
    /// All that it consists of was built from sources. On aarch64 it may end the machine with a status, and could do more:
    /// see [`Boot::user_semihosting`].
    pub is_built: bool,
    pub memory_mib: u32,
    pub cores: u32,
    /// Name of the output to the host.
    pub output: Option<String>,
    /// The executable of each component, by its name.
    pub executables: Vec<(String, PathBuf)>,
}

impl Built {
    /// The cores that `asked` asks for, or else those of the description.
    ///
    /// # Errors
    /// The description needs more.
    pub fn cores_with(&self, asked: Option<u32>) -> Result<Cores> {
        match asked {
            Some(number) if number < self.cores => bail!(
                "`--cores {number}`: the system's machine has {needed} cores; `--cores {needed}` \
                 or more would do, or the description's `machine` with fewer",
                needed = self.cores
            ),
            Some(_) => Ok(Cores::asked_for(asked)),
            None => Ok(Cores::of_machine(self.cores)),
        }
    }

    /// The kernel of this variant that it runs on, with these cores: one that lets components read the clock, and have the
    /// timer if one has.
    pub fn kernel(&self, variant: Variant, cores: Cores) -> KernelOptions {
        let kernel = KernelOptions::on(variant, cores).for_arch(self.arch);
        // A timer that is a device is its owner's.
        match self.has_timer && self.board.has_core_timer() {
            true => kernel.with_user_timer(),
            false => kernel.with_user_clock(),
        }
    }

    /// How to boot it on `kernel`: on the machine that the description asks for.
    pub fn boot(&self, kernel: impl Into<PathBuf>) -> Boot {
        let mut machine = Machine::of(self.arch);
        if self.arch == Arch::Aarch64 {
            machine.model = self.board.model.to_owned();
        }
        Boot {
            machine: Machine {
                memory_mib: self.memory_mib,
                cores: self.cores,
                ..machine
            },
            user_semihosting: self.is_built,
            annotator: Executables::new(self.executables.iter().cloned()).annotator(),
            ..Boot::new(kernel, &self.image)
        }
    }

    /// Lets the system's output go to `file`: it leaves by the second serial port, or by one behind the PCI bridge.
    /// Without this, the port is absent, and what is written there lost.
    ///
    /// # Errors
    /// The description has no output.
    pub fn output_to(&self, boot: &mut Boot, file: &Path) -> Result<()> {
        if self.output.is_none() {
            bail!("the system has no output: add an `[[output]]` to its description");
        }
        match (self.arch, &self.board.output) {
            (Arch::X86_64, _) | (Arch::Aarch64, Output::Second(_)) => {
                let mut backend = OsString::from("file:");
                backend.push(file);
                boot.extra_args.extend(["-serial".into(), backend]);
            }
            (Arch::Aarch64, Output::Pci(_)) => {
                let file = file.to_str().context("the output's path is not UTF-8")?;
                let file = file.replace(',', ",,");
                boot.extra_args.extend([
                    "-chardev".into(),
                    format!("file,id=output,path={file}").into(),
                    "-device".into(),
                    PCI_OUTPUT.into(),
                ]);
            }
        }
        Ok(())
    }
}

/// Builds a checked system: its executables, and the image, written to `output` or where built
/// systems are kept.
///
/// # Errors
/// An executable does not build; or what was built does not fit, as a [`Report`].
pub fn build(description: &Description, output: Option<&Path>) -> Result<Built> {
    let programs = Programs::build([description], Profile::Release)?;
    build_with(&programs, description, output)
}

/// What a debugger reads of a system: ELF files with debugging information.
pub struct Symbols {
    pub launcher: Vec<u8>,
    /// In the description's order.
    pub components: Vec<Vec<u8>>,
}

/// As [`build`], with components that are compiled by `profile`; and what a debugger reads of them.
///
/// # Errors
/// As [`build`].
pub fn build_with_symbols(
    profile: Profile,
    description: &Description,
    output: &Path,
) -> Result<(Built, Symbols)> {
    let programs = Programs::build([description], profile)?;
    let built = build_with(&programs, description, Some(output))?;
    let components = programs.of_components(description)?.into_iter();
    let symbols = Symbols {
        launcher: programs.launcher(description.arch)?.to_owned(),
        components: components.map(Cow::into_owned).collect(),
    };
    Ok((built, symbols))
}

/// Builds several checked systems, each into its file. What they have in common is built once.
///
/// # Errors
/// As [`build`].
pub fn build_all(systems: &[(Description, PathBuf)]) -> Result<Vec<Built>> {
    let descriptions = systems.iter().map(|(description, _)| description);
    let programs = Programs::build(descriptions, Profile::Release)?;
    systems
        .iter()
        .map(|(description, output)| build_with(&programs, description, Some(output)))
        .collect()
}

fn build_with(
    programs: &Programs,
    description: &Description,
    output: Option<&Path>,
) -> Result<Built> {
    Ok(Built {
        image: pack::pack(description, programs, output)?,
        arch: description.arch,
        has_timer: description.has_timer,
        board: description.board,
        is_built: description
            .executables
            .iter()
            .all(|packed| packed.executable.is_built()),
        memory_mib: description.memory_mib,
        cores: description.cores,
        output: description.output.clone(),
        executables: programs.paths(description),
    })
}

/// Prints what will probably hurt in a checked system.
///
/// # Errors
/// There is something, and it is denied.
pub fn warn(description: &Description, deny: bool) -> Result<()> {
    let warnings = &description.outlook.warnings;
    if warnings.is_empty() {
        return Ok(());
    }
    eprintln!("{}\n", Report::new(&description.source, warnings.clone()));
    if deny {
        bail!(
            "there are {} warnings, which `--deny-warnings` does not allow; what is right as it is can be accepted \
             with a reason: `[[accept]]`",
            warnings.len()
        );
    }
    Ok(())
}

/// Reads, checks, warns and builds.
///
/// # Errors
/// The description cannot be read or is wrong; or as [`build`].
pub fn build_file(
    path: &Path,
    arch: Option<Arch>,
    output: Option<&Path>,
    deny_warnings: bool,
) -> Result<Built> {
    let description = check(&Source::read(path)?.for_arch(arch))?;
    warn(&description, deny_warnings)?;
    build(&description, output)
}

/// `sandglass build`: the last line of the output is the path of the image.
pub fn run_build(args: &BuildArgs) -> Result<ExitCode> {
    let output = args.output.as_deref();
    workspace::ensure_outputs(&args.system, &[output])?;
    let built = build_file(&args.system, args.arch, output, args.warnings.deny_warnings)?;
    println!("{}", built.image.display());
    Ok(ExitCode::SUCCESS)
}

/// `sandglass run`: ends with the system's status, 0 at the awaited text, 124 at the time-out.
pub fn run_system(args: &RunArgs) -> Result<ExitCode> {
    let (output, log) = (args.output.as_deref(), args.conditions.log.as_deref());
    workspace::ensure_outputs(&args.system, &[output, log])?;
    let mut source = Source::read(&args.system)?.for_arch(args.arch);
    if let Some(seed) = args.beside.rogue {
        source = Rogue::of_seed(seed).beside(&source)?;
    }
    let mut description = check_on(&source, args.conditions.model.as_deref())?;
    for level in &args.log_level {
        level.apply(&mut description)?;
    }
    warn(&description, args.warnings.deny_warnings)?;
    let image = RunImage::new()?;
    let built = build(&description, Some(image.path()))?;
    let cores = built.cores_with(args.cores)?;
    let options = built.kernel(args.conditions.variant(), cores);
    let options = args.conditions.speculation.of(options)?;
    let mut boot = built.boot(kernel::build(&options)?);
    boot.machine.cores = cores.number();
    boot.machine.suit(&options);
    match (&args.output, &built.output) {
        (Some(file), _) => built.output_to(&mut boot, file)?,
        (None, Some(name)) => {
            eprintln!("the output `{name}` is discarded; use `--output FILE` to keep it")
        }
        (None, None) => {}
    }
    boot::run_under(&args.conditions, boot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_runs_on_its_machines_cores_or_on_more() {
        let built = |cores| Built {
            image: PathBuf::new(),
            arch: Arch::default(),
            has_timer: false,
            board: crate::board::default_devices(),
            is_built: true,
            memory_mib: 64,
            cores,
            output: None,
            executables: Vec::new(),
        };
        assert_eq!(built(1).cores_with(None).unwrap(), Cores::Single);
        assert_eq!(built(1).cores_with(Some(1)).unwrap(), Cores::Smp(1));
        assert_eq!(built(2).cores_with(None).unwrap(), Cores::Smp(2));
        assert_eq!(built(2).cores_with(Some(4)).unwrap(), Cores::Smp(4));
        let error = built(2).cores_with(Some(1)).unwrap_err().to_string();
        assert!(error.contains("`--cores 2`"), "{error}");
    }
}
