//! Rules on the source. Files are parsed; what stands inside of macro calls, which a parser
//! cannot see through, is searched token by token.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;

use super::unsafe_places::unsafe_places;
use super::Verdict;
use crate::workspace;

/// A parsed file.
pub struct Source {
    /// Relative to the repository.
    pub path: PathBuf,
    pub text: String,
    pub syntax: syn::File,
}

impl Source {
    /// Parses `text`.
    ///
    /// # Errors
    /// It is not Rust.
    pub fn parse(path: impl Into<PathBuf>, text: String) -> Result<Self> {
        let path = path.into();
        let syntax =
            syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        Ok(Self { path, text, syntax })
    }

    /// A finding at `span`.
    fn at(&self, span: Span, what: &str) -> String {
        self.at_line(span.start().line, what)
    }

    /// A finding at the 1-based `line`.
    pub(super) fn at_line(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path.display())
    }

    fn is_below(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }
}

/// Applies `rule` to every Rust file below `folders` of the repository that has the text `word`. A file without it cannot
/// break the rule, and is not parsed, which is what takes time. A folder that does not exist has no files.
pub fn check(word: &str, rule: fn(&Source) -> Vec<String>, folders: &[&str]) -> Verdict {
    let mut files = Vec::new();
    for folder in folders {
        if let Err(error) = collect(&workspace::root().join(folder), &is_rust, &mut files) {
            return Verdict::Broken(vec![format!("{error:#}")]);
        }
    }
    files.sort();
    let mut findings = Vec::new();
    for file in files {
        let judged = fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))
            .and_then(|text| {
                let path = file.strip_prefix(workspace::root()).unwrap_or(&file);
                match text.contains(word) {
                    true => Source::parse(path, text).map(|source| rule(&source)),
                    false => Ok(Vec::new()),
                }
            });
        match judged {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(format!("{error:#}")),
        }
    }
    Verdict::of(findings)
}

pub(super) fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Adds the files below `folder` that are `wanted`, but for what is built or hidden.
pub(super) fn collect(
    folder: &Path,
    wanted: &dyn Fn(&Path) -> bool,
    files: &mut Vec<PathBuf>,
) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let reading = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.is_dir() {
            let name = path.file_name().map(OsStr::to_string_lossy);
            if name.is_some_and(|name| name != "target" && !name.starts_with('.')) {
                collect(&path, wanted, files)?;
            }
        } else if wanted(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// No `#![feature(...)]`, also not behind a condition.
pub fn no_features(source: &Source) -> Vec<String> {
    source
        .syntax
        .attrs
        .iter()
        .filter(|attribute| {
            attribute.path().is_ident("feature")
                || matches!(&attribute.meta, syn::Meta::List(list)
                    if attribute.path().is_ident("cfg_attr") && asks_for_feature(&list.tokens))
        })
        .map(|attribute| source.at(attribute.span(), "unstable feature; use stable Rust"))
        .collect()
}

/// Whether `feature(...)` stands in `tokens` (`feature = "..."` is a condition).
fn asks_for_feature(tokens: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    tokens.windows(2).any(
        |pair| matches!(pair, [TokenTree::Ident(name), TokenTree::Group(_)] if name == "feature"),
    )
}

/// In the kernel, `unsafe` stands below `arch/` and `mem/` only.
pub fn unsafe_rooms(source: &Source) -> Vec<String> {
    if source.is_below("kernel/src/arch") || source.is_below("kernel/src/mem") {
        return Vec::new();
    }
    unsafe_places(source)
        .iter()
        .map(|place| {
            source.at(
                place.span,
                "`unsafe` outside of kernel/src/arch and kernel/src/mem",
            )
        })
        .collect()
}

/// Folders of the kernel whose root file may have `unsafe` below it. Every other folder's forbids it, so that
/// the compiler refuses it too.
const UNSAFE_ROOMS: &[&str] = &["arch", "mem"];
/// Folders within these whose root file forbids it nevertheless.
const SAFE_WITHIN: &[&str] = &["arch/x86_64/abi/boot", "arch/x86_64/abi/invoke"];

/// The folders that hold the policy forbid `unsafe`.
pub fn forbidden_unsafe(source: &Source) -> Vec<String> {
    let folder = source.path.strip_prefix("kernel/src").ok();
    let folder = folder
        .filter(|path| path.ends_with("mod.rs"))
        .and_then(Path::parent);
    let is_room = folder.is_some_and(|folder| {
        let is_top = folder.components().count() == 1;
        let may = UNSAFE_ROOMS.iter().any(|room| folder == Path::new(room));
        (is_top && !may) || SAFE_WITHIN.iter().any(|within| folder == Path::new(within))
    });
    let forbids = source.syntax.attrs.iter().any(|attribute| {
        attribute.path().is_ident("forbid")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|lint| lint.is_ident("unsafe_code"))
    });
    if is_room && !forbids {
        return vec![source.at_line(1, "lacks `#![forbid(unsafe_code)]`")];
    }
    Vec::new()
}

/// No `static mut` in the kernel, and no static at all outside of `arch/`: any number of kernels
/// live side by side.
pub fn statics(source: &Source) -> Vec<String> {
    let in_arch = source.is_below("kernel/src/arch");
    let mut findings = Vec::new();
    let mut judge = |span: Span, mutable: bool| {
        if mutable {
            findings.push(source.at(span, "`static mut`; keep state in the kernel or the core"));
        } else if !in_arch {
            findings.push(source.at(span, "static outside of kernel/src/arch; use a constant"));
        }
    };
    for_each_shipped_token(&source.syntax, &mut |tokens| match tokens {
        [TokenTree::Punct(tick), TokenTree::Ident(_), ..] if tick.as_char() == '\'' => 2,
        [TokenTree::Ident(name), rest @ ..] if name == "static" => {
            let mutable = matches!(rest, [TokenTree::Ident(next), ..] if next == "mut");
            judge(name.span(), mutable);
            1
        }
        _ => 1,
    });
    findings
}

/// No `dyn` and no function pointer type in the kernel outside of `arch/`.
pub fn dynamic_calls(source: &Source) -> Vec<String> {
    if source.is_below("kernel/src/arch") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for_each_shipped_token(&source.syntax, &mut |tokens| {
        match tokens {
            [TokenTree::Ident(name), ..] if name == "dyn" => {
                findings.push(source.at(name.span(), "`dyn`; use an enum or a generic parameter"));
            }
            [TokenTree::Ident(name), TokenTree::Group(group), ..]
                if name == "fn" && group.delimiter() == Delimiter::Parenthesis =>
            {
                findings.push(source.at(name.span(), "function pointer; use an enum"));
            }
            _ => {}
        }
        1
    });
    findings
}

/// Walks the tokens of a file's items, but for those that only tests have. `see` returns how many
/// tokens it has dealt with.
fn for_each_shipped_token(file: &syn::File, see: &mut dyn FnMut(&[TokenTree]) -> usize) {
    use quote::ToTokens;
    for item in &file.items {
        if !is_for_tests(item) {
            walk(&item.to_token_stream(), see);
        }
    }
}

/// Calls `see` with the rest of the tokens at each position, inside of groups too; it returns
/// how many it has dealt with.
pub(super) fn walk(tokens: &TokenStream, see: &mut dyn FnMut(&[TokenTree]) -> usize) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut position = 0;
    while position < tokens.len() {
        let step = see(&tokens[position..]).max(1);
        for token in &tokens[position..(position + step).min(tokens.len())] {
            if let TokenTree::Group(group) = token {
                walk(&group.stream(), see);
            }
        }
        position += step;
    }
}

/// Whether `item` is a module under `#[cfg(test)]`.
fn is_for_tests(item: &syn::Item) -> bool {
    let syn::Item::Mod(module) = item else {
        return false;
    };
    module.attrs.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(rule: fn(&Source) -> Vec<String>, path: &str, text: &str) -> usize {
        rule(&Source::parse(path, text.to_owned()).unwrap()).len()
    }

    const CAP: &str = "kernel/src/cap/mod.rs";
    const ARCH: &str = "kernel/src/arch/x86_64/mod.rs";

    #[test]
    fn features_are_found_also_behind_a_condition() {
        assert_eq!(findings(no_features, CAP, "#![feature(never_type)]"), 1);
        assert_eq!(
            findings(no_features, CAP, "#![cfg_attr(x, feature(never_type))]"),
            1
        );
        assert_eq!(
            findings(no_features, CAP, "#![cfg_attr(feature = \"x\", no_std)]"),
            0
        );
        assert_eq!(
            findings(no_features, CAP, "#[cfg(feature = \"x\")] fn f() {}"),
            0
        );
    }

    #[test]
    fn unsafe_is_found_outside_of_its_rooms() {
        for text in [
            "fn f() { unsafe { g() } }",
            "unsafe fn f() {}",
            "unsafe impl Send for X {}",
            "unsafe trait T {}",
            "fn f() { m!({ unsafe { g() } }) }",
            "impl X { unsafe fn f() {} }",
        ] {
            assert_eq!(findings(unsafe_rooms, CAP, text), 1, "{text}");
            assert_eq!(findings(unsafe_rooms, ARCH, text), 0, "{text}");
            assert_eq!(
                findings(unsafe_rooms, "kernel/src/mem/a.rs", text),
                0,
                "{text}"
            );
        }
        assert_eq!(
            findings(unsafe_rooms, CAP, "#![forbid(unsafe_code)] // unsafe"),
            0
        );
    }

    #[test]
    fn a_room_that_does_not_forbid_unsafe_is_found() {
        assert_eq!(findings(forbidden_unsafe, CAP, "mod slot;"), 1);
        assert_eq!(
            findings(forbidden_unsafe, CAP, "#![forbid(unsafe_code)] mod slot;"),
            0
        );
        assert_eq!(findings(forbidden_unsafe, ARCH, "mod cpu;"), 0);
        for (path, found) in [
            ("kernel/src/anything/mod.rs", 1),
            ("kernel/src/invoke/tcb/mod.rs", 0),
            ("kernel/src/mem/mod.rs", 0),
            ("kernel/src/arch/mod.rs", 0),
            ("kernel/src/arch/x86_64/abi/invoke/mod.rs", 1),
        ] {
            assert_eq!(findings(forbidden_unsafe, path, "mod a;"), found, "{path}");
        }
    }

    #[test]
    fn statics_are_found() {
        assert_eq!(findings(statics, CAP, "static X: u8 = 0;"), 1);
        assert_eq!(findings(statics, ARCH, "static X: u8 = 0;"), 0);
        assert_eq!(findings(statics, ARCH, "static mut X: u8 = 0;"), 1);
        assert_eq!(findings(statics, CAP, "fn f() { static X: u8 = 0; }"), 1);
        assert_eq!(findings(statics, CAP, "fn f(x: &'static u8) {}"), 0);
        assert_eq!(findings(statics, CAP, "m! { static mut X: u8 = 0; }"), 1);
    }

    #[test]
    fn dynamic_calls_are_found() {
        assert_eq!(findings(dynamic_calls, CAP, "fn f(x: &dyn T) {}"), 1);
        assert_eq!(
            findings(dynamic_calls, CAP, "struct S { x: fn(u8) -> u8 }"),
            1
        );
        assert_eq!(findings(dynamic_calls, CAP, "m! { x: fn(u8) }"), 1);
        assert_eq!(findings(dynamic_calls, ARCH, "fn f(x: &dyn T) {}"), 0);
        assert_eq!(
            findings(dynamic_calls, CAP, "fn f(x: impl Fn(u8) -> u8) {}"),
            0
        );
        assert_eq!(
            findings(dynamic_calls, CAP, "#[cfg(test)] mod t { type X = fn(); }"),
            0
        );
    }
}
