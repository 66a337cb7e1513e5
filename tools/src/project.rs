//! A user's cargo workspace, outside of the repository: its user programs, which descriptions name as
//! they name the repository's.
//!
//! They are built with the repository's release profile: the project's own overrides it, except that
//! nothing unwinds, because there is nothing below that could. So a project need not know of profiles.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand, Package};
use sandglass_build::AARCH64_TARGET;
use toml::Table;

use crate::arch::Arch;
use crate::program::{self, Elf, Profile};
use crate::toolchain;
use crate::workspace;

/// The runtime's package.
const RUNTIME: &str = "sandglass-user";

/// The file that says whose programs are in a target directory: the root of a project.
const OWNER: &str = "sandglass.project";

/// The profile of build scripts and macros.
const HELPERS: &str = "build-override";

/// A project.
pub struct Project {
    metadata: Metadata,
}

/// A user program of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// The workspace's root.
    root: PathBuf,
    package: String,
    binary: String,
}

impl Program {
    /// As descriptions call it.
    pub fn name(&self) -> &str {
        &self.binary
    }
}

impl Project {
    /// The cargo workspace that `folder` is in, if any, unless it is the repository's.
    ///
    /// # Errors
    /// A manifest is wrong, with cargo's message.
    pub fn around(folder: &Path) -> Result<Option<Self>> {
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot find the folder `{}`", folder.display()))?;
        let mut manifests = folder.ancestors().map(|folder| folder.join("Cargo.toml"));
        let Some(manifest) = manifests.find(|manifest| manifest.is_file()) else {
            return Ok(None);
        };
        if is_repositorys(&manifest)? {
            return Ok(None);
        }
        let project = Self::of(&manifest)?;
        let repository = workspace::root();
        let is_repository = repository
            .canonicalize()
            .is_ok_and(|repository| project.root() == repository);
        Ok((!is_repository).then_some(project))
    }

    /// The workspace of a manifest.
    fn of(manifest: &Path) -> Result<Self> {
        let folder = manifest.parent().context("a manifest is in a folder")?;
        let cargo = toolchain::host_cargo_in(folder);
        let mut command = MetadataCommand::new();
        command
            .cargo_path(cargo.get_program())
            .manifest_path(manifest)
            .current_dir(folder)
            .no_deps();
        let metadata = command
            .exec()
            .with_context(|| format!("cannot read the project of `{}`", manifest.display()))?;
        Ok(Self { metadata })
    }

    fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// Where cargo builds the project's user programs.
    fn target_dir(&self) -> PathBuf {
        let folder = self.metadata.target_directory.as_std_path();
        folder.join(program::TARGET_FOLDER)
    }

    /// Makes the target directory `folder`, which we have locked, this project's. Projects may share one
    /// (`CARGO_TARGET_DIR`), but cargo tells packages of different projects apart by their places in them:
    /// it would take another's for ours. What they depend on is shared.
    ///
    /// # Errors
    /// The folder cannot be written, or cargo cannot clean it.
    fn take(&self, folder: &Path) -> Result<()> {
        let path = folder.join(OWNER);
        let root = self.root().as_os_str().as_encoded_bytes();
        // A file that is not there is nobody's.
        if fs::read(&path).is_ok_and(|owner| owner == root) {
            return Ok(());
        }
        let mut cargo = toolchain::host_cargo_in(self.root());
        cargo.args(["clean", "--quiet", "--release"]);
        for target in [program::USER_TARGET, AARCH64_TARGET] {
            cargo.args(["--target", target]);
        }
        cargo.arg("--target-dir").arg(folder);
        for package in &self.metadata.packages {
            cargo.args(["--package", package.name.as_str()]);
        }
        toolchain::build_now(&mut cargo, "what another project left")?;
        fs::write(&path, root).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The user programs: binaries of packages that are linked as such.
    pub fn programs(&self) -> impl Iterator<Item = Program> + '_ {
        let packages = self.metadata.packages.iter();
        packages
            .filter(|package| program::is_program(package))
            .flat_map(|package| self.programs_of(package))
    }

    fn programs_of<'p>(&'p self, package: &'p Package) -> impl Iterator<Item = Program> + 'p {
        let targets = package.targets.iter();
        targets
            .filter(|target| target.is_bin())
            .map(|target| Program {
                root: self.root().to_owned(),
                package: package.name.to_string(),
                binary: target.name.clone(),
            })
    }

    /// The user program of that name.
    pub fn program(&self, name: &str) -> Option<Program> {
        self.programs().find(|program| program.binary == name)
    }

    /// Whether a package of the project has that name, without being a user program.
    pub fn is_unlinked(&self, name: &str) -> bool {
        let mut packages = self.metadata.packages.iter();
        packages.any(|package| package.name.as_str() == name && !program::is_program(package))
    }

    /// The program that cargo builds to `path`, if it is of the project: a file that may be stale.
    pub fn program_at(&self, path: &Path) -> Option<Program> {
        // Neither need exist yet.
        let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
        let path = real(path).ok()?;
        let target = real(self.metadata.target_directory.as_std_path()).ok()?;
        let name = path.file_name()?.to_str()?;
        path.starts_with(target).then(|| self.program(name))?
    }

    /// What is wrong with the runtime that the project depends on, if it is not that of the repository,
    /// from which kernel and launcher come.
    fn other_runtime(&self) -> Option<String> {
        let repository = workspace::root();
        let ours = repository.canonicalize().unwrap_or(repository);
        let packages = self.metadata.packages.iter();
        let dependencies = packages.flat_map(|package| &package.dependencies);
        let mut runtimes = dependencies.filter(|dependency| dependency.name == RUNTIME);
        let theirs = runtimes.find_map(|runtime| {
            let source = runtime.source.as_ref().map(ToString::to_string);
            match (&runtime.path, source) {
                (Some(path), _) => {
                    let path = path.as_std_path();
                    let folder = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                    (!folder.starts_with(&ours)).then(|| folder.display().to_string())
                }
                (None, Some(source)) => match commit_of(&source) {
                    Some(commit) => (!is_at(&ours, commit)).then_some(source),
                    None => (!runtime.req.matches(&own_version())).then_some(source),
                },
                (None, None) => None,
            }
        })?;
        Some(format!(
            "the project's `{RUNTIME}` is {theirs}, but kernel, launcher and ready-made components are those \
             of {}: use the same version of both",
            ours.display()
        ))
    }
}

/// The commit of `git+URL?rev=COMMIT`.
fn commit_of(source: &str) -> Option<&str> {
    let (_, commit) = source.strip_prefix("git+")?.split_once("?rev=")?;
    Some(commit.split('#').next().unwrap_or(commit))
}

/// Whether the repository at `folder` has `commit` checked out; a commit may be abbreviated. It is not
/// known of one that is no clone: then it is taken to be.
fn is_at(folder: &Path, commit: &str) -> bool {
    head(folder).is_none_or(|head| head.starts_with(commit) || commit.starts_with(&head))
}

/// The commit that a clone has checked out.
pub fn head(folder: &Path) -> Option<String> {
    let out = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["rev-parse", "HEAD"])
        .output()
        .ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    out.status.success().then(|| text.trim().to_owned())
}

/// Whether a manifest is one of the repository's workspace, which is asked of cargo once, not for each description.
///
/// # Errors
/// As [`program::workspace_metadata`].
fn is_repositorys(manifest: &Path) -> Result<bool> {
    let inside = workspace::root().canonicalize();
    if !inside.is_ok_and(|repository| manifest.starts_with(repository)) {
        return Ok(false);
    }
    let metadata = program::workspace_metadata()?;
    let root = metadata.workspace_root.join("Cargo.toml");
    let mut manifests = metadata
        .packages
        .iter()
        .map(|package| &package.manifest_path);
    Ok(root == manifest || manifests.any(|member| member == manifest))
}

fn own_version() -> cargo_metadata::semver::Version {
    env!("CARGO_PKG_VERSION")
        .parse()
        .expect("cargo checks versions")
}

/// Builds user programs of projects for `arch` and returns their contents in that order, with debugging information: those that
/// were built just now, whoever else builds.
///
/// # Errors
/// One does not build, with the compiler's messages.
pub fn read_all(arch: Arch, programs: &[&Program], profile: Profile) -> Result<Vec<Elf>> {
    let mut by_root: BTreeMap<&Path, Vec<&Program>> = BTreeMap::new();
    for program in programs {
        by_root.entry(&program.root).or_default().push(program);
    }
    let mut contents = BTreeMap::new();
    for (root, programs) in by_root {
        let project = Project::of(&root.join("Cargo.toml"))?;
        if let Some(warning) = project.other_runtime() {
            eprintln!("warning: {warning}");
        }
        let built = build(arch, &project, &programs, profile)?;
        contents.extend(programs.iter().copied().zip(built));
    }
    let in_order = programs.iter().map(|program| contents[program].clone());
    Ok(in_order.collect())
}

/// Builds programs of one project.
fn build(
    arch: Arch,
    project: &Project,
    programs: &[&Program],
    profile: Profile,
) -> Result<Vec<Elf>> {
    let mut selection = profile_arguments(project.root())?;
    if arch == Arch::X86_64 {
        selection.extend(program::FRAME_POINTERS.map(str::to_owned));
    }
    selection.extend(profile.arguments());
    for program in programs {
        selection
            .extend(["--package", &program.package, "--bin", &program.binary].map(str::to_owned));
    }
    let binaries: Vec<&str> = programs
        .iter()
        .map(|program| program.binary.as_str())
        .collect();
    let folder = project.target_dir();
    let _lock = workspace::lock(&folder)?;
    project.take(&folder)?;
    let selection = selection.into_iter();
    let paths = match arch {
        Arch::X86_64 => {
            let cargo = toolchain::host_cargo_in(project.root());
            program::compile(cargo, selection, &folder, &binaries)?
        }
        Arch::Aarch64 => {
            program::compile_aarch64_in(project.root(), selection, &folder, &binaries)?
        }
    };
    program::read(paths)
}

/// Arguments that let cargo build with the repository's release profile, as far as the project's does
/// not say otherwise; and never so that programs unwind.
fn profile_arguments(root: &Path) -> Result<Vec<String>> {
    let ours = release_profile(&workspace::root())?;
    let theirs = release_profile(root)?;
    Ok(overrides(&ours, &theirs))
}

fn overrides(ours: &Table, theirs: &Table) -> Vec<String> {
    let values = ours.iter().filter(|(_, value)| !value.is_table());
    let values = values.filter(|(key, _)| *key == "panic" || !theirs.contains_key(*key));
    let values = values.map(|(key, value)| (key.clone(), value));
    // What runs while programs are compiled, then cargo need not build twice.
    let helpers = |profile: &'_ Table| profile.get(HELPERS)?.as_table().cloned();
    let theirs = helpers(theirs).unwrap_or_default();
    let ours = helpers(ours).unwrap_or_default();
    let helpers = ours.iter().filter(|(key, _)| !theirs.contains_key(*key));
    let helpers = helpers.map(|(key, value)| (format!("{HELPERS}.{key}"), value));
    values
        .chain(helpers)
        .flat_map(|(key, value)| {
            [
                "--config".to_owned(),
                format!("profile.release.{key}={value}"),
            ]
        })
        .collect()
}

/// The release profile of the manifest in `folder`.
fn release_profile(folder: &Path) -> Result<Table> {
    let path = folder.join("Cargo.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Table =
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
    let profile = manifest
        .get("profile")
        .and_then(|profiles| profiles.get("release"));
    Ok(profile
        .and_then(toml::Value::as_table)
        .cloned()
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_profile_holds_except_that_nothing_unwinds() {
        let ours =
            toml::from_str("panic = \"abort\"\nlto = \"fat\"\n[package.kernel]\nopt-level = 1")
                .unwrap();
        let arguments = |theirs| overrides(&ours, &toml::from_str(theirs).unwrap()).join(" ");
        let panic = "--config profile.release.panic=\"abort\"";
        let lto = "--config profile.release.lto=\"fat\"";
        assert_eq!(arguments(""), format!("{lto} {panic}"));
        assert_eq!(arguments("panic = \"unwind\"\nlto = false"), panic);
    }

    #[test]
    fn the_profile_of_macros_is_the_repositorys_where_the_project_has_none() {
        let ours = toml::from_str("[build-override]\ndebug = false").unwrap();
        let arguments = |theirs| overrides(&ours, &toml::from_str(theirs).unwrap()).join(" ");
        let debug = "--config profile.release.build-override.debug=false";
        assert_eq!(arguments(""), debug);
        assert_eq!(arguments("[build-override]\nopt-level = 3"), debug);
        assert_eq!(arguments("[build-override]\ndebug = 1"), "");
    }

    #[test]
    fn a_commit_may_be_abbreviated() {
        assert_eq!(commit_of("git+https://host/s?rev=abc1234"), Some("abc1234"));
        assert_eq!(commit_of("registry+https://host/index"), None);
        // No clone at all.
        assert!(is_at(Path::new("/"), "abc1234"));
        if let Some(head) = head(&workspace::root()) {
            assert!(is_at(&workspace::root(), &head[..7]));
            assert!(!is_at(&workspace::root(), "0000000"));
        }
    }

    #[test]
    fn the_repository_is_no_project() {
        for folder in ["", "tools/src", "systems/examples/hello"] {
            let around = Project::around(&workspace::root().join(folder)).unwrap();
            assert!(around.is_none(), "{folder}");
        }
    }
}
