//! ELF files without what only debuggers read.
//!
//! Kernels and user programs are built with debugging information, several times the size of the rest. Machines get
//! them without it: what a root task is packed with takes the machine's memory, and a capability for each page.

use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{bail, Context, Result};
use object::Object;

use crate::toolchain::find_on_path;
use crate::workspace;

/// Of GNU binutils, which come with a C compiler.
const OBJCOPY: &str = "objcopy";

/// Writes `from` to `to` without debugging information. One without sections has none, and is copied. Whoever reads `to` meanwhile sees the former file whole.
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
        return fs::rename(&fresh, to).with_context(|| format!("cannot write {}", to.display()));
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
    fs::rename(&fresh, to).with_context(|| format!("cannot write {}", to.display()))
}

fn has_sections(elf: &[u8]) -> bool {
    object::File::parse(elf).is_ok_and(|file| file.sections().next().is_some())
}

/// The content of an ELF file without debugging information.
///
/// # Errors
/// As [`write`].
pub fn bytes(elf: &[u8]) -> Result<Vec<u8>> {
    let folder = workspace::target_dir().join("stripped");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let name = unique();
    let (whole, copy) = (folder.join(&name), folder.join(name + ".stripped"));
    let stripped = fs::write(&whole, elf)
        .with_context(|| format!("cannot write {}", whole.display()))
        .and_then(|()| write(&whole, &copy))
        .and_then(|()| fs::read(&copy).with_context(|| format!("cannot read {}", copy.display())));
    for file in [whole, copy] {
        // A file that stays costs room, nothing else.
        let _ = fs::remove_file(file);
    }
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
