//! Files and folders of the repository that the book, its drawings and doc comments name: each
//! exists.
//!
//! A path may be short: `time/schedule.rs` is any file whose path ends so. One that begins with a
//! folder of the kernel's source is the kernel's; in a doc comment, it may also be of the comment's own
//! package. These are taken for paths:
//!
//! - anywhere but in blocks of code, what ends like a source file;
//! - between backticks and in drawings, what begins with a folder of the repository or of the kernel's
//!   source, and what ends with `/`;
//! - in blocks of code, what begins with a folder of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use regex::Regex;

use super::pages::{self, Kind, Page, Piece};
use super::source::collect;
use super::Verdict;
use crate::workspace;

const KERNEL: &str = "kernel/src/";

/// Endings of files that are always the repository's.
const ENDINGS: &[&str] = &[".rs", ".ld", ".svg"];

/// What readers make themselves, and what other repositories have.
const FOREIGN: &[&str] = &[
    "systems/mine",
    "systems/sum",
    "board/BOARD/",
    "lib/microkit.ld",
    "protos/perfetto/",
];

/// Words that stand for any name, as in `kernel/src/invoke/OBJECT.rs`.
const PLACEHOLDERS: &str = r"NAME|OBJECT|TARGET|NN|<[a-z]+>|\\\*|\.\.\.";

/// The rule, for all pages, drawings and doc comments.
pub fn rule() -> Verdict {
    match findings() {
        Ok(findings) => Verdict::of(findings),
        Err(error) => Verdict::Broken(vec![format!("{error:#}")]),
    }
}

fn findings() -> Result<Vec<String>> {
    let tree = Tree::read()?;
    let mut pages = pages::pages()?;
    pages.extend(pages::drawings()?);
    pages.extend(pages::comments()?);
    Ok(pages.iter().flat_map(|page| tree.judge(page)).collect())
}

/// The files and folders of the repository.
struct Tree {
    /// Folders end with `/`.
    paths: Vec<String>,
    /// The numbers of the paths that end so, with whole names.
    endings: BTreeMap<String, Vec<usize>>,
    placeholders: Regex,
}

impl Tree {
    fn read() -> Result<Self> {
        let root = workspace::root();
        let mut files = Vec::new();
        collect(&root, &|_| true, &mut files)?;
        let relative = files
            .iter()
            .filter_map(|file| file.strip_prefix(&root).ok());
        Ok(Self::of(relative.map(|path| path.display().to_string())))
    }

    /// The tree of `files`.
    fn of(files: impl Iterator<Item = String>) -> Self {
        let mut paths = BTreeSet::new();
        for file in files {
            for (at, _) in file.match_indices('/') {
                paths.insert(file[..=at].to_owned());
            }
            paths.insert(file);
        }
        let paths: Vec<String> = paths.into_iter().collect();
        let mut all: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, path) in paths.iter().enumerate() {
            for ending in endings(path) {
                all.entry(ending.to_owned()).or_default().push(number);
            }
        }
        Self {
            endings: all,
            paths,
            placeholders: Regex::new(PLACEHOLDERS).expect("it is a regular expression"),
        }
    }

    /// The paths that `page` names and that do not exist.
    fn judge(&self, page: &Page) -> Vec<String> {
        let mut findings = Vec::new();
        for piece in &page.pieces {
            for path in words(&piece.text).flat_map(alternatives) {
                if self.is_path(piece, &path) && !self.has(&page.path, &path) {
                    let what = format!("there is no `{path}`{}", self.elsewhere(&path));
                    findings.push(page.at(piece.line, &what));
                }
            }
        }
        findings
    }

    /// Whether `word` is meant as a path of the repository.
    fn is_path(&self, piece: &Piece, word: &str) -> bool {
        let in_repository = || {
            let first = word.split_inclusive('/').next().unwrap_or_default();
            first.ends_with('/') && self.paths.binary_search(&first.to_owned()).is_ok()
        };
        let is_source = ENDINGS
            .iter()
            .any(|ending| word.len() > ending.len() && word.ends_with(ending));
        match piece.kind {
            Kind::Block => in_repository(),
            Kind::Prose => is_source,
            Kind::Code => {
                is_source || in_repository() || self.is_kernels(word) || word.ends_with('/')
            }
        }
    }

    /// Whether `word` begins with a folder of the kernel's source.
    fn is_kernels(&self, word: &str) -> bool {
        let Some(at) = word.find('/') else {
            return false;
        };
        let folder = format!("{KERNEL}{}", &word[..=at]);
        self.paths.binary_search(&folder).is_ok()
    }

    /// Whether `word`, in the file `from`, is a path that exists.
    fn has(&self, from: &Path, word: &str) -> bool {
        let is_short = self.paths.binary_search(&word.to_owned()).is_err()
            && self.paths.binary_search(&format!("{word}/")).is_err();
        if !is_short {
            return true;
        }
        if self.placeholders.is_match(&regex::escape(word)) {
            return self.has_like(word);
        }
        let mut found = self.ending_with(word);
        if !self.is_kernels(word) {
            return found.next().is_some();
        }
        let is_comment = from.extension().is_some_and(|ending| ending == "rs");
        let own = from.components().next().filter(|_| is_comment);
        found.any(|path| {
            path.starts_with(KERNEL) || own.is_some_and(|own| Path::new(path).starts_with(own))
        })
    }

    /// The paths that end with `word`, a file or a folder.
    fn ending_with<'t>(&'t self, word: &str) -> impl Iterator<Item = &'t str> {
        let folder = format!("{}/", word.trim_end_matches('/'));
        let found = [self.endings.get(word), self.endings.get(&folder)];
        let found = found.into_iter().flatten().flatten();
        found.map(|&path| self.paths[path].as_str())
    }

    /// Whether a path is like `word`, which has a placeholder.
    fn has_like(&self, word: &str) -> bool {
        let escaped = regex::escape(word.trim_end_matches('/'));
        let pattern = self.placeholders.replace_all(&escaped, "[^/]+");
        let pattern = Regex::new(&format!("(?:^|/){pattern}/?$"));
        pattern.is_ok_and(|pattern| self.paths.iter().any(|path| pattern.is_match(path)))
    }

    /// Where there are files with the name of `path`, for a message.
    fn elsewhere(&self, path: &str) -> String {
        let name = path
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(path);
        let mut same: Vec<&str> = Vec::new();
        for other in &self.paths {
            if other.trim_end_matches('/').rsplit('/').next() == Some(name) {
                same.push(other);
            }
        }
        match same.len() {
            0 => "; nothing has that name".to_owned(),
            1..=4 => format!("; there is {}", same.join(", ")),
            more => format!("; {more} others have that name"),
        }
    }
}

/// `path`, and what is left of it without its first folders.
fn endings(path: &str) -> impl Iterator<Item = &str> {
    let inner = path[..path.len().saturating_sub(1)]
        .match_indices('/')
        .map(|(at, _)| &path[at + 1..]);
    std::iter::once(path).chain(inner)
}

/// The words of `text` that may be paths: without what stands around them. Those that lead out of the
/// repository, or into what is built or hidden, are left out.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || "()[]\"'`;:|=!?&".contains(c);
    text.split(is_between)
        .map(|word| {
            word.trim_end_matches(['.', ',', '>'])
                .trim_start_matches('<')
        })
        .map(|word| word.strip_prefix("./").unwrap_or(word))
        .filter(|word| {
            !word.is_empty()
                && !word.starts_with(['/', '-', '~', '.'])
                && !word.starts_with("target/")
                && !FOREIGN.iter().any(|foreign| word.starts_with(foreign))
        })
}

/// `a/{b,c}` as `a/b` and `a/c`.
fn alternatives(word: &str) -> Vec<String> {
    let braces = word.find('{').zip(word.find('}'));
    match braces {
        Some((begin, end)) if begin < end => word[begin + 1..end]
            .split(',')
            .map(|part| format!("{}{part}{}", &word[..begin], &word[end + 1..]))
            .collect(),
        _ => vec![word.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let files = [
            "kernel/src/time/schedule.rs",
            "kernel/src/mem/objects/mod.rs",
            "model/src/time/pure.rs",
            "tools/src/cli.rs",
            "systems/hello/SYSTEM.toml",
        ];
        Tree::of(files.map(str::to_owned).into_iter())
    }

    /// What the rule says of a page of the book.
    fn findings(text: &str) -> Vec<String> {
        tree().judge(&Page::markdown("docs/src/a.md", text))
    }

    #[test]
    fn what_exists_is_right_in_every_form() {
        for right in [
            "`kernel/src/time/schedule.rs`, `time/schedule.rs`, `schedule.rs:7` and schedule.rs.",
            "`mem/objects`, `mem/`, `objects/`, `kernel/src/{time,mem}`",
            "`kernel/src/time/NAME.rs`, `kernel/src/<room>/schedule.rs`, `systems/*/SYSTEM.toml`",
            "```sh\n./sandglass run systems/hello/SYSTEM.toml\ncat src/none.rs\n```",
            "`target/x.rs`, `../x.rs`, `/boot/x.rs`, https://example.org/kernel/x.rs",
            "`and/or`, I/O, time/space, `04/8.2`, `.rs`",
        ] {
            assert_eq!(findings(right), Vec::<String>::new(), "{right}");
        }
    }

    #[test]
    fn a_path_that_is_not_there_is_found_with_its_place_and_where_its_name_is() {
        let finding = "docs/src/a.md:2: there is no `mem/schedule.rs`; there is \
                       kernel/src/time/schedule.rs";
        assert_eq!(findings("One\n`mem/schedule.rs`"), [finding]);
        for wrong in [
            "`kernel/src/none.rs`",
            "`kernel/none`",
            "`time/none`",
            "`none/`",
            "in none.rs",
            "`none.rs: f`",
            "`kernel/src/{time,none}`",
            "`kernel/src/none/NAME.rs`",
            "`time/pure.rs`",
            "# The file `none.rs`",
            "```sh\n./sandglass run systems/none/SYSTEM.toml\n```",
        ] {
            assert_eq!(findings(wrong).len(), 1, "{wrong}: {:?}", findings(wrong));
        }
    }

    #[test]
    fn a_package_names_its_own_files() {
        let judge = |path: &str| {
            let page = Page::doc_comments(path, "//! See `time/pure.rs`.");
            tree().judge(&page.unwrap()).len()
        };
        assert_eq!(judge("model/src/lib.rs"), 0);
        assert_eq!(judge("kernel/src/lib.rs"), 1);
    }

    #[test]
    fn drawings_are_judged() {
        let page = Page::drawing(
            "docs/src/img/a.svg",
            "<svg><text>time/ none.rs</text></svg>",
        );
        assert_eq!(tree().judge(&page).len(), 1);
    }
}
