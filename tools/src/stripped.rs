//! ELF files without what only debuggers read.
//!
//! Kernels and user programs are built with debugging information, several times the size of the rest. Machines get
//! them without it: what a root task is packed with takes the machine's memory, and a capability for each page.

use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{bail, Context, Result};
use object::build::elf::Builder;
use object::Object;

use crate::arch::Arch;
use crate::toolchain::find_on_path;
use crate::workspace;

/// Of GNU binutils, which come with a C compiler.
const OBJCOPY: &str = "objcopy";

/// Writes `from` to `to` without debugging information. One without sections has none, and is copied. Whoever reads `to`
/// meanwhile sees the former file whole; one that would not change stays, with its time, so that cargo does not build again
/// what embeds it.
///
/// # Errors
/// binutils are not installed, or do not understand the file; or a file cannot be written.
pub fn write(from: &Path, to: &Path) -> Result<()> {
    let Some(objcopy) = find_on_path(OBJCOPY) else {
        bail!("`{OBJCOPY}` is not installed: on Debian, `apt-get install binutils`");
    };
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let fresh = to.with_extension(format!("{}.new", unique()));
    let elf = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if !has_sections(&elf) {
        fs::write(&fresh, elf).with_context(|| format!("cannot write {}", fresh.display()))?;
        return replace(&fresh, to);
    }
    let output = Command::new(objcopy)
        .arg("--strip-debug")
        .args([from, &fresh])
        .output()
        .with_context(|| format!("cannot run {OBJCOPY}"))?;
    if !output.status.success() {
        bail!(
            "cannot strip {}: {}",
            from.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    replace(&fresh, to)
}

/// Writes an ELF file with this content as [`write`] does, but with all that it has.
///
/// # Errors
/// It cannot be written.
pub fn write_as_it_is(elf: &[u8], to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let fresh = to.with_extension(format!("{}.new", unique()));
    fs::write(&fresh, elf).with_context(|| format!("cannot write {}", fresh.display()))?;
    replace(&fresh, to)
}

/// Makes `fresh` the file `to`, unless that has the same content.
fn replace(fresh: &Path, to: &Path) -> Result<()> {
    let content = fs::read(fresh).with_context(|| format!("cannot read {}", fresh.display()))?;
    match fs::read(to) {
        Ok(former) if former == content => fs::remove_file(fresh),
        _ => fs::rename(fresh, to),
    }
    .with_context(|| format!("cannot write {}", to.display()))
}

/// As [`write`], of an ELF file with this content.
pub fn write_bytes(elf: &[u8], to: &Path) -> Result<()> {
    let folder = workspace::target_dir().join("stripped");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let whole = folder.join(unique());
    let written = fs::write(&whole, elf)
        .with_context(|| format!("cannot write {}", whole.display()))
        .and_then(|()| write(&whole, to));
    // A file that stays costs room, nothing else.
    let _ = fs::remove_file(whole);
    written
}

fn has_sections(elf: &[u8]) -> bool {
    object::File::parse(elf).is_ok_and(|file| file.sections().next().is_some())
}

/// What the names of sections begin with that only debuggers read.
const DEBUGGERS: &[u8] = b".debug_";

/// The content of an ELF file without debugging information, whatever machine it is for: the host's tools know the host's.
///
/// # Errors
/// It is no ELF file that can be written again.
fn without_debugging(elf: &[u8]) -> Result<Vec<u8>> {
    if !has_sections(elf) {
        return Ok(elf.to_owned());
    }
    let mut file = Builder::read(elf).context("cannot read the ELF file")?;
    for section in file.sections.iter_mut() {
        section.delete = section.name.starts_with(DEBUGGERS);
    }
    file.delete_orphans();
    let mut stripped = Vec::new();
    file.write(&mut stripped)
        .context("cannot strip the ELF file")?;
    Ok(stripped)
}

/// The content of an ELF file for `arch` without debugging information.
///
/// # Errors
/// As [`write`].
pub fn bytes(arch: Arch, elf: &[u8]) -> Result<Vec<u8>> {
    if arch != Arch::X86_64 {
        return without_debugging(elf);
    }
    let copy = workspace::target_dir().join("stripped").join(unique());
    let stripped = write_bytes(elf, &copy)
        .and_then(|()| fs::read(&copy).with_context(|| format!("cannot read {}", copy.display())));
    // A file that stays costs room, nothing else.
    let _ = fs::remove_file(copy);
    stripped
}

/// A name that nobody else has now, also in other containers.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |time| time.as_nanos());
    format!("{}-{time}-{count}", process::id())
}
