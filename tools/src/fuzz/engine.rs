//! The fuzzing engine: how it is built, and how it is started.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{bail, Context, Result};
use cargo_metadata::Message;

use crate::toolchain;
use crate::workspace;

/// Folder of the engine, a workspace of its own.
const FOLDER: &str = "fuzz/engine";
/// Compiler, in that folder, that makes what is fuzzed count what it executes.
const WRAPPER: &str = "rustc-with-coverage.sh";
/// Package of the targets, with a program that runs them without the engine.
const TARGETS_PACKAGE: &str = "sandglass-fuzz-targets";
const HOST_TARGET: &str = "x86_64-unknown-linux-gnu";
/// Environment variable that names the target; `fuzz/engine/src/main.rs` has it too.
const VARIABLE: &str = "SANDGLASS_FUZZ_TARGET";

/// Every input gets machines with new memory: the allocator is to keep what it has, instead of
/// giving it back and fetching it page by page (glibc's tunables; ten times as many executions).
const ALLOCATOR: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "1073741824"),
    ("MALLOC_TRIM_THRESHOLD_", "4294967296"),
];

/// An input that runs longer, in seconds, is a failure: the kernel has no unbounded work.
const TIMEOUT: u32 = 30;

/// libFuzzer with all targets.
pub(super) struct Engine {
    program: PathBuf,
}

impl Engine {
    /// Builds it.
    ///
    /// # Errors
    /// There is no C++ compiler, or it does not build.
    pub(super) fn build() -> Result<Self> {
        if !["c++", "g++", "clang++"]
            .iter()
            .any(|name| toolchain::find_on_path(name).is_some())
        {
            bail!("fuzzing needs a C++ compiler, for libFuzzer: on Debian, `apt-get install g++`");
        }
        eprintln!("building the fuzzing engine (a few minutes, the first time only)");
        let mut cargo = toolchain::host_cargo();
        cargo
            .args(["build", "--release", "--target", HOST_TARGET])
            .args(["--message-format", "json-render-diagnostics"])
            .arg("--target-dir")
            .arg(workspace::target_dir().join("fuzz"))
            .current_dir(workspace::root().join(FOLDER))
            .env(
                "RUSTC_WRAPPER",
                workspace::root().join(FOLDER).join(WRAPPER),
            );
        let program = build(&mut cargo, "the fuzzing engine")?;
        Ok(Engine { program })
    }

    /// A libFuzzer on `target`, with the options that every run has.
    pub(super) fn command(&self, target: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env(VARIABLE, target)
            .envs(ALLOCATOR)
            .env("SANDGLASS_ROOT", workspace::root())
            .arg(format!("-timeout={TIMEOUT}"));
        command
    }
}

/// A program that shows and runs inputs of a target: `TARGET FILE...`.
///
/// # Errors
/// It does not build.
pub(super) fn replayer() -> Result<Command> {
    let mut cargo = toolchain::host_cargo();
    cargo.args([
        "build",
        "--package",
        TARGETS_PACKAGE,
        "--features",
        "debug-kernel",
    ]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    Ok(Command::new(build(&mut cargo, "the fuzz targets")?))
}

/// Runs `cargo`, which builds `what`, and returns the program that comes out.
fn build(cargo: &mut Command, what: &str) -> Result<PathBuf> {
    let artifacts = toolchain::build(cargo, what)?;
    let mut program = None;
    for message in Message::parse_stream(artifacts.as_slice()) {
        let message = message.context("cannot read cargo's output")?;
        if let Message::CompilerArtifact(artifact) = message {
            program = artifact.executable.or(program);
        }
    }
    let program = program.with_context(|| format!("{what}: no program was built"))?;
    Ok(program.into_std_path_buf())
}
