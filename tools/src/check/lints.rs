//! Formatting and lints, as far as the toolchains here can judge them.

use std::process::Command;

use super::{Context, Verdict};
use crate::program;
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

/// clippy has no warning about any target of the workspace, as built for the host, nor about the
/// kernel with all that is recorded, told and shared among cores. Of the lints, `Cargo.toml` has those about
/// `unsafe`.
///
/// User programs are looked at apart from the rest: built together, they would get the libraries that they have
/// in common with host programs with `std`, next to which theirs is a second panic handler. They end where they
/// panic, so they have not the tests' profile, whose programs unwind.
pub fn workspace(_: &mut Context) -> Verdict {
    if !toolchain::host_has("clippy") {
        return Verdict::Skipped("clippy is not installed (rustup component add clippy)".into());
    }
    let metadata = match program::workspace_metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Verdict::Broken(vec![format!("{error:#}")]),
    };
    let programs = program::packages(&metadata);
    // What the tests share with programs is looked at once.
    let profile = ["--profile", toolchain::HOST_PROFILE];
    let mut host = clippy();
    host.args(profile).args(["--workspace", "--all-targets"]);
    host.args(programs.iter().flat_map(|name| ["--exclude", name]));
    let mut user = clippy();
    user.args(programs.iter().flat_map(|name| ["--package", name]));
    user.args(C_LIBRARY);
    let mut full = clippy();
    full.args(profile);
    full.args(["--package", "sandglass-kernel", "--all-targets"]);
    full.args(["--features", EVERY_FEATURE]);
    let mut findings = Vec::new();
    for mut cargo in [host, user, full] {
        cargo.args(["--", "-Dwarnings"]);
        if let Verdict::Broken(more) = verdict(&mut cargo) {
            findings.extend(more);
        }
    }
    Verdict::of(findings)
}

/// What the library for C has once it is a program.
const C_LIBRARY: [&str; 4] = [
    "--package",
    "sandglass-c",
    "--features",
    "sandglass-c/program",
];

/// All that the kernel on the host can have; that without features is among the workspace. No code is for
/// `smp` without the others.
const EVERY_FEATURE: &str = "debug,smp,trace";

fn clippy() -> Command {
    let mut cargo = toolchain::host_cargo();
    cargo.args(["clippy", "--quiet"]);
    cargo
}

/// clippy has no warning about the kernel as built for the bare machine, with and without the
/// debug calls, for one core and for several, and with all that it can have.
pub fn bare_kernel(_: &mut Context) -> Verdict {
    let toolchain = match KernelToolchain::find() {
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
        let mut cargo = toolchain.cargo("clippy");
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
    fn what_a_failing_command_says_is_the_finding() {
        let failing = verdict(Command::new("sh").args(["-c", "echo bad; exit 1"]));
        assert_eq!(failing, Verdict::Broken(vec!["bad".into()]));
        assert_eq!(verdict(&mut Command::new("true")), Verdict::Kept);
    }
}
