//! `sandglass wcet`: builds the kernel that ships and the analyser (`assurance/wcet`), and asks it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{bail, ensure, Context, Result};

use crate::cli::WcetArgs;
use crate::experiment::simulation;
use crate::kernel::{self, KernelOptions, Variant};

/// The analyser's package, and its binary: with the solver, which nobody else needs.
const PACKAGE: &str = "sandglass-wcet";

/// The status of a command whose arguments are wrong.
const WRONG_ARGUMENTS: i32 = 2;

/// Runs the analyser on the release kernel.
///
/// # Errors
/// Something does not build, or cannot be run.
pub fn run(args: &WcetArgs) -> Result<ExitCode> {
    let options = match args.smp {
        true => KernelOptions::smp(Variant::Release),
        false => KernelOptions::new(Variant::Release),
    };
    let kernel = kernel::build(&options.for_arch(args.arch))?;
    let mut analyser = analyser()?;
    analyser.arg(kernel).args(&args.arguments);
    Ok(match status(&mut analyser)?.code() {
        Some(0) => ExitCode::SUCCESS,
        // Its arguments are ours.
        Some(WRONG_ARGUMENTS) => ExitCode::from(WRONG_ARGUMENTS as u8),
        _ => ExitCode::FAILURE,
    })
}

/// A copy of a kernel that records its bounds on a platform.
///
/// # Errors
/// It needs longer there than it assumes of itself, for which the analyser said why; something does not build, or cannot
/// be run.
pub fn analysed(kernel: &Path, platform: &Path) -> Result<PathBuf> {
    let mut analyser = analyser()?;
    let copy = kernel.with_extension("analysed.elf");
    fs::copy(kernel, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
    analyser.arg(&copy).args(["--system", "open", "--stamp"]);
    analyser.arg("--platform").arg(platform);
    if !status(&mut analyser)?.success() {
        // Nobody is to boot what was refused.
        fs::remove_file(&copy).with_context(|| format!("cannot remove {}", copy.display()))?;
        bail!("no kernel for {}", platform.display());
    }
    Ok(copy)
}

/// Compares the bounds of a release kernel with a file that records them; `model` is what is counted.
///
/// # Errors
/// One has grown by more than 2 %, with what the analyser says of it; something does not build, or cannot be run.
pub fn check(kernel: &KernelOptions, recorded: &Path, model: &str) -> Result<()> {
    let kernel = kernel::build(kernel)?;
    let mut analyser = analyser()?;
    analyser
        .arg(kernel)
        .args(["--model", model])
        .arg("--check")
        .arg(recorded);
    analyse(&mut analyser).map(|_| ())
}

/// What the analyser writes.
///
/// # Errors
/// It cannot be run, or does not end well: with what it says.
fn analyse(analyser: &mut Command) -> Result<String> {
    let output = analyser.output().context("cannot run the analyser")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The bounds of the cases that a file describes, by their names; `model` is what is counted.
///
/// # Errors
/// A case is none of this kernel, with what the analyser says of it; something does not build, or cannot be run.
pub fn cases(kernel: &Path, file: &Path, model: &str) -> Result<BTreeMap<String, u64>> {
    let mut analyser = analyser()?;
    analyser
        .arg(kernel)
        .args(["--model", model])
        .arg("--cases")
        .arg(file);
    let text = analyse(&mut analyser)?;
    let case = |line: &str| {
        let (name, bound) = line.strip_prefix("case ")?.split_once(' ')?;
        Some((name.to_owned(), bound.parse().ok()?))
    };
    let cases = text.lines().map(|line| {
        let case = case(line);
        case.with_context(|| format!("the analyser printed `{line}`"))
    });
    cases.collect()
}

fn analyser() -> Result<Command> {
    Ok(Command::new(simulation::build(PACKAGE, None)?))
}

fn status(analyser: &mut Command) -> Result<ExitStatus> {
    let program = analyser.get_program().to_string_lossy().into_owned();
    let status = analyser.status();
    status.with_context(|| format!("cannot run {program}"))
}
