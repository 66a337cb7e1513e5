//! `sandglass bounds --search`: the worst arrangements are searched in the hosted kernel, and stand in
//! the repository from then on.

use std::fs;
use std::process::Command;

use anyhow::{bail, Context, Result};
use cargo_metadata::Message;

use crate::toolchain;
use crate::workspace;

const PACKAGE: &str = "sandglass-bounds-search";
const HOST_TARGET: &str = "x86_64-unknown-linux-gnu";
/// Compiler that makes the kernel count the pieces of code that run.
const WRAPPER: &str = "systems/bounds/search/rustc-that-counts.sh";

/// What it found is kept here.
const FOUND: &str = "systems/bounds/arrangements/found.txt";
const HEAD: &str = "\
# Written by `./sandglass bounds --search`: the worst arrangements that it found, each behind the number
# of threads for which it was searched.
";

/// Searches for `minutes`, beginning with the random numbers that `seed` names.
///
/// # Errors
/// The search does not build or run, or its file cannot be written.
pub fn run(minutes: u64, seed: u64) -> Result<()> {
    let mut cargo = toolchain::host_cargo();
    cargo
        .args(["build", "--release", "--package", PACKAGE])
        .args(["--target", HOST_TARGET])
        .args(["--message-format", "json-render-diagnostics"])
        .arg("--target-dir")
        .arg(workspace::target_dir().join("bounds-search"))
        .env("RUSTC_WRAPPER", workspace::root().join(WRAPPER));
    eprintln!("building {PACKAGE}");
    let artifacts = toolchain::build(&mut cargo, PACKAGE)?;
    let mut program = None;
    for message in Message::parse_stream(artifacts.as_slice()) {
        if let Message::CompilerArtifact(artifact) =
            message.context("cannot read cargo's output")?
        {
            program = artifact.executable.or(program);
        }
    }
    let program = program.with_context(|| format!("{PACKAGE}: no program was built"))?;
    eprintln!("searching for {minutes} minutes");
    let output = Command::new(program)
        .args([(60 * minutes).to_string(), seed.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {PACKAGE}"))?;
    if !output.status.success() {
        bail!("the search ended with {}", output.status);
    }
    let found = String::from_utf8(output.stdout).context("the search prints text")?;
    let path = workspace::root().join(FOUND);
    fs::write(&path, format!("{HEAD}{found}"))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("{FOUND}: {} arrangements", found.lines().count());
    Ok(())
}
