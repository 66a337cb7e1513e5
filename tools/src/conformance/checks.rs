//! The checks, as the suite's source names them: in calls of `check("page/section/property", ...)`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use syn::visit::{self, Visit};

use crate::arch::Arch;

/// What checks are calls of.
const CHECK: &str = "check";
const OF_PROFILE: &str = "of_profile";

/// A check's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// All of it.
    pub name: String,
    /// Its first two parts, `03/4.5`; of a malformed name, the whole.
    pub section: String,
    /// The rest; empty in a malformed name.
    pub property: String,
    /// The file's path below `src`, or below the folder there of the one architecture that has the check.
    pub file: PathBuf,
    /// The one architecture that has it; `None` if all have.
    pub arch: Option<Arch>,
}

impl Check {
    pub fn new(name: &str, file: &Path) -> Self {
        let mut parts = name.splitn(3, '/');
        let (section, property) = match (parts.next(), parts.next(), parts.next()) {
            (Some(page), Some(number), Some(property)) => {
                (format!("{page}/{number}"), property.to_owned())
            }
            _ => (name.to_owned(), String::new()),
        };
        Self {
            name: name.to_owned(),
            section,
            property,
            file: file.to_owned(),
            arch: None,
        }
    }

    /// Whether it is run on `arch`.
    pub fn is_of(&self, arch: Arch) -> bool {
        self.arch.is_none_or(|own| own == arch)
    }
}

/// The checks in the folders `page01` to `page08` of `src`, which every architecture has, and of its folders for architectures,
/// in the order of pages, files and lines.
///
/// # Errors
/// A file cannot be read, is no Rust, or names a check otherwise than by a literal.
pub fn read(src: &Path) -> Result<Vec<Check>> {
    read_calls(src, CHECK)
}

/// Those that only other profiles than base have, which are in none of the tables of base: they are calls of `of_profile`.
///
/// # Errors
/// Those of [`read`].
pub fn of_profiles(src: &Path) -> Result<Vec<Check>> {
    read_calls(src, OF_PROFILE)
}

fn read_calls(src: &Path, function: &'static str) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let archs = Arch::ALL.map(|arch| (Some(arch), src.join("arch").join(arch.name())));
    for page in 1..=8 {
        for (arch, base) in [(None, src.to_owned())].iter().chain(&archs) {
            for path in rust_files(&base.join(format!("page{page:02}")))? {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let file = path.strip_prefix(base).unwrap_or(&path);
                let mut own = parse(&text, file, function)
                    .with_context(|| format!("in {}", path.display()))?;
                own.iter_mut().for_each(|check| check.arch = *arch);
                checks.extend(own);
            }
        }
    }
    Ok(checks)
}

/// The Rust files below `folder`, by path; none if there is no such folder.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if !folder.exists() {
        return Ok(files);
    }
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The checks of one file, by the calls of this function.
fn parse(text: &str, file: &Path, function: &'static str) -> Result<Vec<Check>> {
    let mut calls = Calls {
        function,
        names: Vec::new(),
        not_literal: Vec::new(),
    };
    calls.visit_file(&syn::parse_file(text)?);
    if let Some(line) = calls.not_literal.first() {
        bail!("line {line}: the name of a check is no literal");
    }
    Ok(calls
        .names
        .iter()
        .map(|name| Check::new(name, file))
        .collect())
}

/// The calls of a function.
struct Calls {
    function: &'static str,
    names: Vec<String>,
    /// Lines of those whose first argument is no string literal.
    not_literal: Vec<usize>,
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident(self.function)) {
            match call.args.first() {
                Some(syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(name),
                    ..
                })) => self.names.push(name.value()),
                _ => {
                    let start = syn::spanned::Spanned::span(call).start();
                    self.not_literal.push(start.line);
                }
            }
        }
        visit::visit_expr_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_checks_are_found_where_they_are_called() {
        let text = r#"
            // check("comment", a)
            pub const CHECKS: &[Check] = &[check("03/4.5/a-b", a), check("03/4.6/c", b)];
            fn check_all() { other("x"); }
        "#;
        let checks = parse(text, Path::new("page03/tcb.rs"), CHECK).unwrap();
        let sections: Vec<&str> = checks.iter().map(|check| check.section.as_str()).collect();
        assert_eq!(sections, ["03/4.5", "03/4.6"]);
        assert_eq!(checks[0].property, "a-b");
    }

    #[test]
    fn a_name_that_is_no_literal_is_refused() {
        let text = "const C: &[Check] = &[\n check(NAME, a)];";
        let error = parse(text, Path::new("x.rs"), CHECK).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
