//! Scratch workspaces: the kernel with its mutants built in, and the packages whose tests run
//! against it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};
use cargo_metadata::diagnostic::{Diagnostic, DiagnosticLevel};
use cargo_metadata::{Message, Metadata};

use super::generator;
use super::judge::Suite;
use super::mutant::{Found, Mutant};
use super::schema::{self, Schema};
use super::syntax;
use crate::test::harness;
use crate::{program, toolchain, workspace};

const KERNEL: &str = "sandglass-kernel";
const ASSURANCE: &str = "sandglass-assurance";
/// In the repository.
pub const KERNEL_SOURCE: &str = "kernel/src";

/// Tests that judge mutants.
pub struct Build {
    /// What their names begin with.
    pub name: &'static str,
    /// Arguments of `cargo test`.
    arguments: &'static [&'static str],
    /// Modules of its tests that judge, each with the `::` behind it; all if none is named.
    modules: &'static [&'static str],
}

/// The kernel for several cores, in which named mutants are judged, too.
pub const CORES: Build = Build {
    name: "cores",
    arguments: &[
        "--package",
        KERNEL,
        "--package",
        ASSURANCE,
        "--features",
        "sandglass-assurance/smp",
        "--lib",
        "--tests",
    ],
    modules: &[],
};

/// The kernel is one piece of source and several kernels. That for several cores runs all code, so
/// it stands for that for one; what only the debug kernel has, few tests use.
pub const BUILDS: &[Build] = &[
    CORES,
    Build {
        name: "debug",
        arguments: &[
            "--package",
            KERNEL,
            "--features",
            "debug,smp",
            "--test",
            "tests",
        ],
        modules: &["debug_calls::", "cores::"],
    },
];
/// What of the kernel is mutated: folders, and files with their ending.
const MUTATED: &[&str] = &[
    "arch/x86_64/abi",
    "cap",
    "debug",
    "fast",
    "invoke",
    "ipc",
    "mem/slot.rs",
    "object",
    "thread",
    "time",
];
/// What of these is not: what only the boot of the bare machine runs, and names for its console; and the hardware-debug
/// API, which the base profile has not.
const NOT_MUTATED: &[&str] = &[
    "arch/x86_64/abi/boot",
    "arch/x86_64/abi/debug_fault.rs",
    "arch/x86_64/abi/debugging.rs",
    "arch/x86_64/abi/invoke/debugging.rs",
    "arch/x86_64/abi/kind.rs",
];
/// Invariants, for tests: not in the kernel that ships.
const INVARIANTS: &str = "/inspect.rs";
/// The switch of the mutants, a module of the mutated kernel.
pub const SWITCH: &str = include_str!("switch.rs.in");
/// Its file, in the kernel's source, where mutants are generated.
const SWITCH_FILE: &str = "mutants.rs";
/// Builds until the mutants that do not compile are known; each finds some.
const MAX_ROUNDS: usize = 20;

/// A source file of the kernel.
pub struct Source {
    /// In the repository.
    pub path: String,
    pub text: String,
    pub found: Found,
    /// Number of its first mutant; the others follow.
    pub first: u32,
}

/// The kernel's source with all of its mutants.
pub struct Kernel {
    pub sources: Vec<Source>,
}

impl Kernel {
    /// Reads the kernel of this repository.
    ///
    /// # Errors
    /// A file cannot be read or parsed.
    pub fn read() -> Result<Self> {
        let root = workspace::root();
        let mut listed = generator::list(KERNEL, &[format!("{KERNEL_SOURCE}/**")])?;
        listed.retain(|listed| is_generated_of(&listed.file));
        for part in MUTATED {
            if !listed.iter().any(|listed| is_in(&listed.file, part)) {
                bail!("{KERNEL_SOURCE}/{part} has no mutants: is it called otherwise now?");
            }
        }
        let mut files = Vec::new();
        collect(&root.join(KERNEL_SOURCE), &mut files)?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
        let mut sources = Vec::new();
        let mut next = 0;
        for file in files {
            let path = file.strip_prefix(&root).unwrap_or(&file);
            let path = path.to_string_lossy().into_owned();
            let text = read(&file)?;
            let listed: Vec<_> = listed.iter().filter(|listed| listed.file == path).collect();
            let found = syntax::find(&path, &text, &listed)?;
            let first = next;
            next += u32::try_from(found.mutants.len()).context("too many mutants")?;
            sources.push(Source {
                path,
                text,
                found,
                first,
            });
        }
        Ok(Self { sources })
    }

    /// Its files, by their names in the kernel's source.
    fn names(&self) -> BTreeSet<PathBuf> {
        let paths = self.sources.iter().map(|source| Path::new(&source.path));
        let names = paths.filter_map(|path| path.strip_prefix(KERNEL_SOURCE).ok());
        names.map(Path::to_path_buf).collect()
    }

    /// All mutants with the file that they are in and their number.
    pub fn mutants(&self) -> impl Iterator<Item = (&Source, u32, &Mutant)> {
        self.sources.iter().flat_map(|source| {
            let numbers = source.first..;
            numbers
                .zip(&source.found.mutants)
                .map(move |(id, mutant)| (source, id, mutant))
        })
    }
}

/// Whether mutants of the file `path` of the repository are generated.
pub fn is_generated_of(path: &str) -> bool {
    path.ends_with(".rs")
        && !path.ends_with(INVARIANTS)
        && part_of(path).is_some()
        && !NOT_MUTATED.iter().any(|part| is_in(path, part))
}

/// The mutated part of the kernel that the file `path` of the repository belongs to.
pub fn part_of(path: &str) -> Option<&'static str> {
    MUTATED.iter().copied().find(|part| is_in(path, part))
}

/// Whether the file `path` of the repository is this `part` of the kernel, or in it.
fn is_in(path: &str, part: &str) -> bool {
    let below = path
        .strip_prefix(KERNEL_SOURCE)
        .and_then(|path| path.strip_prefix('/'));
    let rest = below.and_then(|path| path.strip_prefix(part));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What can be built into one kernel, as far as it is known.
#[derive(Debug, Default)]
pub struct Viability {
    /// Mutants that do not compile.
    pub unviable: BTreeSet<u32>,
    /// Names of `const fn`s that constants call; mutants in them cannot be switched.
    pub constants: BTreeSet<String>,
}

impl Viability {
    /// Whether `mutant` can be switched at run time, if it compiles.
    pub fn is_switchable(&self, source: &Source, mutant: &Mutant) -> bool {
        let in_constant = |start: usize| {
            let mut functions = source.found.const_fns.iter();
            functions.any(|f| f.keyword.start == start && self.constants.contains(&f.name))
        };
        mutant.is_switchable && !mutant.const_fn.is_some_and(in_constant)
    }
}

/// How the packages of a tree are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builds {
    /// For thousands of mutants: with profiles of their own, quick to build.
    Apart,
    /// As those of the repository, whose dependencies they share.
    Alike,
}

/// A scratch workspace. As long as it is there, nobody else writes it.
pub struct Tree {
    pub root: PathBuf,
    builds: Builds,
    _lock: File,
}

impl Tree {
    /// Writes a copy of the packages that matter, but for the kernel's source, to the folder `name`
    /// of the target directory. What is unchanged there stays untouched, so that cargo does not
    /// build it again.
    ///
    /// # Errors
    /// Something cannot be read or written.
    pub fn copy(name: &str, builds: Builds) -> Result<Self> {
        let root = workspace::target_dir().join("mutants").join(name);
        let held = lock(&root)?;
        let metadata = program::workspace_metadata()?;
        let packages = needed_packages(&metadata)?;
        let folders: Vec<&str> = packages.values().map(String::as_str).collect();
        for folder in &folders {
            let from = workspace::root().join(folder);
            let names = names_below(&from)?;
            let is_ours = |name: &Path| !is_mutated(folder, name);
            for old in names_below(&root.join(folder))?
                .iter()
                .filter(|name| is_ours(name))
            {
                if !names.contains(old) {
                    fs::remove_file(root.join(folder).join(old))?;
                }
            }
            for name in names.iter().filter(|name| is_ours(name)) {
                write(&root.join(folder).join(name), &fs::read(from.join(name))?)?;
            }
        }
        let manifest = manifest(name, &packages, builds)?;
        write(&root.join("Cargo.toml"), manifest.as_bytes())?;
        let lock = fs::read(workspace::root().join("Cargo.lock")).context("Cargo.lock")?;
        if !root.join("Cargo.lock").exists() {
            write(&root.join("Cargo.lock"), &lock)?;
        }
        Ok(Self {
            root,
            builds,
            _lock: held,
        })
    }

    /// The same, with the kernel's source as it is, but for the files `changed`, which are named by their
    /// paths.
    ///
    /// # Errors
    /// Something cannot be read or written.
    pub fn changed(name: &str, changed: &BTreeMap<String, String>) -> Result<Self> {
        let tree = Self::copy(name, Builds::Alike)?;
        let source = Path::new(KERNEL_SOURCE);
        let mut names = names_below(&workspace::root().join(source))?;
        for file in names.iter().map(|name| source.join(name)) {
            if !changed.contains_key(&*file.to_string_lossy()) {
                let content = fs::read(workspace::root().join(&file))
                    .with_context(|| format!("cannot read {}", file.display()))?;
                write(&tree.root.join(&file), &content)?;
            }
        }
        for (path, text) in changed {
            tree.replace(path, text)?;
            names.extend(Path::new(path).strip_prefix(source).map(Path::to_path_buf));
        }
        tree.remove_others(&names)?;
        Ok(tree)
    }

    /// Removes the files of the kernel's source that have none of these `names`: what an earlier kernel
    /// had there.
    fn remove_others(&self, names: &BTreeSet<PathBuf>) -> Result<()> {
        let source = self.root.join(KERNEL_SOURCE);
        for old in names_below(&source)?.difference(names) {
            let path = source.join(old);
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Replaces a file of the tree.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn replace(&self, path: &str, text: &str) -> Result<()> {
        write(&self.root.join(path), text.as_bytes())
    }

    /// Writes the kernel's source as it is.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn restore(&self, kernel: &Kernel) -> Result<()> {
        for source in &kernel.sources {
            self.replace(&source.path, &source.text)?;
        }
        self.remove_others(&kernel.names())
    }

    /// Builds all mutants of `kernel` in, but for those that `viability` excludes.
    ///
    /// # Errors
    /// A file cannot be written, or the kernel's root has an unknown form.
    pub fn mutate(&self, kernel: &Kernel, viability: &Viability) -> Result<Vec<(String, Schema)>> {
        let mut schemas = Vec::new();
        for source in &kernel.sources {
            let mutants: Vec<_> = (source.first..)
                .zip(&source.found.mutants)
                .filter(|(id, mutant)| {
                    viability.is_switchable(source, mutant) && !viability.unviable.contains(id)
                })
                .collect();
            let plain: Vec<_> = source
                .found
                .const_fns
                .iter()
                .filter(|function| !viability.constants.contains(&function.name))
                .collect();
            let mut schema = schema::build(&source.text, &mutants, &plain);
            if source.path == "kernel/src/lib.rs" {
                schema.text.push_str("\npub mod mutants;\n");
            }
            self.replace(&source.path, &schema.text)?;
            schemas.push((source.path.clone(), schema));
        }
        let count = kernel.mutants().count();
        self.replace(
            &format!("{KERNEL_SOURCE}/{SWITCH_FILE}"),
            &SWITCH.replace("@COUNT@", &count.to_string()),
        )?;
        let mut names = kernel.names();
        names.insert(PathBuf::from(SWITCH_FILE));
        self.remove_others(&names)?;
        Ok(schemas)
    }

    /// Finds out which mutants compile, by building until nothing is wrong, starting from what
    /// `viability` knows. `say` is told of each round.
    ///
    /// # Errors
    /// The compiler refuses what no mutant explains.
    pub fn settle(
        &self,
        kernel: &Kernel,
        viability: &mut Viability,
        say: impl Fn(&str),
    ) -> Result<()> {
        for round in 1..=MAX_ROUNDS {
            let schemas = self.mutate(kernel, viability)?;
            let errors = self.check()?;
            if errors.is_empty() {
                return Ok(());
            }
            say(&format!("round {round}: {} do not compile", errors.len()));
            let known = (viability.unviable.len(), viability.constants.len());
            for error in &errors {
                explain(error, &schemas, kernel, viability);
            }
            if known == (viability.unviable.len(), viability.constants.len()) {
                let first = errors[0].rendered.as_deref().unwrap_or(&errors[0].message);
                bail!(
                    "the mutated kernel does not compile, whichever mutants are left out:\n{first}"
                );
            }
        }
        bail!(
            "the mutated kernel does not compile after {MAX_ROUNDS} rounds of leaving out mutants"
        )
    }

    /// A `cargo SUBCOMMAND` of the host's toolchain in the tree.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut cargo = toolchain::host_cargo();
        cargo.current_dir(&self.root).arg(subcommand);
        match self.builds {
            Builds::Alike => cargo.env("CARGO_TARGET_DIR", workspace::target_dir()),
            // What a mutant does at run time is to be seen, not forbidden.
            Builds::Apart => cargo
                .env("CARGO_TARGET_DIR", self.root.join("target"))
                .env("RUSTFLAGS", "--cap-lints=allow"),
        };
        cargo
    }

    /// The compiler's errors about the kernel.
    fn check(&self) -> Result<Vec<Diagnostic>> {
        let mut cargo = self.cargo("check");
        cargo.args([
            "--quiet",
            "--lib",
            "--package",
            KERNEL,
            "--message-format=json",
        ]);
        let output = cargo.output().context("cannot run cargo")?;
        let mut errors = Vec::new();
        for message in Message::parse_stream(output.stdout.as_slice()) {
            if let Message::CompilerMessage(message) = message.context("cargo's messages")? {
                let diagnostic = message.message;
                if diagnostic.level == DiagnosticLevel::Error && !diagnostic.spans.is_empty() {
                    errors.push(diagnostic);
                }
            }
        }
        if errors.is_empty() && !output.status.success() {
            bail!("cargo: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(errors)
    }

    /// Builds the tests of these `builds`.
    ///
    /// # Errors
    /// They do not build.
    pub fn build_tests(&self, builds: &[Build]) -> Result<Vec<Suite>> {
        let mut suites = Vec::new();
        for build in builds {
            let mut cargo = self.cargo("test");
            cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
            if self.builds == Builds::Alike {
                cargo.args(["--profile", toolchain::HOST_PROFILE]);
            }
            cargo.args(build.arguments);
            let output = cargo.output().context("cannot run cargo")?;
            if !output.status.success() {
                bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
            }
            let harnesses = harness::of(&output.stdout, build.name)?;
            suites.extend(harnesses.into_iter().map(|harness| Suite {
                harness,
                modules: build.modules,
            }));
        }
        Ok(suites)
    }
}

/// Learns from an error which mutants do not compile, or which functions must stay constant.
fn explain(
    error: &Diagnostic,
    schemas: &[(String, Schema)],
    kernel: &Kernel,
    viability: &mut Viability,
) {
    let mutant_at = |file: &str, range: Range<usize>| {
        let (_, schema) = schemas.iter().find(|(path, _)| path == file)?;
        schema.mutant_at(&range)
    };
    let mut spans: Vec<_> = error.spans.iter().collect();
    // Where the error is comes before what has to do with it.
    spans.sort_by_key(|span| !span.is_primary);
    let culprit = spans.iter().find_map(|span| {
        let range = span.byte_start as usize..span.byte_end as usize;
        mutant_at(&span.file_name, range)
    });
    if let Some(id) = culprit.or_else(|| asked_in_constant(error)) {
        viability.unviable.insert(id);
    } else if error.code.as_ref().is_some_and(|code| code.code == "E0015") {
        let called = error.message.split('`').nth(1).unwrap_or_default();
        let functions = kernel
            .sources
            .iter()
            .flat_map(|source| &source.found.const_fns);
        let called = functions.filter(|function| is_called(&function.name, called));
        viability
            .constants
            .extend(called.map(|function| function.name.clone()));
    }
}

/// The mutant whose switch is asked where the compiler wants a constant.
fn asked_in_constant(error: &Diagnostic) -> Option<u32> {
    let span = error.spans.iter().find(|span| span.is_primary)?;
    let line = span.text.first()?;
    let asked = line
        .text
        .get(line.highlight_start.checked_sub(1)?..line.highlight_end.checked_sub(1)?)?;
    let id = asked.strip_prefix("crate::mutants::on(")?;
    id.strip_suffix(')')?.parse().ok()
}

/// Whether `path`, which the compiler prints, is of the function `name`: `cap::slot::Slot::new` of
/// `Slot::new`.
fn is_called(name: &str, path: &str) -> bool {
    let plain = |text: &str| {
        let mut depth = 0;
        let keep = |c: char| {
            depth += usize::from(c == '<');
            let inside = depth > 0;
            depth -= usize::from(c == '>' && depth > 0);
            (!inside).then_some(c)
        };
        let text: String = text.chars().filter_map(keep).collect();
        let parts = text.split("::").filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    plain(path).ends_with(&plain(name))
}

/// The packages that the judges need, themselves included, with their folders.
fn needed_packages(metadata: &Metadata) -> Result<BTreeMap<String, String>> {
    let mut packages = BTreeMap::new();
    let mut waiting = vec![KERNEL.to_owned(), ASSURANCE.to_owned()];
    while let Some(name) = waiting.pop() {
        let Some(package) = metadata
            .packages
            .iter()
            .find(|package| package.name == name)
        else {
            continue;
        };
        let folder = package
            .manifest_path
            .parent()
            .context("a manifest's folder")?;
        let folder = folder
            .strip_prefix(workspace::root())
            .with_context(|| format!("{folder} is outside of the repository"))?;
        if packages.insert(name, folder.to_string()).is_none() {
            let ours = package.dependencies.iter().filter(|d| d.path.is_some());
            waiting.extend(ours.map(|dependency| dependency.name.clone()));
        }
    }
    Ok(packages)
}

/// The manifest of the scratch workspace `name`, with these packages and their folders: as the repository's, but for
/// what is built, and how. And for the packages' version, by which alone cargo tells them from the repository's: in a target
/// directory that both are built in, each would take the place of the other.
fn manifest(name: &str, members: &BTreeMap<String, String>, builds: Builds) -> Result<String> {
    let text = read(&workspace::root().join("Cargo.toml"))?;
    let mut manifest: toml::Table = text.parse().context("in Cargo.toml")?;
    let folders = members.values().cloned().map(toml::Value::String).collect();
    let workspace = manifest
        .get_mut("workspace")
        .and_then(toml::Value::as_table_mut)
        .context("Cargo.toml has no [workspace]")?;
    workspace.insert("members".to_owned(), toml::Value::Array(folders));
    let version = workspace
        .get_mut("package")
        .and_then(|package| package.get_mut("version"))
        .context("Cargo.toml has no version in [workspace.package]")?;
    *version = format!("{}-mutants-{name}", version.as_str().unwrap_or_default()).into();
    let profiles = manifest
        .get_mut("profile")
        .and_then(toml::Value::as_table_mut)
        .context("Cargo.toml has no [profile]")?;
    let release = profiles
        .get_mut("release")
        .and_then(|it| it.get_mut("package"));
    if let Some(packages) = release.and_then(toml::Value::as_table_mut) {
        // All others among them: `core` is shared with the repository's kernels.
        packages.retain(|name, _| name == "*" || members.contains_key(name));
    }
    let dev = profiles
        .get_mut("dev")
        .and_then(toml::Value::as_table_mut)
        .context("Cargo.toml has no [profile.dev]")?;
    if let Some(packages) = dev.get_mut("package").and_then(toml::Value::as_table_mut) {
        // Quick to build: few tests run against all of it, or the whole is built otherwise.
        let is_quick = |name: &str| name == KERNEL || builds == Builds::Alike;
        packages.retain(|name, _| members.contains_key(name) && !is_quick(name));
    }
    if builds == Builds::Apart {
        // Tests unwind: without this, what they share with programs would be built twice.
        dev.remove("panic");
        // Quick to run, with every check, and nothing for debuggers. The mutated kernel is large.
        dev.insert("opt-level".to_owned(), toml::Value::Integer(1));
        dev.insert("debug".to_owned(), toml::Value::Boolean(false));
        profiles.retain(|name, _| name == "dev");
    }
    Ok(manifest.to_string())
}

/// Adds the files below `folder`, but for those of builds, in their order.
pub fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let reading = || format!("cannot read {}", folder.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).with_context(reading)? {
        entries.push(entry.with_context(reading)?.path());
    }
    entries.sort();
    for path in entries {
        if !path.is_dir() {
            files.push(path);
        } else if path.file_name().is_some_and(|name| name != "target") {
            collect(&path, files)?;
        }
    }
    Ok(())
}

/// Whether the file `name` of the package in `folder` is one that mutants are built into.
fn is_mutated(folder: &str, name: &Path) -> bool {
    folder == "kernel" && name.starts_with("src")
}

/// The files below `folder`, relative to it; none if it does not exist.
fn names_below(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = Vec::new();
    if folder.exists() {
        collect(folder, &mut files)?;
    }
    Ok(files
        .iter()
        .filter_map(|file| Some(file.strip_prefix(folder).ok()?.to_path_buf()))
        .collect())
}

/// Waits until nobody else writes the tree in the folder `root`.
fn lock(root: &Path) -> Result<File> {
    // Not `lock`: that is a package.
    let path = root.join("tree.lock");
    let locking = || format!("cannot lock {}", path.display());
    fs::create_dir_all(root).with_context(locking)?;
    let lock = File::create(&path).with_context(locking)?;
    lock.lock().with_context(locking)?;
    Ok(lock)
}

pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file, unless it is there with this content.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let writing = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(writing)?;
    }
    fs::write(path, content).with_context(writing)
}

#[cfg(test)]
mod tests;
