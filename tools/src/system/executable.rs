//! The executables that a description names: packages of the workspace, or ELF files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, EM_X86_64, ET_EXEC};
use object::read::elf::FileHeader;
use object::LittleEndian;

use super::check::names::help_with;
use crate::program;

/// Where an executable comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executable {
    /// A package of the workspace with a binary of its name, to be built.
    Package(String),
    /// A file.
    File(PathBuf),
}

/// Why there is no such executable.
#[derive(Debug)]
pub struct Missing {
    pub what: String,
    pub help: String,
}

/// Finds the executable that a description in `folder` calls `name`: a path, if it has a `/`, and
/// else a package.
///
/// # Errors
/// There is none, or it is no executable for this machine.
pub fn find(name: &str, folder: &Path) -> Result<Executable, Missing> {
    if name.contains('/') {
        find_file(&folder.join(name))
    } else {
        find_package(name)
    }
}

fn find_file(path: &Path) -> Result<Executable, Missing> {
    let help = "a component's executable is a static x86_64 ELF file; paths are relative to the \
                folder of the description";
    let missing = |what: String| Missing {
        what,
        help: help.to_owned(),
    };
    let shown = path.display();
    let bytes = read_header(path)
        .map_err(|error| missing(format!("cannot read the executable `{shown}`: {error}")))?;
    check_elf(&bytes).map_err(|why| missing(format!("`{shown}` {why}")))?;
    Ok(Executable::File(path.to_owned()))
}

/// Bytes of an ELF file's header, and more than enough.
const HEADER_BYTES: u64 = 4096;

/// The begin of a file. What is none, such as a device that never ends, is not read.
fn read_header(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe could wait for ever.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(HEADER_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether bytes are a position-dependent 64-bit executable for x86_64.
fn check_elf(bytes: &[u8]) -> Result<(), &'static str> {
    let header = FileHeader64::<LittleEndian>::parse(bytes)
        .map_err(|_| "is not a 64-bit ELF file, or it is cut off")?;
    let endian = header.endian().map_err(|_| "is not little-endian")?;
    if header.e_machine(endian) != EM_X86_64 {
        return Err("is an ELF file for a machine other than x86_64");
    }
    if header.e_type(endian) != ET_EXEC {
        return Err("is not a position-dependent executable (link with -static -no-pie)");
    }
    Ok(())
}

fn find_package(name: &str) -> Result<Executable, Missing> {
    let metadata = program::workspace_metadata().map_err(|error| Missing {
        what: format!("cannot look up the executable `{name}`: {error:#}"),
        help: "a name without `/` is a package of the workspace of Sandglass".to_owned(),
    })?;
    let programs = program::packages(&metadata);
    if programs.contains(&name) {
        return Ok(Executable::Package(name.to_owned()));
    }
    let hint = help_with("program", name, programs.into_iter());
    let stop = if hint.ends_with('?') { "" } else { "." };
    Err(Missing {
        what: format!("there is no user program `{name}` in the workspace of Sandglass"),
        help: format!(
            "{hint}{stop} To use an ELF file of your own, write its path, with a `/`: `./{name}`; to build a \
             package with the workspace, add it to `members` of the root `Cargo.toml`"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_must_be_a_user_program() {
        let found = find("launcher", Path::new(".")).unwrap();
        assert_eq!(found, Executable::Package("launcher".to_owned()));
        // A library.
        assert!(find("sandglass-abi", Path::new(".")).is_err());
        let misspelt = find("launcer", Path::new(".")).unwrap_err();
        assert!(
            misspelt.help.contains("did you mean `launcher`?"),
            "{}",
            misspelt.help
        );
    }

    #[test]
    fn files_are_told_apart() {
        let missing = find("./no-such-file", Path::new("/")).unwrap_err();
        assert!(missing.what.contains("/./no-such-file"), "{}", missing.what);
        let endless = find("/dev/zero", Path::new("/")).unwrap_err();
        assert!(
            endless.what.contains("not a regular file"),
            "{}",
            endless.what
        );
        assert!(check_elf(b"#!/bin/sh\n").unwrap_err().contains("ELF"));
        let own = std::fs::read("/proc/self/exe").unwrap();
        // Host programs are position-independent.
        assert!(check_elf(&own).unwrap_err().contains("position-dependent"));
        let mut arm = own.clone();
        arm[18] = 0xb7;
        assert!(check_elf(&arm).unwrap_err().contains("other than x86_64"));
        let mut narrow = own;
        narrow[4] = 1;
        assert!(check_elf(&narrow).unwrap_err().contains("64-bit"));
    }
}
