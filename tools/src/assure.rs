//! `sandglass assure`: what can be shown about the kernel, in one command.
//!
//! Lock step is the `assurance` package's binary; it is built with optimisation and with all checks.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use cargo_metadata::Message;

use crate::cli::AssureArgs;
use crate::toolchain;

const PACKAGE: &str = "sandglass-assurance";
const BINARY: &str = "sandglass-assure";

/// Runs the command. Its status is a failure if anything was found.
///
/// # Errors
/// Something does not build, or cannot be run.
pub fn run(args: &AssureArgs) -> Result<ExitCode> {
    let lock_step = lock_step(args)?;
    // What else assures us of the kernel (coverage, mutations) reports here.
    Ok(if lock_step {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs the kernel in lock step with its specification. Returns whether nothing was found.
fn lock_step(args: &AssureArgs) -> Result<bool> {
    let binary = build()?;
    let mut command = std::process::Command::new(&binary);
    command.args(["--events", &args.events.to_string()]);
    command.args(["--seed", &args.seed.to_string()]);
    if let Some(jobs) = args.jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", binary.display()))?;
    Ok(status.success())
}

fn build() -> Result<PathBuf> {
    let mut cargo = toolchain::host_cargo();
    cargo.args(["build", "--profile", "assure"]);
    cargo.args(["--package", PACKAGE, "--bin", BINARY]);
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
