//! Programs of the repository that run beside the command: simulations, for up to four cores, and others that have
//! dependencies of their own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};
use cargo_metadata::Message;

use crate::{toolchain, workspace};

/// The feature of simulations for up to four cores.
pub const SMP: &str = "smp";

/// Builds the binary of that package, which has its name, with this feature if any, and returns it.
///
/// # Errors
/// It does not build, or there is none.
pub fn build(package: &str, feature: Option<&str>) -> Result<PathBuf> {
    let mut cargo = toolchain::linted_cargo();
    cargo.args([
        "build",
        "--profile",
        toolchain::HOST_PROFILE,
        "--package",
        package,
    ]);
    cargo.args(["--bin", package]);
    cargo.args(feature.iter().flat_map(|feature| ["--features", feature]));
    cargo.args(["--message-format", "json-render-diagnostics"]);
    cargo.arg("--target-dir").arg(workspace::target_dir());
    eprintln!("building {package}");
    let artifacts = toolchain::build(&mut cargo, package)?;
    for message in Message::parse_stream(artifacts.as_slice()) {
        let message = message.context("cannot read cargo's output")?;
        if let Message::CompilerArtifact(artifact) = message {
            let is_ours = artifact.target.name == package;
            if let Some(executable) = artifact.executable.filter(|_| is_ours) {
                return Ok(executable.into_std_path_buf());
            }
        }
    }
    bail!("cargo built no {package}")
}

/// What it writes.
///
/// # Errors
/// It cannot be run, or fails.
pub fn ended(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}
