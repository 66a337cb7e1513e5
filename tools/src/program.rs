//! The packages of the workspace, and the building of user programs (root tasks, components).

use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{bail, Context, Result};
use cargo_metadata::{Dependency, DependencyKind, Message, Metadata, MetadataCommand, Package};

use crate::toolchain;
use crate::workspace;

/// User programs have the host's ABI, with SSE, but no operating system below them: their build
/// scripts see to how they are linked.
pub const USER_TARGET: &str = "x86_64-unknown-linux-gnu";

/// For cargo's `--config`.
const FRAME_POINTERS: &str =
    "target.x86_64-unknown-linux-gnu.rustflags=[\"-Cforce-frame-pointers=yes\"]";

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
    command
        .cargo_path(cargo.get_program())
        .current_dir(workspace::root())
        .no_deps();
    command
        .exec()
        .context("cannot read the workspace's manifests")
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

/// The packages that are user programs: their build scripts have them linked as such.
pub fn packages(metadata: &Metadata) -> Vec<&str> {
    metadata
        .packages
        .iter()
        .filter(|package| {
            let linked = |dependency: &Dependency| {
                dependency.kind == DependencyKind::Build && dependency.name == LINKING_PACKAGE
            };
            package.dependencies.iter().any(linked)
        })
        .map(|package| package.name.as_str())
        .collect()
}

/// Builds the user program of `package` and returns its ELF file.
///
/// # Errors
/// It does not build, with the compiler's messages; or the package has no binary of its name.
pub fn build(package: &str) -> Result<PathBuf> {
    let mut paths = build_all(&[package])?;
    paths.pop().context("one program was asked for")
}

/// Builds the user programs of `packages` at once and returns their ELF files in that order.
///
/// # Errors
/// As [`build`].
pub fn build_all(packages: &[&str]) -> Result<Vec<PathBuf>> {
    build_with(packages, &[])
}

/// As [`build_all`], so that whoever sees a thread's registers and stack can tell which functions it is in: they keep frame
/// pointers.
///
/// # Errors
/// As [`build`].
pub fn build_for_backtraces(packages: &[&str]) -> Result<Vec<PathBuf>> {
    build_with(packages, &["--config", FRAME_POINTERS])
}

fn build_with(packages: &[&str], arguments: &[&str]) -> Result<Vec<PathBuf>> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    if toolchain::lld().is_none() {
        bail!("`ld.lld` is not installed: on Debian, `apt-get install lld`");
    }
    let mut cargo = toolchain::host_cargo();
    cargo.args(["build", "--release", "--target", USER_TARGET]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    cargo.args(arguments);
    cargo
        .arg("--target-dir")
        .arg(workspace::target_dir().join("user"));
    for package in packages {
        cargo.args(["--package", package]);
    }
    let what = packages.join(", ");
    eprintln!("building {what}");
    let artifacts = toolchain::build(&mut cargo, &what)?;
    let mut executables = Vec::new();
    for message in Message::parse_stream(artifacts.as_slice()) {
        if let Message::CompilerArtifact(artifact) =
            message.context("cannot read cargo's output")?
        {
            executables.extend(artifact.executable.map(|path| (artifact.target.name, path)));
        }
    }
    packages
        .iter()
        .map(|&package| {
            executables
                .iter()
                .find(|(name, _)| name == package)
                .map(|(_, path)| path.clone().into_std_path_buf())
                .with_context(|| format!("package `{package}` has no binary of its name"))
        })
        .collect()
}
