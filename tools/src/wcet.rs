//! `sandglass wcet`: builds the kernel that ships and the analyser (`assurance/wcet`), and asks it.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::cli::WcetArgs;
use crate::experiment::simulation;
use crate::kernel::{self, KernelOptions, Variant};

/// The analyser's package, and its binary: with the solver, which nobody else needs.
const PACKAGE: &str = "sandglass-wcet";

/// Runs the analyser on the release kernel.
///
/// # Errors
/// Something does not build, or cannot be run.
pub fn run(args: &WcetArgs) -> Result<ExitCode> {
    let options = match args.smp {
        true => KernelOptions::smp(Variant::Release),
        false => KernelOptions::new(Variant::Release),
    };
    let kernel = kernel::build(&options)?;
    let analyser = simulation::build(PACKAGE, "solver")?;
    let status = Command::new(&analyser)
        .arg(kernel)
        .args(&args.arguments)
        .status()
        .with_context(|| format!("cannot run {}", analyser.display()))?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
