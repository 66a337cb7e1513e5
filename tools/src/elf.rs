//! Programs for this kernel, told apart from other files by their first bytes: before anything is built, and without
//! reading what may never end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use object::elf::{FileHeader64, ET_EXEC, NT_GNU_ABI_TAG, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::LittleEndian;

use crate::arch::Arch;

/// Bytes that are read: headers, and the notes, which linkers put behind them.
const HEADER_BYTES: u64 = 4096;
/// Bytes of the largest program: far above what an image can hold, with all that a debugger needs.
const MAX_BYTES: u64 = 256 << 20;
/// In a note of the ABI: the operating system that the program is for (the generic ABI's supplement for Linux).
const ABI_TAG_LINUX: u32 = 0;
/// Bytes of text that are shown.
const SHOWN: usize = 16;

/// The begin of a regular file of bounded size.
///
/// # Errors
/// It is none, is empty, or cannot be read.
pub fn read_header(path: &Path) -> io::Result<Vec<u8>> {
    let data = path.metadata()?;
    if data.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    // Opening a pipe could wait for ever.
    if !data.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if data.len() == 0 {
        return Err(io::Error::other("it is empty"));
    }
    if data.len() > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it has {} MiB, more than the {} MiB that a program may have",
            data.len() >> 20,
            MAX_BYTES >> 20
        )));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(HEADER_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file that begins like this may be a program for this kernel on `arch`: a position-dependent 64-bit executable,
/// and not one for Linux.
///
/// # Errors
/// What it is instead, to be put behind its name.
pub fn check(bytes: &[u8], arch: Arch) -> Result<(), String> {
    let (of, asked) = (check_any(bytes)?.name(), arch.name());
    match of == asked {
        true => Ok(()),
        false => Err(format!("is an ELF file for {of}, not for {asked}")),
    }
}

/// As [`check`], for any architecture that the kernel runs on, which is returned.
///
/// # Errors
/// As there.
pub fn check_any(bytes: &[u8]) -> Result<Arch, String> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err(format!("is not an ELF file: it {}", beginning(bytes)));
    }
    let header = FileHeader64::<LittleEndian>::parse(bytes)
        .map_err(|_| "is not a 64-bit ELF file, or it is cut off")?;
    let endian = header.endian().map_err(|_| "is not little-endian")?;
    let machine = header.e_machine(endian);
    let arch = Arch::ALL
        .into_iter()
        .find(|arch| arch.elf_machine() == machine)
        .ok_or("is an ELF file for a machine other than x86_64 and aarch64")?;
    let segments = header.program_headers(endian, bytes).unwrap_or_default();
    if segments
        .iter()
        .any(|segment| segment.p_type(endian) == PT_INTERP)
    {
        return Err(
            "is dynamically linked: a program for an operating system with shared libraries (link with -static \
             -no-pie, and with this kernel's runtime)"
                .to_owned(),
        );
    }
    if header.e_type(endian) != ET_EXEC {
        return Err(
            "is not a position-dependent executable (link with -static -no-pie)".to_owned(),
        );
    }
    if segments.iter().any(|segment| is_for_linux(segment, bytes)) {
        return Err(
            "is a program for Linux, by its ABI note: its system calls mean something else here (build it with this \
             kernel's runtime, without the C library's start-up code)"
                .to_owned(),
        );
    }
    Ok(arch)
}

/// Whether a segment has the note with which C libraries say that a program is for Linux.
fn is_for_linux(segment: &object::elf::ProgramHeader64<LittleEndian>, bytes: &[u8]) -> bool {
    let Ok(Some(mut notes)) = segment.notes(LittleEndian, bytes) else {
        return false;
    };
    while let Ok(Some(note)) = notes.next() {
        let system = note
            .desc()
            .first_chunk()
            .map(|word| u32::from_le_bytes(*word));
        if note.name() == b"GNU"
            && note.n_type(LittleEndian) == NT_GNU_ABI_TAG
            && system == Some(ABI_TAG_LINUX)
        {
            return true;
        }
    }
    false
}

/// How a file begins that is no program.
fn beginning(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN)];
    let line = shown
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    match std::str::from_utf8(line) {
        Ok(text) if !text.is_empty() && !text.contains(char::is_control) => {
            format!("begins with {text:?}")
        }
        _ => format!("begins with the bytes {shown:02x?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn files_are_told_apart() {
        assert!(check(b"#!/bin/sh\n", Arch::X86_64)
            .unwrap_err()
            .contains("begins with \"#!/bin/sh\""));
        assert!(check(&[0xfe, 1], Arch::X86_64)
            .unwrap_err()
            .contains("the bytes [fe"));
        let own = read_header(Path::new("/proc/self/exe")).unwrap();
        // Programs of the host are linked dynamically.
        assert!(check(&own, Arch::X86_64)
            .unwrap_err()
            .contains("dynamically linked"));
        let mut other = own.clone();
        other[18] = 0xf3;
        assert!(check(&other, Arch::X86_64)
            .unwrap_err()
            .contains("other than x86_64"));
        let mut narrow = own;
        narrow[4] = 1;
        assert!(check(&narrow, Arch::X86_64).unwrap_err().contains("64-bit"));
    }

    #[test]
    fn a_static_program_for_linux_is_recognised() {
        let folder = std::env::temp_dir().join(format!("sandglass-elf-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, program) = (folder.join("a.c"), folder.join("a"));
        std::fs::write(&source, "int main(void) { return 0; }").unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-static", "-no-pie", "-o"])
            .arg(&program)
            .arg(&source);
        assert!(cc.status().unwrap().success());
        let refused = check(&read_header(&program).unwrap(), Arch::X86_64).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(refused.contains("for Linux"), "{refused}");
    }

    #[test]
    fn a_large_file_is_not_read() {
        let path = std::env::temp_dir().join(format!("sandglass-large-{}", std::process::id()));
        File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        let refused = read_header(&path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(refused.contains("256 MiB"), "{refused}");
    }
}
