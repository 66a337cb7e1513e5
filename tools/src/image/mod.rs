//! `sandglass image`: a disk that boots a system: on PCs through BIOS and through UEFI ([`grub`]), on boards of aarch64 by
//! U-Boot ([`u_boot`]).

mod grub;
mod u_boot;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{ensure, Context, Result};
use sandglass_abi::profile::BASE;

use crate::arch::Arch;
use crate::board;
use crate::boot;
use crate::cli::ImageArgs;
use crate::cores::Cores;
use crate::elf;
use crate::kernel::{self, KernelOptions, Variant};
use crate::profile;
use crate::stripped;
use crate::system::{self, RunImage};
use crate::workspace;

/// Time stamps in the image, seconds since 1970: images of the same content are alike.
const TIME: &str = "946684800";

/// `sandglass image`: the last line of the output is the path of the image.
pub fn run(args: &ImageArgs) -> Result<ExitCode> {
    workspace::ensure_outputs(&args.system, &[Some(&args.output)])?;
    let built_image = RunImage::new()?;
    let (root_task, kernel) = match is_elf(&args.system)? {
        true => of_root_task(args)?,
        false => of_description(args, &built_image)?,
    };
    make(
        kernel.arch,
        &kernel::build(&kernel)?,
        &root_task,
        &args.output,
    )?;
    println!("{}", args.output.display());
    Ok(ExitCode::SUCCESS)
}

/// The root task in an ELF file, and the kernel for it.
fn of_root_task(args: &ImageArgs) -> Result<(PathBuf, KernelOptions)> {
    let arch = boot::ensure_root_task(&args.system)?;
    ensure!(
        args.arch.is_none_or(|asked| asked == arch),
        "`{}` is for {}: without `--arch`, the image is for that",
        args.system.display(),
        arch.name()
    );
    let profile = args.profile.profile;
    let cores = Cores::of_profile(profile, args.smp);
    let kernel = profile::kernel(profile, arch, args.kernel, Variant::Debug, cores)?;
    let kernel = args.speculation.of(kernel)?;
    Ok((args.system.clone(), kernel))
}

/// A described system as `image`, and the kernel for it.
fn of_description(args: &ImageArgs, image: &RunImage) -> Result<(PathBuf, KernelOptions)> {
    ensure!(
        *args.profile.profile == BASE,
        "`{}` is a description, whose programs are built for the base profile: `--profile` is for the ELF file of a root task",
        args.system.display()
    );
    let built = system::build_file(
        &args.system,
        args.arch,
        Some(image.path()),
        args.warnings.deny_warnings,
    )?;
    ensure!(
        built.arch != Arch::Aarch64 || built.board == board::default_devices(),
        "images for aarch64 start QEMU's `{}`, and the system is described for `{}`: `run` and `trace` start it there",
        board::default_devices().name,
        built.board.name
    );
    let cores = match args.smp {
        true => Cores::Smp(built.cores),
        false => built.cores_with(None)?,
    };
    let kernel = built.kernel(args.kernel.unwrap_or(Variant::Debug), cores);
    Ok((built.image, args.speculation.of(kernel)?))
}

/// Whether the file begins as ELF files do: then it is a root task, else a description.
fn is_elf(path: &Path) -> Result<bool> {
    let start = elf::read_header(path)
        .with_context(|| format!("cannot make an image of `{}`", path.display()))?;
    Ok(start.starts_with(b"\x7fELF"))
}

/// Makes an image of a kernel and a root task for an architecture.
///
/// # Errors
/// What makes images is not installed, or fails; or a file cannot be read or written.
pub fn make(arch: Arch, kernel: &Path, root_task: &Path, output: &Path) -> Result<()> {
    eprintln!("making the image");
    match arch {
        Arch::X86_64 => grub::make(kernel, root_task, output),
        Arch::Aarch64 => u_boot::make(kernel, root_task, output),
    }
}

/// A folder for what goes into an image, while it is made.
struct Contents(PathBuf);

impl Contents {
    /// One of this image alone, with an empty folder in it.
    fn new(folder_within: &str) -> Result<Self> {
        // Several images may be made at a time.
        static IMAGES: AtomicU64 = AtomicU64::new(0);
        let folder = workspace::target_dir().join("images").join(format!(
            "{}-{}",
            std::process::id(),
            IMAGES.fetch_add(1, Ordering::Relaxed)
        ));
        let within = folder.join(folder_within);
        fs::create_dir_all(&within)
            .with_context(|| format!("cannot make the folder `{}`", within.display()))?;
        Ok(Self(folder))
    }

    fn folder(&self) -> &Path {
        &self.0
    }

    /// Where `name` is in the folder.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn copy(&self, file: &Path, name: &str) -> Result<()> {
        let target = self.path(name);
        fs::copy(file, &target)
            .with_context(|| format!("cannot copy {} to {}", file.display(), target.display()))?;
        Ok(())
    }

    fn add(&self, file: &Path, name: &str) -> Result<()> {
        stripped::write(file, &self.path(name))
    }

    fn write(&self, text: &str, name: &str) -> Result<()> {
        let target = self.path(name);
        fs::write(&target, text).with_context(|| format!("cannot write {}", target.display()))
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        // A folder that stays costs room, nothing else.
        let _ = fs::remove_dir_all(&self.0);
    }
}
