//! The root tasks in C: built by their own Makefile, which needs nothing of ours.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{bail, Context, Result};

use crate::arch::Arch;
use crate::side_by_side;
use crate::toolchain::find_on_path;
use crate::workspace;

/// Their folder in the repository.
pub const FOLDER: &str = "systems/c-roots";

/// The compiler of programs for aarch64, and Debian's package of it.
pub const AARCH64_COMPILER: (&str, &str) = ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu");

/// Builds all programs for an architecture; returns the folder of the ELF files, `NAME.elf`.
///
/// # Errors
/// `make` or a compiler is not installed; or something does not build, with the compiler's messages.
pub fn build(arch: Arch) -> Result<PathBuf> {
    make(arch, "all")
}

/// Builds the files that no kernel may start; returns the folder of `NAME.elf`.
///
/// # Errors
/// As [`build`].
pub fn build_refused() -> Result<PathBuf> {
    Ok(make(Arch::X86_64, "refused")?.join("refused"))
}

/// Makes `target` in a folder of the target directory, which it returns.
fn make(arch: Arch, target: &str) -> Result<PathBuf> {
    let Some(make) = find_on_path("make") else {
        bail!("`make` is not installed: on Debian, `apt-get install make`");
    };
    let (compiler, package) = AARCH64_COMPILER;
    if arch == Arch::Aarch64 && find_on_path(compiler).is_none() {
        bail!("`{compiler}` is not installed: on Debian, `apt-get install {package}`");
    }
    let out = workspace::target_dir().join("c-roots");
    let out = match arch {
        Arch::X86_64 => out,
        Arch::Aarch64 => out.join(arch.name()),
    };
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    // Nobody else may build there at the same time.
    let lock_path = out.join("sandglass.lock");
    let lock = File::create(&lock_path)
        .with_context(|| format!("cannot write {}", lock_path.display()))?;
    lock.lock()
        .with_context(|| format!("cannot lock {}", lock_path.display()))?;

    eprintln!("building {FOLDER} ({target}, {})", arch.name());
    let jobs = side_by_side::workers(usize::MAX);
    let mut command = Command::new(make);
    command
        .arg("--directory")
        .arg(workspace::root().join(FOLDER))
        .args(["--silent", "--jobs", &jobs.to_string(), target])
        .arg(format!("ARCH={}", arch.name()))
        .arg(format!("OUT={}", seen_from_makefile(&out).display()))
        // What an outer make has set for its own children.
        .env_remove("MAKEFLAGS")
        .stdin(Stdio::null());
    let output = command.output().context("cannot run make")?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{FOLDER} does not build:\n{}", messages.trim_end());
    }
    eprint!("{messages}");
    Ok(out)
}

/// The path of `folder` as the Makefile may have it: relative within the repository, whose own
/// path may contain what `make` takes for a separator.
fn seen_from_makefile(folder: &Path) -> PathBuf {
    match folder.strip_prefix(workspace::root()) {
        Ok(relative) => Path::new(FOLDER)
            .components()
            .map(|_| Path::new(".."))
            .collect::<PathBuf>()
            .join(relative),
        Err(_) => folder.to_path_buf(),
    }
}
