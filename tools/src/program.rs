//! The packages of the repository's workspace, and the building of user programs (root tasks, components).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{bail, ensure, Context, Result};
use cargo_metadata::{Dependency, DependencyKind, Message, Metadata, MetadataCommand, Package};
use sandglass_abi::profile::Profile as AbiProfile;

use crate::arch::Arch;
use crate::profile;
use crate::stripped;
use crate::toolchain;
use crate::workspace;

/// User programs have the host's ABI, with SSE, but no operating system below them: their build
/// scripts see to how they are linked.
pub const USER_TARGET: &str = "x86_64-unknown-linux-gnu";

/// Where cargo builds user programs, in its target directory: apart from what else is built, because
/// its settings differ.
pub const TARGET_FOLDER: &str = "user";

/// The folder of ready-made components.
const READY_MADE: &str = "systems/components";

/// Arguments for cargo: programs keep frame pointers, so that whoever sees a thread's registers and stack can tell which
/// functions it is in. All do, so that they share their libraries.
pub const FRAME_POINTERS: [&str; 2] = [
    "--config",
    "target.x86_64-unknown-linux-gnu.rustflags=[\"-Cforce-frame-pointers=yes\"]",
];

/// Where cargo looks for it.
pub const AARCH64_RUSTFLAGS_VARIABLE: &str = "CARGO_TARGET_AARCH64_UNKNOWN_NONE_RUSTFLAGS";
/// Code generation of programs for aarch64.
pub const AARCH64_RUSTFLAGS: &str =
    "-Crelocation-model=static -Clinker=ld.lld -Cforce-frame-pointers=yes";

/// The library that all are built on, whose features choose a profile of the ABI.
const RUNTIME: &str = "sandglass-user";

/// The package whose functions their build scripts call.
const LINKING_PACKAGE: &str = "sandglass-build";

/// The workspace's packages, without their dependencies; asked of cargo once.
///
/// # Errors
/// A manifest is wrong; the message is cargo's.
pub fn workspace_metadata() -> Result<Metadata> {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    let metadata = match METADATA.get() {
        Some(metadata) => metadata,
        None => {
            let metadata = read_metadata()?;
            METADATA.get_or_init(|| metadata)
        }
    };
    Ok(metadata.clone())
}

fn read_metadata() -> Result<Metadata> {
    let cargo = toolchain::host_cargo();
    let mut command = MetadataCommand::new();
    command.cargo_path(cargo.get_program()).no_deps();
    let written = toolchain::output(&mut command.cargo_command())
        .context("cannot read the workspace's manifests")?;
    MetadataCommand::parse(written).context("cannot read the workspace's manifests")
}

/// The packages that are ready-made components.
pub fn ready_made(metadata: &Metadata) -> Vec<&str> {
    let folder = workspace::root().join(READY_MADE);
    let is_ready_made = |name: &&str| {
        let package = metadata.packages.iter().find(|p| p.name.as_str() == *name);
        package.is_some_and(|package| package.manifest_path.as_std_path().starts_with(&folder))
    };
    packages(metadata)
        .into_iter()
        .filter(is_ready_made)
        .collect()
}

/// The package whose manifest stands in `folder` of the repository.
///
/// # Errors
/// There is none.
pub fn package_in<'m>(metadata: &'m Metadata, folder: &str) -> Result<&'m Package> {
    let manifest = workspace::root().join(folder).join("Cargo.toml");
    metadata
        .packages
        .iter()
        .find(|package| package.manifest_path.as_std_path() == manifest)
        .with_context(|| format!("`{folder}` is not a package of the workspace"))
}

/// Whether the binaries of a package are user programs: its build script has them linked as such.
pub fn is_program(package: &Package) -> bool {
    let linked = |dependency: &Dependency| {
        dependency.kind == DependencyKind::Build && dependency.name == LINKING_PACKAGE
    };
    package.dependencies.iter().any(linked)
}

/// The packages that are user programs.
pub fn packages(metadata: &Metadata) -> Vec<&str> {
    metadata
        .packages
        .iter()
        .filter(|package| is_program(package))
        .map(|package| package.name.as_str())
        .collect()
}

/// How user programs are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// As they run.
    Release,
    /// Line by line as they are written, on an optimised runtime: to look into them.
    Unoptimised,
}

impl Profile {
    /// What it changes of the release profile, for cargo.
    pub fn arguments(self) -> Vec<String> {
        let changes: &[&str] = match self {
            Self::Release => &[],
            Self::Unoptimised => &[
                "opt-level=0",
                "debug=\"full\"",
                "lto=\"off\"",
                "codegen-units=16",
                "package.sandglass-user.opt-level=3",
            ],
        };
        let changes = changes.iter();
        changes
            .flat_map(|change| ["--config".to_owned(), format!("profile.release.{change}")])
            .collect()
    }
}

/// Builds the user program of `package` and returns its ELF file, without debugging information.
///
/// # Errors
/// It does not build, with the compiler's messages; or the package has no binary of its name.
pub fn build(package: &str) -> Result<PathBuf> {
    let mut paths = build_all(&[package])?;
    paths.pop().context("one program was asked for")
}

/// Builds the user programs of `packages` at once and returns their ELF files in that order, without debugging
/// information. As of [`read_all`], a process has one program of a package.
///
/// # Errors
/// As [`build`].
pub fn build_all(packages: &[&str]) -> Result<Vec<PathBuf>> {
    static STRIPPED: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut stripped = STRIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_there = |package: &&&str| {
        stripped
            .get(**package)
            .is_some_and(|path: &PathBuf| path.exists())
    };
    let missing: Vec<&str> = packages
        .iter()
        .filter(|it| !is_there(it))
        .copied()
        .collect();
    for (&package, program) in
        missing
            .iter()
            .zip(read_all(Arch::X86_64, &missing, Profile::Release)?)
    {
        let path = stripped_path(package);
        stripped::write_bytes(&program.bytes, &path)?;
        stripped.insert(package.to_owned(), path);
    }
    let paths = packages.iter().map(|&package| stripped[package].clone());
    Ok(paths.collect())
}

/// Where the program of a package is without debugging information.
fn stripped_path(package: &str) -> PathBuf {
    target_dir().join("stripped").join(package)
}

/// Builds the user program of `package` for an architecture and returns its ELF file.
///
/// # Errors
/// As [`build`].
pub fn build_for(arch: Arch, package: &str) -> Result<PathBuf> {
    match arch {
        Arch::X86_64 => build(package),
        Arch::Aarch64 => build_aarch64(package),
    }
}

/// The same for a profile of the ABI: its numbers are built into the program.
///
/// # Errors
/// As [`build`]; or it is not the base profile, and embeds programs, or is for another architecture than x86_64.
pub fn build_of_profile(arch: Arch, package: &str, profile: &AbiProfile) -> Result<PathBuf> {
    let Some(feature) = profile::feature(profile) else {
        return build_for(arch, package);
    };
    ensure!(
        arch == Arch::X86_64 && embedded(&[package])?.is_empty(),
        "`{package}` is built for the base profile only: it embeds other programs, or is for another architecture"
    );
    let target_dir = target_dir();
    let _lock = workspace::lock(&target_dir)?;
    let features = ["--features".to_owned(), format!("{RUNTIME}/{feature}")];
    let packages = [package];
    let selection = selection(&packages, Profile::Release).chain(features);
    let mut built = compile(toolchain::linted_cargo(), selection, &target_dir, &packages)?;
    let whole = built.pop().context("one program was asked for")?;
    let path = stripped_path(&format!("{package}-{feature}"));
    stripped::write(&whole, &path)?;
    Ok(path)
}

/// The user program of `package` for aarch64, built anew or as it was.
fn build_aarch64(package: &str) -> Result<PathBuf> {
    let mut programs = read_all(Arch::Aarch64, &[package], Profile::Release)?;
    let program = programs.pop().context("one program was asked for")?;
    let path = target_dir()
        .join("stripped")
        .join(sandglass_build::AARCH64_TARGET)
        .join(package);
    stripped::write_as_it_is(&stripped::bytes(Arch::Aarch64, &program.bytes)?, &path)?;
    Ok(path)
}

/// Builds user programs for aarch64, and returns their ELF files, with debugging information. What they embed, their build
/// scripts build.
fn compile_aarch64(packages: &[&str], profile: Profile) -> Result<Vec<PathBuf>> {
    let selection = profile.arguments().into_iter();
    let packages_wanted = packages.iter().flat_map(|package| ["--package", package]);
    let selection = selection.chain(packages_wanted.map(str::to_owned));
    compile_aarch64_in(&workspace::root(), selection, &target_dir(), packages)
}

/// Has cargo, in `folder`, with further arguments that select them, build user programs for aarch64 below `target_dir`;
/// returns the ELF files of the names `binaries` in that order.
///
/// # Errors
/// As [`compile`]; or the toolchain is missing.
pub fn compile_aarch64_in(
    folder: &Path,
    selection: impl Iterator<Item = String>,
    target_dir: &Path,
    binaries: &[&str],
) -> Result<Vec<PathBuf>> {
    let target = sandglass_build::AARCH64_TARGET;
    let mut cargo = toolchain::KernelToolchain::user_cargo_in(folder, "build", target)?;
    cargo.env(AARCH64_RUSTFLAGS_VARIABLE, AARCH64_RUSTFLAGS);
    cargo.arg("--release").args(selection);
    cargo.arg("--target-dir").arg(target_dir);
    let names = binaries.join(", ");
    executables(cargo, &format!("{names} for aarch64"), binaries)
}

/// The user programs that `packages` embed.
fn embedded(packages: &[&str]) -> Result<Vec<String>> {
    let metadata = workspace_metadata()?;
    let wanted = metadata.packages.iter();
    let wanted = wanted.filter(|package| packages.contains(&package.name.as_str()));
    let embedded = wanted.filter_map(|package| package.metadata["sandglass"]["embeds"].as_array());
    let names = embedded.flatten().map(|name| {
        let name = name.as_str();
        name.map(str::to_owned)
            .context("`embeds` in [package.metadata.sandglass] names packages")
    });
    names.collect()
}

/// A program that was built.
#[derive(Debug, Clone)]
pub struct Elf {
    /// Its file, which another command may build anew.
    pub path: PathBuf,
    /// What the file held when it had been built, with debugging information.
    pub bytes: Vec<u8>,
}

/// Builds the user programs of `packages` for `arch` and returns them in that order, with debugging information: those that
/// were built just now, whoever else builds. A process has one program of an architecture,
/// package and profile, built when it is first asked for.
///
/// # Errors
/// As [`build`].
pub fn read_all(arch: Arch, packages: &[&str], profile: Profile) -> Result<Vec<Elf>> {
    static BUILT: Mutex<BTreeMap<(Arch, String, Profile), Elf>> = Mutex::new(BTreeMap::new());
    // Whoever else wants programs waits: that would want the lock of the target directory, too.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |built: &BTreeMap<_, Elf>| -> Option<Vec<Elf>> {
        let of = |package: &&str| built.get(&(arch, (*package).to_owned(), profile)).cloned();
        packages.iter().map(of).collect()
    };
    if let Some(programs) = known(&built) {
        return Ok(programs);
    }
    // All, not those that are missing alone, for which cargo might choose other features of what they have in common.
    let programs = read_now(arch, packages, profile)?;
    let names = packages.iter().map(|package| (*package).to_owned());
    built.extend(
        names
            .map(|name| (arch, name, profile))
            .zip(programs.iter().cloned()),
    );
    Ok(programs)
}

fn read_now(arch: Arch, packages: &[&str], profile: Profile) -> Result<Vec<Elf>> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = workspace::lock(&target_dir())?;
    if arch == Arch::Aarch64 {
        return read(compile_aarch64(packages, profile)?);
    }
    let selection = selection(packages, profile);
    let cargo = cargo_for(packages)?;
    read(compile(cargo, selection, &target_dir(), packages)?)
}

/// A command that builds the user programs of `packages` as they run: clippy looks at what belongs to the workspace on the
/// way, as when programs are built to run.
///
/// # Errors
/// What they embed does not build.
pub fn command(packages: &[&str]) -> Result<Command> {
    let _lock = workspace::lock(&target_dir())?;
    let mut cargo = cargo_for(packages)?;
    let selection = selection(packages, Profile::Release);
    complete(&mut cargo, selection, &target_dir());
    Ok(cargo)
}

/// Where cargo builds user programs.
fn target_dir() -> PathBuf {
    workspace::target_dir().join(TARGET_FOLDER)
}

/// A `cargo` for `packages` that knows the programs that they embed. These are built before: otherwise build scripts would
/// build all that they are made of once more.
fn cargo_for(packages: &[&str]) -> Result<Command> {
    let mut cargo = toolchain::linted_cargo();
    let embedded = embedded(packages)?;
    let embedded: Vec<&str> = embedded.iter().map(String::as_str).collect();
    let selection = selection(&embedded, Profile::Release);
    let built = compile(
        toolchain::linted_cargo(),
        selection,
        &target_dir(),
        &embedded,
    )?;
    for (package, whole) in embedded.iter().zip(built) {
        let path = stripped_path(package);
        stripped::write(&whole, &path)?;
        cargo.env(sandglass_build::embedded_variable(package), path);
    }
    Ok(cargo)
}

/// Arguments that select programs.
fn selection<'a>(packages: &'a [&str], profile: Profile) -> impl Iterator<Item = String> + 'a {
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    let arguments = packages.chain(FRAME_POINTERS).map(str::to_owned);
    arguments.chain(profile.arguments())
}

/// The programs in files.
///
/// # Errors
/// One cannot be read.
pub fn read(paths: Vec<PathBuf>) -> Result<Vec<Elf>> {
    let programs = paths.into_iter().map(|path| {
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Elf { path, bytes })
    });
    programs.collect()
}

/// Has `cargo`, with further arguments that select them, build user programs below `target_dir`.
fn complete(cargo: &mut Command, selection: impl Iterator<Item = String>, target_dir: &Path) {
    cargo.args(["build", "--release", "--target", USER_TARGET]);
    cargo.args(selection);
    cargo.arg("--target-dir").arg(target_dir);
}

/// Has `cargo`, with further arguments that select them, build user programs below `target_dir`;
/// returns the ELF files of the names `binaries` in that order.
///
/// # Errors
/// They do not build, with the compiler's messages; or there is no such binary among them.
pub fn compile(
    mut cargo: Command,
    selection: impl Iterator<Item = String>,
    target_dir: &Path,
    binaries: &[&str],
) -> Result<Vec<PathBuf>> {
    if binaries.is_empty() {
        return Ok(Vec::new());
    }
    if toolchain::lld().is_none() {
        bail!("`ld.lld` is not installed: on Debian, `apt-get install lld`");
    }
    complete(&mut cargo, selection, target_dir);
    executables(cargo, &binaries.join(", "), binaries)
}

/// Has `cargo` build `what`; returns the ELF files of the names `binaries` in that order.
fn executables(mut cargo: Command, what: &str, binaries: &[&str]) -> Result<Vec<PathBuf>> {
    cargo.args(["--message-format", "json-render-diagnostics"]);
    eprintln!("building {what}");
    let artifacts = toolchain::build(&mut cargo, what)?;
    let mut executables = Vec::new();
    for message in Message::parse_stream(artifacts.as_slice()) {
        if let Message::CompilerArtifact(artifact) =
            message.context("cannot read cargo's output")?
        {
            executables.extend(artifact.executable.map(|path| (artifact.target.name, path)));
        }
    }
    binaries
        .iter()
        .map(|&binary| {
            executables
                .iter()
                .find(|(name, _)| name == binary)
                .map(|(_, path)| path.clone().into_std_path_buf())
                .with_context(|| format!("package `{binary}` has no binary of its name"))
        })
        .collect()
}
