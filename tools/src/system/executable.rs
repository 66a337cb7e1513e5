//! The executables that a description names: user programs of the project around it, of this
//! repository, programs in C, or ELF files.

use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::elf;

use super::check::names::help_with;
use super::document::{self, Sources, Text};
use super::findings::Span;
use crate::c_program::CProgram;
use crate::program;
use crate::project::{Program, Project};

/// Where an executable comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Executable {
    /// A user program of the project around the description, to be built.
    Own(Program),
    /// A package of this repository with a binary of its name, to be built.
    Package(String),
    /// Sources in C, to be built.
    C(CProgram),
    /// A file.
    File(PathBuf),
}

impl Executable {
    /// Whether it is built from sources.
    pub const fn is_built(&self) -> bool {
        !matches!(self, Self::File(_))
    }
}

/// Why there is no such executable.
#[derive(Debug)]
pub struct Missing {
    pub what: String,
    pub help: String,
    /// Where, if not the whole executable is meant.
    pub span: Option<Span>,
}

impl Missing {
    fn at(self, place: &Text) -> Self {
        Self {
            span: Some(place.span()),
            ..self
        }
    }
}

/// Finds the executable of a description in `folder`, with a project around it or without one.
///
/// # Errors
/// There is none, or it is no executable for this machine.
pub fn find(
    described: &document::Executable,
    folder: &Path,
    project: Option<&Project>,
    arch: Arch,
) -> Result<Executable, Missing> {
    match described {
        document::Executable::Name(name) => find_named(name, folder, project, arch),
        document::Executable::Sources(sources) => sources_in_c(sources, folder),
    }
}

/// Finds what is called `name`: a source in C, by its ending; a path, if it has a `/`; and else a user program, of the
/// project first.
fn find_named(
    name: &str,
    folder: &Path,
    project: Option<&Project>,
    arch: Arch,
) -> Result<Executable, Missing> {
    if name.ends_with(".c") {
        check_source(name, folder)?;
        return Ok(Executable::C(CProgram::new(
            folder,
            &[name.to_owned()],
            &[],
            &[],
        )));
    }
    if !name.contains('/') {
        let own = project.and_then(|project| project.program(name));
        return match own {
            Some(program) => Ok(Executable::Own(program)),
            None => find_package(name, project),
        };
    }
    let path = folder.join(name);
    match project.and_then(|project| project.program_at(&path)) {
        Some(program) => Err(stale(name, program.name())),
        None => find_file(&path, arch),
    }
}

fn sources_in_c(sources: &Sources, folder: &Path) -> Result<Executable, Missing> {
    if sources.c.is_empty() {
        return Err(Missing {
            what: "a program in C needs a source".to_owned(),
            help: "`c = [\"main.c\"]`, with paths relative to the folder of the description"
                .to_owned(),
            span: None,
        });
    }
    for source in &sources.c {
        check_source(source.get_ref(), folder).map_err(|missing| missing.at(source))?;
    }
    for include in &sources.include {
        if !folder.join(include.get_ref()).is_dir() {
            return Err(Missing {
                what: format!("there is no folder `{}`", include.get_ref()),
                help:
                    "`include` lists folders of headers, relative to the folder of the description"
                        .to_owned(),
                span: Some(include.span()),
            });
        }
    }
    let texts = |texts: &'_ [Text]| -> Vec<String> {
        texts.iter().map(|text| text.get_ref().clone()).collect()
    };
    Ok(Executable::C(CProgram::new(
        folder,
        &texts(&sources.c),
        &texts(&sources.include),
        &texts(&sources.flags),
    )))
}

/// Whether there is a source in C of that path.
fn check_source(name: &str, folder: &Path) -> Result<(), Missing> {
    let missing = |what: String| {
        Missing {
        what,
        help: "sources are files in C (`.c`) or in assembly (`.s`, `.S`); paths are relative to the folder of \
               the description"
            .to_owned(),
        span: None,
    }
    };
    let path = folder.join(name);
    let kind = path.extension().and_then(|kind| kind.to_str());
    if !matches!(kind, Some("c" | "s" | "S")) {
        return Err(missing(format!("`{name}` is no source in C")));
    }
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(missing(format!("`{name}` is not a regular file"))),
        Err(error) => Err(missing(format!("cannot read the source `{name}`: {error}"))),
    }
}

/// A file that cargo builds, but not we.
fn stale(path: &str, program: &str) -> Missing {
    Missing {
        what: format!(
            "`{path}` is built by cargo from your project, and may be older than its sources"
        ),
        help: format!("write `executable = \"{program}\"`: then it is built before it is used"),
        span: None,
    }
}

fn find_file(path: &Path, arch: Arch) -> Result<Executable, Missing> {
    let missing = |what: String| {
        Missing {
        what,
        help: format!(
            "a component's executable is a static {} ELF file; paths are relative to the folder of the \
             description",
            arch.name()
        ),
        span: None,
    }
    };
    let shown = path.display();
    let bytes = elf::read_header(path)
        .map_err(|error| missing(format!("cannot use the executable `{shown}`: {error}")))?;
    elf::check(&bytes, arch).map_err(|why| missing(format!("`{shown}` {why}")))?;
    Ok(Executable::File(path.to_owned()))
}

fn find_package(name: &str, project: Option<&Project>) -> Result<Executable, Missing> {
    let metadata = program::workspace_metadata().map_err(|error| Missing {
        what: format!("cannot look up the executable `{name}`: {error:#}"),
        help: "a name without `/` is a user program of your project, or of Sandglass".to_owned(),
        span: None,
    })?;
    let programs = program::packages(&metadata);
    if programs.contains(&name) {
        return Ok(Executable::Package(name.to_owned()));
    }
    if project.is_some_and(|project| project.is_unlinked(name)) {
        return Err(unlinked(name));
    }
    let own: Vec<Program> = project.into_iter().flat_map(Project::programs).collect();
    let own = own.iter().map(Program::name);
    let ready_made = program::ready_made(&metadata);
    let hint = match own.len() {
        // Of the repository, tests and examples may be meant, but are not worth a list.
        0 => help_with_similar(name, &programs, &ready_made),
        _ => help_with("program", name, own.chain(ready_made)),
    };
    let (place, how) = match project {
        Some(_) => (
            "your project or in Sandglass",
            "a user program is a package in `members` of your workspace with `sandglass-build` in its \
             `[build-dependencies]`",
        ),
        None => (
            "the workspace of Sandglass",
            "`./sandglass new` makes a project of your own, whose packages are found by their names; in the \
             workspace of Sandglass, they are `members` of the root `Cargo.toml`",
        ),
    };
    let stop = if hint.ends_with('?') { "" } else { "." };
    Err(Missing {
        what: format!("there is no user program `{name}` in {place}"),
        help: format!(
            "{hint}{stop} For an ELF file that you build otherwise, write its path, with a `/`: `./{name}`; \
             {how}"
        ),
        span: None,
    })
}

/// A package of the project whose binary would not boot.
fn unlinked(name: &str) -> Missing {
    Missing {
        what: format!("the package `{name}` of your project is not linked as a user program"),
        help: "add `sandglass-build` to its `[build-dependencies]`, and a `build.rs` whose `main` calls \
               `sandglass_build::user_program()`"
            .to_owned(),
        span: None,
    }
}

/// As [`help_with`]; what is similar may be any of `programs`, and those of `listed` are worth a list.
fn help_with_similar(name: &str, programs: &[&str], listed: &[&str]) -> String {
    let help = help_with("program", name, programs.iter().copied());
    match help.ends_with('?') {
        true => help,
        false => help_with("ready-made component", name, listed.iter().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_must_be_a_user_program() {
        let found = find_named("launcher", Path::new("."), None, Arch::X86_64).unwrap();
        assert_eq!(found, Executable::Package("launcher".to_owned()));
        // A library.
        assert!(find_named("sandglass-abi", Path::new("."), None, Arch::X86_64).is_err());
        let misspelt = find_named("launcer", Path::new("."), None, Arch::X86_64).unwrap_err();
        assert!(
            misspelt.help.contains("did you mean `launcher`?"),
            "{}",
            misspelt.help
        );
        // The list is of what people use, not of tests.
        let unknown = find_named("something-else", Path::new("."), None, Arch::X86_64).unwrap_err();
        assert!(unknown.help.contains("mode-manager"), "{}", unknown.help);
        assert!(!unknown.help.contains("tests"), "{}", unknown.help);
    }

    #[test]
    fn sources_are_files_in_c() {
        let folder = crate::workspace::root().join("systems/c-roots");
        assert!(find_named("lib/check.c", &folder, None, Arch::X86_64).is_ok());
        for (wrong, why) in [
            ("lib/none.c", "cannot read"),
            ("lib", "no source"),
            ("Makefile", "no source"),
        ] {
            let missing = check_source(wrong, &folder).unwrap_err();
            assert!(missing.what.contains(why), "{}", missing.what);
            assert!(missing.help.contains("`.c`"), "{}", missing.help);
        }
        assert!(check_source("arch/x86_64/crt0.S", &folder).is_ok());
        assert!(check_source("/dev/../dev/zero.c", &folder).is_err());
    }

    #[test]
    fn files_are_told_apart() {
        let missing = find_named("./no-such-file", Path::new("/"), None, Arch::X86_64).unwrap_err();
        assert!(missing.what.contains("/./no-such-file"), "{}", missing.what);
        let endless = find_named("/dev/zero", Path::new("/"), None, Arch::X86_64).unwrap_err();
        assert!(
            endless.what.contains("not a regular file"),
            "{}",
            endless.what
        );
    }
}
