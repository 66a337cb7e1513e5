//! How much source the generic kernel has, and how long its functions are.
//!
//! Counted are lines that are neither blank nor comment. Generic is what no machine, no boot and no trace
//! needs for itself: everything below `kernel/src` but `arch/`, `boot/`, `trace/` and `mem/log.rs`, and but what is
//! compiled for hosts only, to test and to look inside: modules and files under `#[cfg(test)]` or
//! `#[cfg(not(target_os = "none"))]`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::source::{collect, is_rust, Source};
use super::Verdict;
use crate::workspace;

const KERNEL: &str = "kernel/src";
/// Folders and files that are not generic. The memory of traces is in `mem/` for its `unsafe` alone.
const APART: [&str; 4] = ["arch", "boot", "trace", "mem/log.rs"];
/// Maximum lines of the generic kernel, and of one of its functions: 8,000 for what it does, and what it does once more,
/// quicker (`fast/`); 110 by which its longest paths are shorter: loops taken apart, where the compiler does not;
/// 40 for queues that are lists while they are emptied; 70 for a level of a lookup in ten instructions, and for senders that
/// take other places while they are cancelled; 35 for what entry and exit know of a core, which was in `arch/`; 165 for a search
/// whose steps do not ask whether they are at a leaf (`mem/branch.rs`); 80 for what paths are longest, and which are never
/// gone.
const LINES: usize = 9_750;
const FUNCTION: usize = 60;

/// What was counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub lines: usize,
    /// The longest function: its lines, and its file and name.
    pub longest: (usize, String),
    /// Functions that are too long.
    findings: Vec<String>,
}

impl Count {
    /// Counts the kernel's source.
    ///
    /// # Errors
    /// A file cannot be read, or is not Rust.
    pub fn read() -> Result<Self> {
        let folder = workspace::root().join(KERNEL);
        let mut paths = Vec::new();
        collect(&folder, &is_rust, &mut paths)?;
        paths.sort();
        let mut sources = Vec::new();
        for path in paths {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(&folder).unwrap_or(&path).to_owned();
            sources.push(Source::parse(path, text)?);
        }
        Ok(Self::of(&sources))
    }

    /// Counts `sources`, whose paths are relative to `kernel/src`.
    fn of(sources: &[Source]) -> Self {
        let parts: BTreeMap<&Path, Parts> = sources
            .iter()
            .map(|source| (source.path.as_path(), Parts::of(source)))
            .collect();
        let hosts: BTreeSet<&PathBuf> = parts.values().flat_map(|parts| &parts.files).collect();
        let mut count = Count::default();
        for source in sources {
            let is_apart = APART.iter().any(|folder| source.path.starts_with(folder));
            if is_apart || hosts.iter().any(|host| source.path.starts_with(host)) {
                continue;
            }
            let parts = &parts[source.path.as_path()];
            let code = code_lines(&source.text);
            let in_host = |line: &usize| parts.inline.iter().any(|inline| inline.contains(line));
            count.lines += code.iter().filter(|line| !in_host(line)).count();
            for (name, lines) in &parts.functions {
                let length = code.iter().filter(|line| lines.contains(line)).count();
                if lines.clone().any(|line| in_host(&line)) {
                    continue;
                }
                let place = format!("{KERNEL}/{}: {name}", source.path.display());
                if length > FUNCTION {
                    count.findings.push(format!(
                        "{place} has {length} lines: divide it into functions of at most {FUNCTION}"
                    ));
                }
                if length > count.longest.0 {
                    count.longest = (length, place);
                }
            }
        }
        count
    }

    /// What breaks the rule.
    fn violations(mut self) -> Vec<String> {
        if self.lines > LINES {
            self.findings.push(format!(
                "the generic kernel has {} lines: at most {LINES} are right; find what it says twice",
                self.lines
            ));
        }
        self.findings
    }

    /// The figures with their limits, to be printed.
    pub fn describe(&self) -> String {
        let (length, place) = &self.longest;
        format!(
            "{} of {LINES} lines of source; the longest function has {length} of {FUNCTION} ({place})",
            self.lines
        )
    }
}

/// Numbers of the lines, from 1, that are neither blank nor comment.
fn code_lines(text: &str) -> Vec<usize> {
    let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
    let lines = text.lines().zip(1..);
    let code = lines.filter(|(line, _)| is_code(line.trim()));
    code.map(|(_, number)| number).collect()
}

type Lines = std::ops::RangeInclusive<usize>;

/// What a file has that is counted in its own way.
#[derive(Default)]
struct Parts {
    here: PathBuf,
    /// Modules within the file that only hosts have.
    inline: Vec<Lines>,
    /// Files and folders, below `kernel/src`, of other modules that only hosts have.
    files: Vec<PathBuf>,
    functions: Vec<(String, Lines)>,
}

impl Parts {
    fn of(source: &Source) -> Self {
        let mut here = source.path.with_extension("");
        if here.ends_with("mod") || here.ends_with("lib") {
            here.pop();
        }
        let mut parts = Parts {
            here,
            ..Parts::default()
        };
        parts.visit_file(&source.syntax);
        parts
    }

    fn function(&mut self, name: &syn::Ident, span: Span) {
        self.functions.push((name.to_string(), lines(span)));
    }
}

fn lines(span: Span) -> Lines {
    span.start().line..=span.end().line
}

/// Whether one of `attributes` keeps what it is about from the bare machine.
fn is_for_hosts(attributes: &[syn::Attribute]) -> bool {
    let conditions = attributes.iter().filter(|it| it.path().is_ident("cfg"));
    let mut conditions = conditions.filter_map(|it| it.meta.require_list().ok());
    conditions.any(|it| {
        let condition = it.tokens.to_string().replace(' ', "");
        condition == "test" || condition == "not(target_os=\"none\")"
    })
}

impl<'ast> Visit<'ast> for Parts {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if is_for_hosts(&module.attrs) {
            if module.content.is_some() {
                self.inline.push(lines(module.span()));
            } else {
                let path = self.here.join(module.ident.to_string());
                self.files.push(path.with_extension("rs"));
                self.files.push(path);
            }
        }
        visit::visit_item_mod(self, module);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig.ident, function.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, function.span());
        visit::visit_impl_item_fn(self, function);
    }
}

/// The rule: neither the whole nor a function is too long.
pub fn rule() -> Verdict {
    match Count::read() {
        Ok(count) => Verdict::of(count.violations()),
        Err(error) => Verdict::Broken(vec![format!("{error:#}")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(files: &[(&str, &str)]) -> Count {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse(*path, (*text).to_owned()).unwrap())
            .collect();
        Count::of(&sources)
    }

    #[test]
    fn code_counts_and_comments_and_blank_lines_do_not() {
        let text = "//! A file.\n\n/// A function.\nfn f() {\n    // Nothing.\n}\n";
        assert_eq!(count(&[("a.rs", text)]).lines, 2);
    }

    #[test]
    fn machines_boot_and_traces_do_not_count() {
        let files = ["arch/mod.rs", "boot/elf.rs", "trace/calls.rs", "mem/mod.rs"];
        assert_eq!(count(&files.map(|file| (file, "fn f() {}"))).lines, 1);
    }

    #[test]
    fn what_only_hosts_have_does_not_count() {
        let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        assert_eq!(count(&[("a.rs", text)]).lines, 1);
        let files = [
            ("a.rs", "#[cfg(not(target_os = \"none\"))]\nmod inspect;"),
            ("a/inspect.rs", "fn f() {}\nfn g() {}"),
            ("b.rs", "#[cfg(feature = \"smp\")]\nmod inspect;"),
            ("b/inspect.rs", "fn f() {}\nfn g() {}"),
        ];
        assert_eq!(count(&files).lines, 2 + 2 + 2);
    }

    #[test]
    fn a_function_that_is_too_long_is_found() {
        let function = |lines| format!("fn long() {{\n{}}}\n", "f();\n".repeat(lines - 2));
        let found = count(&[("a.rs", &function(FUNCTION))]);
        assert_eq!(found.longest, (FUNCTION, format!("{KERNEL}/a.rs: long")));
        assert!(found.violations().is_empty());
        let found = count(&[("a.rs", &function(FUNCTION + 1))]).violations();
        assert!(found[0].contains("a.rs: long has 61 lines"), "{found:?}");
        let within = format!("struct S;\nimpl S {{\n{}}}\n", function(FUNCTION + 1));
        assert_eq!(count(&[("a.rs", &within)]).violations().len(), 1);
    }

    #[test]
    fn a_kernel_that_is_too_long_is_found() {
        let text = "const X: u8 = 0;\n".repeat(LINES);
        assert!(count(&[("a.rs", &text)]).violations().is_empty());
        let found = count(&[("a.rs", &text), ("b.rs", "fn f() {}")]).violations();
        let lines = LINES + 1;
        assert!(
            found[0].contains(&format!("has {lines} lines")),
            "{found:?}"
        );
    }

    #[test]
    fn the_kernel_keeps_the_rule() {
        assert_eq!(Count::read().unwrap().violations(), Vec::<String>::new());
    }
}
