//! `sandglass assure`: what can be shown about the kernel, in one command.
//!
//! - Lock step with the executable specification, by the `assurance` package's binary, which is
//!   built with optimisation and with all checks;
//! - [`coverage`]: which lines of the kernel the host's tests execute;
//! - [`mutants`]: whether they notice small changes of the kernel.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use cargo_metadata::Message;
use sandglass_abi::profile::{Profile, BASE};

use crate::cli::AssureArgs;
use crate::cores::Cores;
use crate::mutants::named::{self, Catalogue, Set};
use crate::mutants::{self, Choice};
use crate::{coverage, profile, toolchain};

const PACKAGE: &str = "sandglass-assurance";
const BINARY: &str = "sandglass-assure";

/// Runs the command. Its status is a failure if anything was found.
///
/// # Errors
/// Something does not build, or cannot be run.
pub fn run(args: &AssureArgs) -> Result<ExitCode> {
    let agrees = lock_step(args)?;
    // Mutants and coverage are those of the base profile.
    if args.wrong.is_some() || args.only_lock_step || *args.profile.profile != BASE {
        return Ok(ExitCode::from(u8::from(!agrees)));
    }
    let is_covered = coverage::run()? == ExitCode::SUCCESS;
    let choice = if args.all_mutants {
        Choice::All
    } else {
        Choice::Sample {
            count: mutants::SAMPLE,
            seed: mutants::SEED,
        }
    };
    let notices = mutants::print(choice, "")?;
    let all_well = agrees && is_covered && notices;
    Ok(ExitCode::from(u8::from(!all_well)))
}

/// Runs the kernel in lock step with its specification. Returns whether nothing was found.
fn lock_step(args: &AssureArgs) -> Result<bool> {
    let cores = args.cores.cores();
    let wrong = match &args.wrong {
        Some(name) => Some(Catalogue::read(Set::Rules)?.find(name)?.number),
        None => None,
    };
    let profile = args.profile.profile;
    profile::ensure_cores(profile, cores)?;
    let binary = build(profile, cores, wrong.is_some())?;
    let mut command = std::process::Command::new(&binary);
    if let Some(number) = wrong {
        command.env(named::VARIABLE, number.to_string());
    }
    if args.only_time {
        command.arg("--only-time");
    }
    command.args(["--events", &args.events.to_string()]);
    command.args(["--seed", &args.seed.to_string()]);
    command.args(["--cores", &cores.number().to_string()]);
    if let Some(jobs) = args.jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", binary.display()))?;
    Ok(status.success())
}

/// Builds the binary with the kernel of `profile` for `cores`; with that of the named mutants if it is to be `wrong`.
fn build(profile: &Profile, cores: Cores, wrong: bool) -> Result<PathBuf> {
    let tree = wrong.then(|| named::tree(Set::Rules)).transpose()?;
    let mut cargo = match &tree {
        Some(tree) => tree.cargo("build"),
        None => {
            let mut cargo = toolchain::host_cargo();
            cargo.arg("build");
            cargo
        }
    };
    cargo.args(["--profile", "assure"]);
    cargo.args(["--package", PACKAGE, "--bin", BINARY]);
    if let Cores::Smp(_) = cores {
        cargo.args(["--features", "smp"]);
    }
    if let Some(feature) = profile::feature(profile) {
        cargo.args(["--features", feature]);
    }
    cargo.args(["--message-format", "json-render-diagnostics"]);
    eprintln!("building {BINARY}");
    let artifacts = toolchain::build(&mut cargo, BINARY)?;
    for message in Message::parse_stream(artifacts.as_slice()) {
        let message = message.context("cannot read cargo's output")?;
        if let Message::CompilerArtifact(artifact) = message {
            if let Some(executable) = artifact
                .executable
                .filter(|_| artifact.target.name == BINARY)
            {
                return Ok(executable.into_std_path_buf());
            }
        }
    }
    anyhow::bail!("cargo built no {BINARY}")
}
