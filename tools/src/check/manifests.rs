//! What the manifests say once, and the book says after them: versions of what is not ours, why it is
//! there, and the oldest compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cargo_metadata::semver::Version;
use cargo_metadata::{CargoOpt, MetadataCommand};
use toml::{Table, Value};

use super::{source, Verdict};
use crate::program;
use crate::toolchain;
use crate::workspace;

/// The manifest that versions stand in.
const ROOT: &str = "Cargo.toml";

/// Workspaces of their own, which can inherit nothing.
const APART: &[&str] = &["fuzz/engine/Cargo.toml"];

/// The page that says why each dependency is there.
const PAGE: &str = "docs/src/dependencies.md";

/// The section of the page about what is no crate.
const BEYOND_CRATES: &str = "## Beyond crates";

/// What the README says before the oldest compiler.
const README_BEFORE: &str = "a rustup toolchain from ";

/// Words of which a line of the book has one when it speaks of a compiler's release.
const COMPILER_WORDS: &[&str] = &["Rust", "rustc", "rustup", "toolchain", "compiler"];

/// A manifest, with its path in the repository.
struct Manifest {
    path: String,
    table: Table,
}

impl Manifest {
    fn read(path: &str) -> Result<Self> {
        Self::parse(path, &read(path)?)
    }

    fn parse(path: &str, text: &str) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            table: text.parse().with_context(|| format!("in {path}"))?,
        })
    }

    /// The root's, and those of its members.
    fn workspace() -> Result<(Self, Vec<Self>)> {
        let metadata = program::workspace_metadata()?;
        let members = metadata.packages.iter().map(|package| {
            let path = package.manifest_path.as_std_path();
            let path = path.strip_prefix(workspace::root()).unwrap_or(path);
            Self::read(&path.to_string_lossy())
        });
        Ok((Self::read(ROOT)?, members.collect::<Result<_>>()?))
    }

    fn apart() -> Result<Vec<Self>> {
        APART.iter().map(|path| Self::read(path)).collect()
    }

    /// Name and specification of every dependency, of whatever kind and target.
    fn dependencies(&self) -> Vec<(&String, &Value)> {
        let mut places = vec![&self.table];
        let targets = self.table.get("target").and_then(Value::as_table);
        places.extend(
            targets
                .iter()
                .flat_map(|t| t.values().filter_map(Value::as_table)),
        );
        let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
        let tables = places
            .into_iter()
            .flat_map(|place| kinds.map(|kind| place.get(kind).and_then(Value::as_table)));
        tables.flatten().flatten().collect()
    }

    /// `[workspace.TABLE]`, empty if there is none.
    fn of_workspace(&self, name: &str) -> Table {
        let workspace = self.table.get("workspace").and_then(Value::as_table);
        let table = workspace.and_then(|workspace| workspace.get(name)?.as_table());
        table.cloned().unwrap_or_default()
    }

    fn package(&self, key: &str) -> Option<&Value> {
        self.table.get("package")?.get(key)
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(workspace::root().join(path)).with_context(|| format!("cannot read {path}"))
}

/// Whether a dependency comes from elsewhere than this repository.
fn is_foreign(specification: &Value) -> bool {
    specification.get("path").is_none()
}

fn is_inherited(specification: &Value) -> bool {
    specification.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// The version that a specification asks for.
fn version(specification: &Value) -> Option<&str> {
    specification
        .as_str()
        .or_else(|| specification.get("version")?.as_str())
}

fn judge(findings: Result<Vec<String>>) -> Verdict {
    Verdict::of(findings.unwrap_or_else(|error| vec![format!("{error:#}")]))
}

/// Dependencies have their version in the root manifest.
pub fn versions() -> Verdict {
    judge(
        Manifest::workspace()
            .and_then(|(root, members)| Ok(find_versions(&root, &members, &Manifest::apart()?))),
    )
}

fn find_versions(root: &Manifest, members: &[Manifest], apart: &[Manifest]) -> Vec<String> {
    let listed = root.of_workspace("dependencies");
    let mut used = BTreeSet::new();
    let mut findings = Vec::new();
    for member in members {
        for (name, specification) in member.dependencies() {
            used.insert(name);
            if !is_inherited(specification) {
                findings.push(format!(
                    "{}: `{name}` does not inherit; list it in [workspace.dependencies] of {ROOT} and \
                     write `{name}.workspace = true`",
                    member.path
                ));
            }
        }
    }
    for (manifest, (name, specification)) in apart.iter().flat_map(|manifest| {
        manifest
            .dependencies()
            .into_iter()
            .map(move |d| (manifest, d))
    }) {
        let (here, there) = (version(specification), listed.get(name).and_then(version));
        if there.is_some() && here != there {
            findings.push(format!(
                "{}: `{name}` is of version {here:?}, but {ROOT} says {there:?}",
                manifest.path
            ));
        }
    }
    let unused = listed.keys().filter(|name| !used.contains(name));
    findings.extend(unused.map(|name| format!("{ROOT}: no member uses `{name}`; remove it")));
    findings
}

/// The oldest compiler stands in the root manifest; what builds with it, and what the book says, agree.
pub fn rust_version() -> Verdict {
    judge(find_rust_versions())
}

fn find_rust_versions() -> Result<Vec<String>> {
    let (root, members) = Manifest::workspace()?;
    let package = root.of_workspace("package");
    let oldest = package.get("rust-version").and_then(Value::as_str);
    let oldest =
        oldest.with_context(|| format!("{ROOT}: [workspace.package] has no rust-version"))?;
    let mut findings: Vec<String> = members
        .iter()
        .filter(|member| !member.package("rust-version").is_some_and(is_inherited))
        .map(|member| {
            format!(
                "{}: write `rust-version.workspace = true` in [package]",
                member.path
            )
        })
        .collect();
    for manifest in Manifest::apart()? {
        let here = manifest.package("rust-version").and_then(Value::as_str);
        if here != Some(oldest) {
            findings.push(format!(
                "{}: rust-version must be \"{oldest}\"",
                manifest.path
            ));
        }
    }
    findings.extend(wrong_readme(&read("README.md")?, oldest));
    for path in book()? {
        findings.extend(wrong_releases(&path, &read(&path)?, oldest));
    }
    for path in [ROOT].iter().chain(APART) {
        findings.extend(demanding(path, oldest)?);
    }
    Ok(findings)
}

/// The README and the pages of the book, in the repository.
fn book() -> Result<Vec<String>> {
    let mut files: Vec<PathBuf> = Vec::new();
    let is_page = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    source::collect(&workspace::root().join("docs/src"), &is_page, &mut files)?;
    files.sort();
    let pages = files.iter().map(|file| {
        let path = file.strip_prefix(workspace::root()).unwrap_or(file);
        path.to_string_lossy().into_owned()
    });
    Ok(["README.md".to_owned()].into_iter().chain(pages).collect())
}

fn wrong_readme(text: &str, oldest: &str) -> Option<String> {
    let says = format!("{README_BEFORE}{oldest} ");
    (!text.contains(&says)).then(|| {
        format!("README.md: the requirements must say `{says}`, as rust-version in {ROOT}")
    })
}

/// Lines that speak of a compiler's release that is neither the oldest nor Debian's.
fn wrong_releases(path: &str, text: &str, oldest: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if !COMPILER_WORDS.iter().any(|word| line.contains(word)) {
            continue;
        }
        let words = line.split(|c: char| !c.is_ascii_digit() && c != '.');
        for release in words
            .map(|word| word.trim_matches('.'))
            .filter(|w| is_release(w))
        {
            if ![oldest, toolchain::DEBIAN_RELEASE].contains(&release) {
                findings.push(format!(
                    "{path}:{number}: Rust {release}? The oldest is {oldest} ({ROOT}), Debian's is {}",
                    toolchain::DEBIAN_RELEASE
                ));
            }
        }
    }
    findings
}

/// Whether it looks like `1.89`.
fn is_release(word: &str) -> bool {
    let minor = word.strip_prefix("1.").unwrap_or_default();
    minor.len() == 2 && minor.bytes().all(|byte| byte.is_ascii_digit())
}

/// Dependencies of the workspace at `manifest`, as locked, that ask for a newer compiler.
fn demanding(manifest: &str, oldest: &str) -> Result<Vec<String>> {
    let oldest: Version = format!("{oldest}.0").parse().context("rust-version")?;
    let cargo = toolchain::host_cargo();
    let metadata = MetadataCommand::new()
        .cargo_path(cargo.get_program())
        .manifest_path(workspace::root().join(manifest))
        .features(CargoOpt::AllFeatures)
        .other_options([
            "--locked".to_owned(),
            "--filter-platform".to_owned(),
            program::USER_TARGET.to_owned(),
        ])
        .exec()
        .with_context(|| format!("cannot read the dependencies of {manifest}"))?;
    let mut findings = Vec::new();
    for package in &metadata.packages {
        if let Some(demanded) = package
            .rust_version
            .as_ref()
            .filter(|&demanded| *demanded > oldest)
        {
            findings.push(format!(
                "{manifest}: `{}` {} needs Rust {demanded}; `cargo update -p {}` finds one that does not, \
                 else raise rust-version",
                package.name, package.version, package.name
            ));
        }
    }
    Ok(findings)
}

/// Every dependency has its reason, and every reason its dependency.
pub fn reasons() -> Verdict {
    judge(Manifest::workspace().and_then(|(root, _)| {
        let mut foreign = foreign_of(&root.of_workspace("dependencies"));
        for manifest in Manifest::apart()? {
            let dependencies = manifest.dependencies().into_iter();
            let table = dependencies
                .map(|(name, s)| (name.clone(), s.clone()))
                .collect();
            foreign.extend(foreign_of(&table));
        }
        Ok(find_reasons(&foreign, &read(PAGE)?))
    }))
}

fn foreign_of(dependencies: &Table) -> BTreeSet<String> {
    let foreign = dependencies.iter().filter(|(_, s)| is_foreign(s));
    foreign.map(|(name, _)| name.clone()).collect()
}

fn find_reasons(foreign: &BTreeSet<String>, page: &str) -> Vec<String> {
    let given = given_reasons(page);
    let lacking = foreign.iter().filter(|name| !given.contains_key(*name));
    let lacking = lacking.map(|name| format!("{PAGE}: no table has a line for `{name}`"));
    let idle = given.iter().filter(|(name, _)| !foreign.contains(*name));
    let idle =
        idle.map(|(name, line)| format!("{PAGE}:{line}: no manifest names `{name}`; remove it"));
    lacking.chain(idle).collect()
}

/// The crates in the first column of the page's tables, with the line of each.
fn given_reasons(page: &str) -> BTreeMap<String, usize> {
    let crates = page.split(BEYOND_CRATES).next().unwrap_or_default();
    let mut given = BTreeMap::new();
    for (line, number) in crates.lines().zip(1..) {
        let Some(row) = line.strip_prefix("| ") else {
            continue;
        };
        let first = row.split('|').next().unwrap_or_default();
        for name in first.split('`').skip(1).step_by(2) {
            // Packages in brackets are ours: who uses it.
            if !Path::new(name).has_root() && !is_in_brackets(first, name) {
                given.insert(name.to_owned(), number);
            }
        }
    }
    given
}

fn is_in_brackets(column: &str, name: &str) -> bool {
    let before = column
        .split(&format!("`{name}`"))
        .next()
        .unwrap_or_default();
    before.matches('(').count() > before.matches(')').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> Manifest {
        Manifest::parse("x/Cargo.toml", text).unwrap()
    }

    const ROOT_TEXT: &str = "[workspace.dependencies]\nserde = \"1\"\nours = { path = \"ours\" }";

    #[test]
    fn a_version_outside_of_the_root_is_found() {
        let root = manifest(ROOT_TEXT);
        let good = "[dependencies]\nserde = { workspace = true, features = [] }\n\
                    [target.x.dev-dependencies]\nours.workspace = true";
        assert!(find_versions(&root, &[manifest(good)], &[]).is_empty());
        for bad in [
            "serde = \"1\"\nours.workspace = true",
            "serde = { version = \"1\" }\nours.workspace = true",
            "serde.workspace = true\nours = { path = \"../ours\" }",
        ] {
            for table in [
                "dependencies",
                "build-dependencies",
                "target.'cfg(unix)'.dependencies",
            ] {
                let bad = manifest(&format!("[{table}]\n{bad}"));
                assert_eq!(find_versions(&root, &[bad], &[]).len(), 1, "{table}");
            }
        }
    }

    #[test]
    fn a_listed_version_is_used_and_the_same_elsewhere() {
        let root = manifest(ROOT_TEXT);
        let member = || manifest("[dependencies]\nserde.workspace = true");
        assert_eq!(find_versions(&root, &[member()], &[]).len(), 1);
        let members = [member(), manifest("[dependencies]\nours.workspace = true")];
        let apart = |text| manifest(&format!("[dependencies]\n{text}"));
        assert!(
            find_versions(&root, &members, &[apart("serde = \"1\"\nother = \"2\"")]).is_empty()
        );
        assert_eq!(
            find_versions(&root, &members, &[apart("serde = \"2\"")]).len(),
            1
        );
    }

    #[test]
    fn another_release_in_the_book_is_found() {
        let wrong = |text| wrong_releases("a.md", text, "1.89").len();
        assert_eq!(wrong("Rust 1.89, or Debian's rustc 1.96."), 0);
        assert_eq!(wrong("a ratio of 1.85"), 0);
        assert_eq!(wrong("first\na toolchain from 1.85."), 1);
        assert_eq!(
            wrong_readme("needs a rustup toolchain from 1.89 with", "1.89"),
            None
        );
        assert!(wrong_readme("needs a rustup toolchain from 1.85 with", "1.89").is_some());
    }

    #[test]
    fn a_dependency_without_reason_and_a_reason_without_dependency_are_found() {
        let foreign = BTreeSet::from(["aes".to_owned(), "toml".to_owned()]);
        let page = "| crate | why |\n| `aes`, `toml` (`edf-record`) | x |\n## Beyond crates\n| `make` | y |";
        assert!(find_reasons(&foreign, page).is_empty());
        assert_eq!(find_reasons(&foreign, "| `aes` | `toml` |").len(), 1);
        let idle = format!("| `ctr` | z |\n{page}");
        assert_eq!(
            find_reasons(&foreign, &idle),
            [format!("{PAGE}:1: no manifest names `ctr`; remove it")]
        );
    }
}
