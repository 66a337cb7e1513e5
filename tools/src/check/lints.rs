//! Formatting and lints, as far as the toolchains here can judge them.

use std::process::Command;

use anyhow::{bail, Context as _};
use cargo_metadata::{Message, Metadata};

use super::{Context, Verdict};
use crate::arch::Arch;
use crate::c_program;
use crate::program;
use crate::test;
use crate::toolchain::{self, KernelToolchain};
use crate::workspace;

/// rustfmt has nothing to change.
pub fn formatting(_: &mut Context) -> Verdict {
    if !toolchain::host_has("fmt") {
        return Verdict::Skipped("rustfmt is not installed (rustup component add rustfmt)".into());
    }
    match verdict(toolchain::host_cargo().args(["fmt", "--all", "--check", "--", "-l"])) {
        Verdict::Broken(said) => Verdict::Broken(vec![format!(
            "`cargo fmt --all` would change:\n{}",
            said.join("\n")
        )]),
        kept => kept,
    }
}

/// clippy has no warning about any target of the workspace. Of the lints, `Cargo.toml` has those about `unsafe`.
///
/// It looks at what runs on the host, in each configuration, when the tests are built; and at user programs, and their
/// library for C, when these are built to run, each once: what they say then, cargo says again here. What neither builds is
/// looked at alone, like a library that an emulator loads.
pub fn workspace(_: &mut Context) -> Verdict {
    if !toolchain::host_has("clippy") || toolchain::clippy_driver().is_none() {
        return Verdict::Skipped("clippy is not installed (rustup component add clippy)".into());
    }
    let metadata = match program::workspace_metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Verdict::Broken(vec![format!("{error:#}")]),
    };
    let mut findings = Vec::new();
    let programs = match program::command(&program::packages(&metadata)) {
        Ok(programs) => programs,
        Err(error) => return Verdict::Broken(vec![format!("{error:#}")]),
    };
    for mut cargo in test::builds().chain([programs, c_program::library_command()]) {
        match diagnostics(&mut cargo) {
            Ok(said) => findings.extend(said),
            Err(error) => findings.push(format!("{error:#}")),
        }
    }
    let mut rest = clippy(&untested(&metadata));
    if let Verdict::Broken(more) = verdict(rest.args(["--", "-Dwarnings"])) {
        findings.extend(more);
    }
    findings.sort_unstable();
    findings.dedup();
    Verdict::of(findings)
}

/// clippy for some packages.
fn clippy(packages: &[&str]) -> Command {
    let mut cargo = toolchain::host_cargo();
    cargo.args(["clippy", "--quiet", "--profile", toolchain::HOST_PROFILE]);
    cargo.args(packages.iter().flat_map(|name| ["--package", name]));
    cargo
}

/// Packages that building the tests does not build: those without tests that no other package needs. User programs apart.
fn untested(metadata: &Metadata) -> Vec<&str> {
    let programs = program::packages(metadata);
    let is_needed = |name: &str| {
        let mut all = metadata
            .packages
            .iter()
            .flat_map(|other| &other.dependencies);
        all.any(|dependency| dependency.name == name)
    };
    let packages = metadata.packages.iter().filter(|package| {
        let name = package.name.as_str();
        let is_tested = package.targets.iter().any(|target| target.test);
        !is_tested && !programs.contains(&name) && !is_needed(name)
    });
    packages.map(|package| package.name.as_str()).collect()
}

/// What compilers say about the workspace's packages while `cargo` builds them; or said when it did.
fn diagnostics(cargo: &mut Command) -> anyhow::Result<Vec<String>> {
    cargo.args(["--quiet", "--message-format", "json"]);
    let out = cargo.output().context("cannot run cargo")?;
    let mut said = Vec::new();
    for message in Message::parse_stream(out.stdout.as_slice()) {
        if let Message::CompilerMessage(message) = message.context("cannot read cargo's output")? {
            said.extend(message.message.rendered);
        }
    }
    if !out.status.success() && said.is_empty() {
        bail!("{}", String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(said)
}

/// clippy has no warning about the kernel as built for the bare machine, with and without the
/// debug calls, for one core and for several, and with all that it can have.
pub fn bare_kernel(_: &mut Context) -> Verdict {
    let toolchain = match KernelToolchain::find(Arch::X86_64) {
        Ok(toolchain) => toolchain,
        Err(error) => return Verdict::Broken(vec![format!("{error:#}")]),
    };
    if !toolchain.has_clippy() {
        return Verdict::Skipped(
            "the kernel's toolchain has no clippy (rustup target add x86_64-unknown-none)".into(),
        );
    }
    let mut findings = Vec::new();
    for features in ["", "debug", "smp", "debug,smp,trace"] {
        let mut cargo = toolchain.cargo("clippy", Arch::X86_64);
        cargo.args([
            "--package",
            "sandglass-kernel",
            "--quiet",
            "--features",
            features,
        ]);
        cargo
            .arg("--target-dir")
            .arg(workspace::target_dir().join("kernel"));
        cargo.args(["--", "-Dwarnings"]);
        if let Verdict::Broken(more) = verdict(&mut cargo) {
            findings.extend(more);
        }
    }
    Verdict::of(findings)
}

/// Kept if `command` succeeds; otherwise what it said.
fn verdict(command: &mut Command) -> Verdict {
    match command.output() {
        Ok(out) if out.status.success() => Verdict::Kept,
        Ok(out) => {
            let said = [out.stdout, out.stderr].concat();
            Verdict::Broken(vec![String::from_utf8_lossy(&said).trim().to_owned()])
        }
        Err(error) => Verdict::Broken(vec![format!("cannot run cargo: {error}")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_test_builds_is_looked_at_too() {
        let metadata = program::workspace_metadata().unwrap();
        assert_eq!(
            untested(&metadata),
            ["sandglass-plugin", "reference-loader"]
        );
    }

    #[test]
    fn a_build_that_fails_without_diagnostics_is_an_error() {
        let said = diagnostics(Command::new("sh").args(["-c", "echo no lock >&2; exit 101"]));
        assert!(said.unwrap_err().to_string().contains("no lock"));
        assert!(diagnostics(&mut Command::new("true")).unwrap().is_empty());
    }

    #[test]
    fn what_a_failing_command_says_is_the_finding() {
        let failing = verdict(Command::new("sh").args(["-c", "echo bad; exit 1"]));
        assert_eq!(failing, Verdict::Broken(vec!["bad".into()]));
        assert_eq!(verdict(&mut Command::new("true")), Verdict::Kept);
    }
}
