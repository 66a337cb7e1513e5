//! Which compilers there are, and how cargo is called with each of them.
//!
//! - The **host** toolchain builds this tool, the tests and the user programs: the `cargo` of the
//!   search path (usually rustup's), else Debian's.
//! - The **kernel** toolchain is a rustup toolchain whose bare-metal target is installed, else
//!   Debian's, which builds `core` from the sources that it ships.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use anyhow::{anyhow, bail, Context, Result};
use cargo_metadata::Message;

use crate::arch::Arch;
use crate::built::Asked;
use crate::workspace;

/// Cargo's profile of what runs on the host: this command, and the tests.
pub const HOST_PROFILE: &str = "host";

/// The release that Debian's kernel compiler must be: the bootstrap switch ties the build of
/// `core` to it.
pub const DEBIAN_RELEASE: &str = "1.96";

/// The variable that names a compiler to cargo which takes the place of the usual one for a workspace's own packages.
const WORKSPACE_WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// A toolchain that builds kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelToolchain {
    /// A rustup toolchain, by name, with the bare-metal target's `core` installed.
    Rustup(String),
    /// Debian's `rustc-web`, `cargo-web` and `rust-web-src`.
    Debian,
}

impl KernelToolchain {
    /// Finds a toolchain for the kernel of an architecture; once in a process, as rustup takes its time.
    ///
    /// # Errors
    /// None is installed, or Debian's is of another release than the kernel is meant for.
    pub fn find(arch: Arch) -> Result<Self> {
        static FOUND: [OnceLock<KernelToolchain>; Arch::ALL.len()] =
            [const { OnceLock::new() }; Arch::ALL.len()];
        let known = &FOUND[arch as usize];
        match known.get() {
            Some(found) => Ok(found.clone()),
            None => Self::look(arch).map(|found| known.get_or_init(|| found).clone()),
        }
    }

    fn look(arch: Arch) -> Result<Self> {
        let target = arch.kernel_target();
        if let Some(name) = rustup_toolchain_with_target(target) {
            return Ok(Self::Rustup(name));
        }
        Self::debian(target)
    }

    /// Debian's toolchain, for `target`: it builds `core` for any.
    ///
    /// # Errors
    /// It is not installed, or of another release than the kernel is meant for.
    fn debian(target: &str) -> Result<Self> {
        if !Path::new(DEBIAN_CARGO).exists() || !Path::new(DEBIAN_RUSTC).exists() {
            bail!(
                "no compiler for the kernel: install Debian's `rustc-web cargo-web rust-web-src \
                 lld`, or `rustup target add {target}`"
            );
        }
        let version = output(Command::new(DEBIAN_RUSTC).arg("--version"))?;
        if release(&version) != Some(DEBIAN_RELEASE) {
            bail!(
                "{DEBIAN_RUSTC} is `{}`, but the kernel is built with release {DEBIAN_RELEASE}: \
                 install Debian's `rustc-web`, or `rustup target add {target}`",
                version.trim()
            );
        }
        Ok(Self::Debian)
    }

    /// A `cargo SUBCOMMAND` for the bare-metal target, `core` included.
    pub fn cargo(&self, subcommand: &str, arch: Arch) -> Command {
        self.cargo_for(subcommand, arch.kernel_target(), "core,compiler_builtins")
    }

    /// A `cargo` in `folder` for bare-metal programs that use `alloc`, by Debian's toolchain, which builds that, too.
    ///
    /// # Errors
    /// It is not installed, or of another release than the kernel is meant for.
    pub fn user_cargo_in(folder: &Path, subcommand: &str, target: &str) -> Result<Command> {
        let mut cargo = Self::user_cargo(subcommand, target)?;
        cargo.current_dir(folder);
        Ok(cargo)
    }

    /// As [`Self::user_cargo_in`], in the repository's root.
    ///
    /// # Errors
    /// The same.
    pub fn user_cargo(subcommand: &str, target: &str) -> Result<Command> {
        let libraries = "core,alloc,compiler_builtins";
        Ok(Self::debian(target)?.cargo_for(subcommand, target, libraries))
    }

    fn cargo_for(&self, subcommand: &str, target: &str, libraries: &str) -> Command {
        let mut cargo = match self {
            Self::Rustup(name) => {
                let mut cargo = Command::new("rustup");
                cargo.args(["run", name, "cargo", subcommand]);
                cargo
            }
            Self::Debian => {
                let mut cargo = Command::new(DEBIAN_CARGO);
                cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
                cargo.args([
                    subcommand,
                    &format!("-Zbuild-std={libraries}"),
                    "-Zbuild-std-features=compiler-builtins-mem",
                ]);
                cargo
            }
        };
        forget_outer_cargo(&mut cargo);
        cargo
            .args(["--target", target])
            .current_dir(workspace::root());
        cargo
    }

    /// Whether it can lint.
    pub fn has_clippy(&self) -> bool {
        match self {
            Self::Rustup(name) => {
                output(Command::new("rustup").args(["run", name, "cargo", "clippy", "--version"]))
                    .is_ok()
            }
            Self::Debian => false,
        }
    }
}

/// A `cargo` of the host toolchain, in the repository's root.
pub fn host_cargo() -> Command {
    let mut cargo = host_cargo_in(&workspace::root());
    cargo.env("CARGO_TARGET_DIR", workspace::target_dir());
    cargo
}

/// As [`host_cargo`], to build what runs on the host with [`HOST_PROFILE`]: what belongs to the workspace is looked at by
/// clippy as it is compiled, if there is one. That is free, where a look of its own costs as much as the compilers' front
/// ends. The script builds this command so, too, or it would be built twice.
pub fn linted_cargo() -> Command {
    let mut cargo = host_cargo();
    if let Some(clippy) = clippy_driver() {
        cargo.env(WORKSPACE_WRAPPER, clippy);
    }
    cargo
}

/// The host toolchain's compiler that lints, beside its compiler.
pub fn clippy_driver() -> Option<&'static Path> {
    static DRIVER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let cargo = host_cargo_path().unwrap_or_else(|| PathBuf::from(DEBIAN_CARGO));
        let mut rustc = Command::new(cargo.with_file_name("rustc"));
        rustc
            .args(["--print", "sysroot"])
            .current_dir(workspace::root());
        let sysroot = output(&mut rustc).ok()?;
        let driver = Path::new(sysroot.trim_end()).join("bin/clippy-driver");
        driver.is_file().then_some(driver)
    };
    DRIVER.get_or_init(find).as_deref()
}

/// A `cargo` of the host toolchain, in `folder`: the folder's configuration and choice of a toolchain hold.
pub fn host_cargo_in(folder: &Path) -> Command {
    let mut cargo = match host_cargo_path() {
        Some(path) => Command::new(path),
        None => Command::new(DEBIAN_CARGO),
    };
    forget_outer_cargo(&mut cargo);
    if cargo.get_program() == DEBIAN_CARGO {
        cargo.env("RUSTC", DEBIAN_RUSTC);
    }
    cargo.current_dir(folder);
    cargo
}

/// As [`build_now`], for a command that writes messages about what it makes; unless that was [built
/// before](crate::built), and is still there.
///
/// # Errors
/// It does not build, or its messages cannot be read.
pub fn build(cargo: &mut Command, what: &str) -> Result<Vec<u8>> {
    let asked = Asked::of(cargo);
    if let Some(artifacts) = asked.as_ref().and_then(Asked::recall) {
        return Ok(artifacts.into_bytes());
    }
    let artifacts = build_now(cargo, what)?;
    if let (Some(asked), Ok(text)) = (asked, str::from_utf8(&artifacts)) {
        asked.remember(text, &made(&artifacts)?);
    }
    Ok(artifacts)
}

/// The files that cargo's messages are about.
fn made(artifacts: &[u8]) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for message in Message::parse_stream(artifacts) {
        if let Message::CompilerArtifact(artifact) =
            message.context("cannot read cargo's output")?
        {
            made.extend(artifact.filenames.into_iter().map(PathBuf::from));
        }
    }
    Ok(made)
}

/// Runs a cargo command that builds `what`, and returns its standard output. Cargo's progress is
/// shown as it comes, what compilers say at the end: on standard error, or in the error.
///
/// # Errors
/// It does not build.
pub fn build_now(cargo: &mut Command, what: &str) -> Result<Vec<u8>> {
    cargo.args(["--color", "never"]);
    cargo
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = cargo
        .spawn()
        .with_context(|| format!("cannot run {}", cargo.get_program().to_string_lossy()))?;
    let mut stdout = child
        .stdout
        .take()
        .context("cargo has no standard output")?;
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).map(|_| bytes)
    });
    let mut messages = String::new();
    let stderr = child.stderr.take().context("cargo has no standard error")?;
    for line in BufReader::new(stderr).lines() {
        let line = line.context("cannot read cargo's messages")?;
        if is_progress(&line) {
            eprintln!("{line}");
        } else {
            messages.push_str(&line);
            messages.push('\n');
        }
    }
    let status = child.wait().context("cannot wait for cargo")?;
    if !status.success() {
        bail!("{what} does not build:\n{}", messages.trim_end());
    }
    eprint!("{messages}");
    let output = reader
        .join()
        .map_err(|_| anyhow!("the reader of cargo's output panicked"))?;
    output.context("cannot read cargo's output")
}

/// Whether cargo reports a step of its own. It indents those lines.
fn is_progress(line: &str) -> bool {
    let verb = line.trim_start().split(' ').next().unwrap_or_default();
    line.starts_with(' ')
        && matches!(
            verb,
            "Compiling"
                | "Downloading"
                | "Downloaded"
                | "Blocking"
                | "Updating"
                | "Locking"
                | "Finished"
        )
}

/// Whether the host toolchain has the cargo subcommand `name` (`fmt`, `clippy`).
pub fn host_has(name: &str) -> bool {
    host_cargo()
        .args([name, "--version"])
        .output()
        .is_ok_and(|out| out.status.success())
}

/// `ld.lld`, if it is on the search path.
pub fn lld() -> Option<PathBuf> {
    find_on_path("ld.lld")
}

/// The program `name` on the search path.
pub fn find_on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

fn host_cargo_path() -> Option<PathBuf> {
    let rustup_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let rustup = rustup_home
        .map(|home| home.join("bin/cargo"))
        .filter(|path| path.is_file());
    rustup.or_else(|| find_on_path("cargo"))
}

/// Removes what a cargo that runs us has set for its own children, so that another toolchain's
/// cargo starts afresh.
fn forget_outer_cargo(cargo: &mut Command) {
    for name in [
        "RUSTC",
        "RUSTDOC",
        "RUSTC_BOOTSTRAP",
        "RUSTUP_TOOLCHAIN",
        "RUSTFLAGS",
        "CARGO",
        WORKSPACE_WRAPPER,
    ] {
        if !cargo.get_envs().any(|(key, _)| key == name) {
            cargo.env_remove(name);
        }
    }
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS");
}

/// The first rustup toolchain, the active one before the others, that has `target` installed.
fn rustup_toolchain_with_target(target: &str) -> Option<String> {
    let list = output(Command::new("rustup").args(["toolchain", "list"])).ok()?;
    let (mut names, others): (Vec<&str>, Vec<&str>) = list
        .lines()
        .partition(|line| line.contains("(active") || line.contains(", active"));
    names.extend(others);
    names
        .into_iter()
        .filter_map(|line| line.split_whitespace().next())
        .find(|name| {
            output(Command::new("rustup").args([
                "target",
                "list",
                "--installed",
                "--toolchain",
                name,
            ]))
            .is_ok_and(|targets| targets.lines().any(|line| line == target))
        })
        .map(str::to_owned)
}

/// Major and minor number of `rustc 1.96.0 (...)`.
fn release(version: &str) -> Option<&str> {
    let number = version.split_whitespace().nth(1)?;
    let (minor_end, _) = number.match_indices('.').nth(1)?;
    Some(&number[..minor_end])
}

/// What `command` writes, in the repository's root.
///
/// # Errors
/// It cannot be run, or fails.
pub fn output(command: &mut Command) -> Result<String> {
    command.current_dir(workspace::root());
    let asked = Asked::of(command);
    if let Some(known) = asked.as_ref().and_then(Asked::recall) {
        return Ok(known);
    }
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !out.status.success() {
        bail!(
            "{name} failed: {}",
            String::from_utf8_lossy(&out.stderr).trim()
        );
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if let Some(asked) = asked {
        asked.remember(&text, &[]);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn the_release_is_major_and_minor() {
        assert_eq!(release("rustc 1.96.0 (ac68faa20 2026-05-25)"), Some("1.96"));
        assert_eq!(release("rustc 1.9.0"), Some("1.9"));
        assert_eq!(release("rustc"), None);
    }
}
