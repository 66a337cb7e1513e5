//! The kernel's rooms, and the arrows between them.
//!
//! `kernel/rooms.toml` lists the rooms from the top to the bottom. A file may name what stands in its
//! own room and in those below: every path of the source that begins with `crate`, `super` or `self` is
//! resolved to the file of the module that it names, in code, `use` declarations and macro calls alike.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context as _, Result};
use proc_macro2::{TokenStream, TokenTree};
use serde::Deserialize;

use super::source::{collect, is_rust, Source};
use super::Verdict;
use crate::workspace;

/// Below the repository.
const TABLE: &str = "kernel/rooms.toml";
const KERNEL: &str = "kernel/src";

/// A room of the kernel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Room {
    pub name: String,
    pub about: String,
    /// Files and folders below `kernel/src`.
    pub paths: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    room: Vec<Room>,
}

/// A place where one file names another: a file, a 1-based line, and the file that is named there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mention {
    from: PathBuf,
    line: usize,
    to: PathBuf,
}

/// The kernel's rooms, and what its files name.
pub struct House {
    /// From the top to the bottom.
    pub rooms: Vec<Room>,
    mentions: Vec<Mention>,
    files: BTreeSet<PathBuf>,
}

impl House {
    /// Reads the table and the source.
    ///
    /// # Errors
    /// One of the files cannot be read, or is not what it should be.
    pub fn read() -> Result<Self> {
        let path = workspace::root().join(TABLE);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut sources = Vec::new();
        let folder = workspace::root().join(KERNEL);
        let mut paths = Vec::new();
        collect(&folder, &is_rust, &mut paths)?;
        for path in paths {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(&folder).unwrap_or(&path).to_owned();
            sources.push(Source::parse(path, text)?);
        }
        Self::of(&text, &sources)
    }

    /// The house that `table` describes, of `sources`, whose paths are relative to `kernel/src`.
    fn of(table: &str, sources: &[Source]) -> Result<Self> {
        let Table { room: rooms } =
            toml::from_str(table).with_context(|| format!("cannot read {TABLE}"))?;
        let files: BTreeSet<PathBuf> = sources
            .iter()
            .map(|source| source.path.clone())
            .filter(|path| !is_apart(path))
            .collect();
        let mut modules = BTreeMap::new();
        for file in &files {
            modules.insert(module_of(file), file.clone());
        }
        let mut names = Names {
            modules,
            shown: BTreeMap::new(),
        };
        let mut all = Vec::new();
        for source in sources.iter().filter(|source| !is_apart(&source.path)) {
            let paths = paths_of(source);
            let here = module_of(&source.path);
            names
                .shown
                .extend(paths.shown.into_iter().map(|(name, path)| {
                    let mut shown = here.clone();
                    shown.push(name);
                    (shown, path)
                }));
            all.push((&source.path, paths.named));
        }
        let mut mentions = Vec::new();
        for (from, named) in all {
            mentions.extend(named.into_iter().filter_map(|(line, path)| {
                let to = names.file_of(&path)?.clone();
                (&to != from).then(|| Mention {
                    from: from.clone(),
                    line,
                    to,
                })
            }));
        }
        let house = House {
            rooms,
            mentions,
            files,
        };
        for file in &house.files {
            if house.room_of(file).is_none() && file != Path::new("lib.rs") {
                bail!(
                    "{KERNEL}/{} is in no room: add it to the paths of one in {TABLE}",
                    file.display()
                );
            }
        }
        Ok(house)
    }

    /// Number of the room of `file`, from the top: that with the longest path that fits.
    fn room_of(&self, file: &Path) -> Option<usize> {
        let fitting = self.rooms.iter().enumerate().flat_map(|(number, room)| {
            let paths = room.paths.iter().filter(|path| file.starts_with(path));
            paths.map(move |path| (path.components().count(), number))
        });
        fitting.max().map(|(_, number)| number)
    }

    /// The places at which a file names one of a room above its own.
    fn violations(&self) -> Vec<String> {
        let mut findings = BTreeSet::new();
        for mention in &self.mentions {
            let (Some(from), Some(to)) = (self.room_of(&mention.from), self.room_of(&mention.to))
            else {
                continue;
            };
            if to < from {
                findings.insert(format!(
                    "{KERNEL}/{}:{}: the room `{}` names {}, of `{}`, which stands above it: return what \
                     that room is to do, or move what is needed down",
                    mention.from.display(),
                    mention.line,
                    self.rooms[from].name,
                    mention.to.display(),
                    self.rooms[to].name,
                ));
            }
        }
        findings.into_iter().collect()
    }

    /// The arrows between different rooms, by their numbers.
    pub fn arrows(&self) -> BTreeSet<(usize, usize)> {
        let rooms =
            |mention: &Mention| Some((self.room_of(&mention.from)?, self.room_of(&mention.to)?));
        let arrows = self.mentions.iter().filter_map(rooms);
        arrows.filter(|(from, to)| from != to).collect()
    }
}

/// Tests, and what exists for tests only, may name what they like.
fn is_apart(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    name == "tests.rs" || name == "inspect.rs"
}

/// The module that `file`, below `kernel/src`, is.
fn module_of(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> = file
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if parts
        .last()
        .is_some_and(|last| last == "mod" || last == "lib")
    {
        parts.pop();
    }
    parts
}

/// Where names lead.
struct Names {
    modules: BTreeMap<Vec<String>, PathBuf>,
    /// What a module shows of another by `pub use`: the name, and the path that it stands for.
    shown: BTreeMap<Vec<String>, Vec<String>>,
}

impl Names {
    /// The file that `path`, from the root, leads to: through what modules show of others to the module
    /// that has the rest of it.
    fn file_of(&self, path: &[String]) -> Option<&PathBuf> {
        let mut path = path.to_vec();
        // As many steps as there are names that are shown, at most.
        for _ in 0..=self.shown.len() {
            let through = (1..=path.len()).find_map(|length| {
                let target = self.shown.get(&path[..length])?;
                Some([target.as_slice(), &path[length..]].concat())
            });
            match through {
                Some(longer) => path = longer,
                None => break,
            }
        }
        let module = (0..=path.len())
            .rev()
            .find(|&length| self.modules.contains_key(&path[..length]))?;
        let file = self.modules.get(&path[..module])?;
        (file != Path::new("lib.rs")).then_some(file)
    }
}

/// The paths of a file, from the root.
#[derive(Default)]
struct Paths {
    /// Those that are named, with their lines.
    named: Vec<(usize, Vec<String>)>,
    /// Those that are shown by `pub use`, with the names that they get.
    shown: Vec<(String, Vec<String>)>,
}

/// A path, from the root, with its line and the name that `as` gives it.
struct Found {
    line: usize,
    path: Vec<String>,
    alias: Option<String>,
}

impl Found {
    /// As something that is shown: its name, and the path.
    fn shown(self) -> Option<(String, Vec<String>)> {
        let name = self.alias.or_else(|| self.path.last().cloned())?;
        Some((name, self.path))
    }
}

/// The paths in `source`.
fn paths_of(source: &Source) -> Paths {
    let mut paths = Paths::default();
    if let Ok(tokens) = source.text.parse::<TokenStream>() {
        paths_in(tokens, &module_of(&source.path), &mut paths);
    }
    paths
}

/// Adds the paths in `tokens` of the module `here`.
fn paths_in(tokens: TokenStream, here: &[String], paths: &mut Paths) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut i = 0;
    while i < tokens.len() {
        match &tokens[i] {
            TokenTree::Group(group) => {
                // What is tested only may name what it likes.
                if !is_test_module(&tokens[..i]) && !is_public(&tokens[..i]) {
                    let inner = [here, &inner_module(&tokens[..i])].concat();
                    paths_in(group.stream(), &inner, paths);
                }
                i += 1;
            }
            TokenTree::Ident(ident) => {
                let is_shown = is_used(&tokens[..i]) && is_public(&tokens[..i - 1]);
                let base = match ident.to_string().as_str() {
                    _ if i >= 2 && is_colons(&tokens[i - 2..i]) => None,
                    "crate" => Some(Vec::new()),
                    "super" => Some(here[..here.len().saturating_sub(1)].to_vec()),
                    "self" if follows_colons(&tokens, i + 1) => Some(here.to_vec()),
                    // A module within this one, or another crate, which is no module at all.
                    name if is_used(&tokens[..i]) => {
                        let mut path = here.to_vec();
                        path.push(name.to_owned());
                        Some(path)
                    }
                    _ => None,
                };
                i += 1;
                if let Some(base) = base {
                    let mut found = Vec::new();
                    i = tree(&tokens, i, base, ident.span().start().line, &mut found);
                    if is_shown {
                        paths
                            .shown
                            .extend(found.into_iter().filter_map(Found::shown));
                    } else {
                        let named = found.into_iter().map(|found| (found.line, found.path));
                        paths.named.extend(named);
                    }
                }
            }
            _ => i += 1,
        }
    }
}

/// Follows a path from `tokens[i]` on, which continues `base`: also into the braces of a `use`. Returns
/// where it ends.
fn tree(
    tokens: &[TokenTree],
    mut i: usize,
    mut base: Vec<String>,
    line: usize,
    found: &mut Vec<Found>,
) -> usize {
    while follows_colons(tokens, i) {
        match tokens.get(i + 2) {
            Some(TokenTree::Ident(ident)) if ident == "super" => {
                base.pop();
                i += 3;
            }
            Some(TokenTree::Ident(ident)) => {
                if ident != "self" {
                    base.push(ident.to_string());
                }
                i += 3;
            }
            Some(TokenTree::Group(group)) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let parts = inner.split(
                    |token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','),
                );
                for part in parts {
                    if let Some(TokenTree::Ident(ident)) = part.first() {
                        let mut path = base.clone();
                        if ident != "self" {
                            path.push(ident.to_string());
                        }
                        tree(part, 1, path, ident.span().start().line, found);
                    }
                }
                return i + 3;
            }
            _ => break,
        }
    }
    let alias = match (tokens.get(i), tokens.get(i + 1)) {
        (Some(word), Some(TokenTree::Ident(alias))) if word.to_string() == "as" => {
            Some(alias.to_string())
        }
        _ => None,
    };
    if !base.is_empty() {
        found.push(Found {
            line,
            path: base,
            alias,
        });
    }
    i
}

/// Whether `before` ends with `use`.
fn is_used(before: &[TokenTree]) -> bool {
    before
        .last()
        .is_some_and(|token| token.to_string() == "use")
}

/// Whether `before` ends with `pub`, perhaps with where to.
fn is_public(before: &[TokenTree]) -> bool {
    let is = |token: Option<&TokenTree>| token.is_some_and(|token| token.to_string() == "pub");
    match before {
        [.., token, TokenTree::Group(_)] => is(Some(token)),
        _ => is(before.last()),
    }
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    tokens.iter().all(is_colon)
}

fn follows_colons(tokens: &[TokenTree], i: usize) -> bool {
    tokens.get(i..i + 2).is_some_and(is_colons)
}

/// The name of the module whose braces come behind `before`, if that is one.
fn inner_module(before: &[TokenTree]) -> Vec<String> {
    match before {
        [.., word, TokenTree::Ident(name)] if word.to_string() == "mod" => vec![name.to_string()],
        _ => Vec::new(),
    }
}

/// Whether `before` ends with `#[cfg(test)] mod NAME`.
fn is_test_module(before: &[TokenTree]) -> bool {
    let texts: Vec<String> = before
        .iter()
        .rev()
        .take(4)
        .map(ToString::to_string)
        .collect();
    matches!(texts.as_slice(), [_, word, attribute, _] if word == "mod" && attribute.contains("cfg") && attribute.contains("test"))
}

/// The rule: no arrow goes up.
pub fn rule() -> Verdict {
    match House::read() {
        Ok(house) => Verdict::of(house.violations()),
        Err(error) => Verdict::Broken(vec![format!("{error:#}")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        [[room]]
        name = "upper"
        about = ""
        paths = ["up", "low/high.rs"]

        [[room]]
        name = "lower"
        about = ""
        paths = ["low"]
    "#;

    /// What the rule says of these files.
    fn violations(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse(*path, (*text).to_owned()).unwrap())
            .collect();
        House::of(TABLE, &sources).unwrap().violations()
    }

    /// Whether `text`, in the lower room, names the upper one.
    fn goes_up(text: &str) -> bool {
        let files = [
            ("low/mod.rs", "pub mod a; pub mod high;"),
            ("low/a.rs", text),
            ("low/high.rs", ""),
            (
                "up/mod.rs",
                "pub mod b; pub use self::b::Shown; pub use crate::low::a as below;",
            ),
            ("up/b.rs", "use crate::low::a;"),
        ];
        !violations(&files).is_empty()
    }

    #[test]
    fn an_arrow_down_is_allowed_and_one_up_is_found() {
        assert!(!goes_up(""));
        assert!(!goes_up(
            "use crate::low; use super::a; use core::cell::Cell;"
        ));
        assert!(goes_up("use crate::up;"));
        assert!(goes_up("use crate::up::b::Thing;"));
        assert!(goes_up("use crate::{low::a, up::b};"));
        assert!(goes_up("use crate::low::{self, high};"));
        assert!(goes_up("use super::high::Thing as Other;"));
        assert!(goes_up("fn f() { crate::up::b::g() }"));
        assert!(goes_up("fn f(x: &crate::up::Shown) {}"));
        assert!(goes_up("fn f() { print!(\"{}\", crate::up::b::X) }"));
        assert!(goes_up("mod inner { use super::super::high; }"));
    }

    #[test]
    fn what_a_module_shows_of_another_is_the_others() {
        assert!(!goes_up("use crate::up::below::Thing;"));
    }

    #[test]
    fn tests_and_visibilities_are_no_arrows() {
        assert!(!goes_up("#[cfg(test)] mod tests { use crate::up::b; }"));
        assert!(!goes_up("pub(in crate::up) fn f() {}"));
        assert!(!goes_up("/// See [`crate::up::b`].\nfn f() {}"));
    }

    #[test]
    fn a_file_in_no_room_is_refused() {
        let source = Source::parse("other.rs", String::new()).unwrap();
        let error = House::of(TABLE, &[source]).err().unwrap().to_string();
        assert!(error.contains("other.rs is in no room"), "{error}");
    }
}
