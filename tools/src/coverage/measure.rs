//! Builds the instrumented tests, runs them, and merges what they counted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::lines::Coverage;
use crate::test::harness::{self, Harness};
use crate::{toolchain, workspace};

/// Tests that are counted: for each build its name, and arguments of `cargo test`. The kernel is
/// one piece of source and several kernels.
const BUILDS: &[(&str, &[&str])] = &[
    (
        "release",
        &[
            "--package",
            "sandglass-kernel",
            "--package",
            "sandglass-assurance",
        ],
    ),
    (
        "cores",
        &[
            "--package",
            "sandglass-kernel",
            "--package",
            "sandglass-assurance",
            "--features",
            "sandglass-assurance/smp",
        ],
    ),
    (
        "debug",
        &["--package", "sandglass-kernel", "--features", "debug,smp"],
    ),
];

/// LLVM's tools, of the release that reads the profiles of both compilers, and where Debian has
/// them.
const LLVM: &str = "22";

/// What is not measured: the machines, which are not the same on the host, the program, which a host has no
/// use for, and unit tests.
const APART: &[&str] = &["src/arch/", "src/main.rs", "src/boot/tests.rs"];
/// What of these is measured all the same: what the hosted machine shares with the bare one.
const SHARED: &[&str] = &["src/arch/x86_64/abi/", "src/arch/address.rs"];
/// Files of invariants, which are not in the kernel that ships.
const INVARIANTS: &str = "inspect.rs";

/// Lines of the kernel without its machines that the host's tests execute.
///
/// # Errors
/// A tool is missing, the tests do not build, or one of them fails.
pub fn kernel() -> Result<Coverage> {
    let profdata = llvm_tool("llvm-profdata")?;
    let cov = llvm_tool("llvm-cov")?;
    let folder = workspace::target_dir().join("coverage");
    let profiles = folder.join("profiles");
    if profiles.exists() {
        fs::remove_dir_all(&profiles)
            .with_context(|| format!("cannot empty {}", profiles.display()))?;
    }
    let harnesses = build(&folder)?;
    for (number, harness) in harnesses.iter().enumerate() {
        eprintln!("[{}/{}] {}", number + 1, harnesses.len(), harness.prefix);
        run(harness, &profiles)?;
    }
    let merged = folder.join("merged.profdata");
    let mut merge = Command::new(profdata);
    merge.args(["merge", "--sparse", "--output"]).arg(&merged);
    output(merge.arg(&profiles))?;
    let lcov = export(&cov, &merged, &harnesses)?;
    let kernel = workspace::root().join("kernel");
    let mut coverage = Coverage::parse(&lcov, |path| {
        let name = Path::new(path).strip_prefix(&kernel).ok()?.to_str()?;
        is_measured(name).then(|| name.to_owned())
    })?;
    for (file, counts) in &mut coverage.files {
        let source = fs::read_to_string(kernel.join(file))
            .with_context(|| format!("cannot read kernel/{file}"))?;
        let end = end_of_shipped_code(&source);
        let impossible = impossible_lines(&source);
        counts.retain(|&line, _| (line as usize) <= end && !impossible.contains(&line));
    }
    Ok(coverage)
}

/// Whether the lines of the file `name` of the kernel are counted.
fn is_measured(name: &str) -> bool {
    let is_in = |parts: &[&str]| parts.iter().any(|part| name.starts_with(part));
    name.starts_with("src/") && !name.ends_with(INVARIANTS) && (is_in(SHARED) || !is_in(APART))
}

/// Number of lines of `source` before its unit tests, if they stand in it: at its end.
fn end_of_shipped_code(source: &str) -> usize {
    match source.find("#[cfg(test)]\nmod tests {") {
        Some(end) => source[..end].lines().count(),
        None => usize::MAX,
    }
}

/// Numbers of the lines of `source` that say themselves why nothing executes them: those of a `never!`, and
/// of the rest of its block.
fn impossible_lines(source: &str) -> BTreeSet<u32> {
    let mut lines = BTreeSet::new();
    let mut is_in_block = false;
    for (number, line) in (1..).zip(source.lines().map(str::trim)) {
        is_in_block = line.starts_with("never!(") || is_in_block && !line.starts_with('}');
        if is_in_block || line.contains("never!(") {
            lines.insert(number);
        }
    }
    lines
}

/// Builds the tests, each build in a folder of its own: their programs have the same names.
fn build(folder: &Path) -> Result<Vec<Harness>> {
    let mut harnesses = Vec::new();
    for (name, arguments) in BUILDS {
        eprintln!("building the tests of the {name} kernel, instrumented");
        let mut cargo = toolchain::host_cargo();
        cargo.args(["test", "--no-run", "--profile", toolchain::HOST_PROFILE]);
        cargo.args(*arguments);
        cargo.args(["--message-format", "json-render-diagnostics"]);
        cargo.arg("--target-dir").arg(folder.join(name));
        cargo.env("RUSTFLAGS", "-Cinstrument-coverage");
        // What the build itself executes is instrumented too, and nobody asks for it.
        cargo.env("LLVM_PROFILE_FILE", folder.join("build.profraw"));
        let artifacts = toolchain::build(&mut cargo, "the instrumented tests")?;
        harnesses.extend(harness::of(&artifacts, name)?);
    }
    Ok(harnesses)
}

fn run(harness: &Harness, profiles: &Path) -> Result<()> {
    let mut command = Command::new(&harness.executable);
    command
        .current_dir(&harness.folder)
        .env("CARGO_MANIFEST_DIR", &harness.folder)
        // A file for each process and binary, which the runtime merges into by itself.
        .env("LLVM_PROFILE_FILE", profiles.join("%m-%p.profraw"));
    output(&mut command)
        .map(drop)
        .with_context(|| format!("a test of {} fails", harness.prefix))
}

fn export(cov: &Path, profile: &Path, harnesses: &[Harness]) -> Result<String> {
    let mut command = Command::new(cov);
    command.args(["export", "--format=lcov"]);
    command.arg(format!("--instr-profile={}", profile.display()));
    for harness in harnesses {
        command.arg("--object").arg(&harness.executable);
    }
    output(&mut command)
}

/// LLVM's tool `name`, of the wanted release: another one would say only after all tests that it cannot
/// read what they counted.
fn llvm_tool(name: &str) -> Result<PathBuf> {
    let of_release = |tool: &PathBuf| {
        let version = output(Command::new(tool).arg("--version"));
        version.is_ok_and(|version| version.contains(&format!("LLVM version {LLVM}.")))
    };
    let names = [format!("{name}-{LLVM}"), name.to_owned()];
    let mut tools = names
        .iter()
        .filter_map(|name| toolchain::find_on_path(name));
    tools.find(of_release).with_context(|| {
        format!("no {name}-{LLVM} on the search path: install Debian's `llvm-{LLVM}`")
    })
}

/// Runs `command` and returns its standard output.
///
/// # Errors
/// It cannot be run or fails; with what it said.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    let stdout = String::from_utf8_lossy(&out.stdout).into_owned();
    if !out.status.success() {
        bail!(
            "{name} failed:\n{stdout}{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    Ok(stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_says_so_itself() {
        let source = "let Some(a) = b else {\n    never!(\"c\");\n    return;\n};\nmatch a {\n    \
                      d => never!(\"e\"),\n    f => g,\n}\n";
        assert_eq!(impossible_lines(source), BTreeSet::from([2, 3, 6]));
    }
}
