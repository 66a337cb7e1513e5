//! `sandglass image`: a disk that boots through BIOS and through UEFI, with GRUB as its boot loader.
//!
//! The image is what `grub-mkrescue` makes: a hybrid of CD and disk with a boot sector for BIOS and
//! an EFI system partition. It holds the kernel, which GRUB starts by Multiboot2, the root task as
//! its module, and the modules of GRUB that this takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{bail, ensure, Context, Result};

use crate::arch::Arch;
use crate::boot;
use crate::cli::ImageArgs;
use crate::cores::Cores;
use crate::elf;
use crate::kernel::{self, KernelOptions};
use crate::stripped;
use crate::system::{self, RunImage};
use crate::toolchain::find_on_path;
use crate::workspace;

/// The program that makes images, and Debian's packages that it needs.
const MAKER: &str = "grub-mkrescue";
const PACKAGES: &str = "grub-pc-bin grub-efi-amd64-bin xorriso mtools";

/// Where GRUB's modules are, and what it is built for: without either, the image would boot one
/// way only.
const GRUB: &str = "/usr/lib/grub";
const PLATFORMS: [&str; 2] = ["i386-pc", "x86_64-efi"];

/// Modules of GRUB that go into the image: to read it, to show something, and to boot. All kinds
/// of partition tables, because GRUB's start-up asks for them.
const MODULES: &str = "normal multiboot2 all_video iso9660 fat \
                       part_acorn part_amiga part_apple part_bsd part_dfly part_dvh part_gpt \
                       part_msdos part_plan part_sun part_sunpc";

/// What GRUB does: the kernel's header asks for a framebuffer, for which drivers must be there.
const CONFIGURATION: &str = "\
set timeout=0
insmod all_video
menuentry \"Sandglass\" {
    multiboot2 /boot/kernel.elf
    module2 /boot/root-task.elf
}
";

/// Time stamps in the image, seconds since 1970: images of the same content are alike.
const TIME: &str = "946684800";

/// `sandglass image`: the last line of the output is the path of the image.
pub fn run(args: &ImageArgs) -> Result<ExitCode> {
    workspace::ensure_writable(&args.output)?;
    let built_image = RunImage::new()?;
    let (root_task, cores) = if is_elf(&args.system)? {
        ensure!(
            boot::ensure_root_task(&args.system)? == Arch::X86_64,
            "`{}` is for another architecture: disk images are for x86_64 only",
            args.system.display()
        );
        (args.system.clone(), Cores::Single)
    } else {
        let built = system::build_file(
            &args.system,
            None,
            Some(built_image.path()),
            args.warnings.deny_warnings,
        )?;
        ensure!(
            built.arch == Arch::X86_64,
            "`{}` is for {}: disk images are for x86_64 only",
            args.system.display(),
            built.arch.name()
        );
        (built.image.clone(), built.cores_with(None)?)
    };
    let kernel = kernel::build(&match args.smp {
        true => KernelOptions::smp(args.kernel),
        false => KernelOptions::on(args.kernel, cores),
    })?;
    make(&kernel, &root_task, &args.output)?;
    println!("{}", args.output.display());
    Ok(ExitCode::SUCCESS)
}

/// Whether the file begins as ELF files do: then it is a root task, else a description.
fn is_elf(path: &Path) -> Result<bool> {
    let start = elf::read_header(path)
        .with_context(|| format!("cannot make an image of `{}`", path.display()))?;
    Ok(start.starts_with(b"\x7fELF"))
}

/// Makes an image of a kernel and a root task.
///
/// # Errors
/// What makes images is not installed, or fails; or a file cannot be read or written.
pub fn make(kernel: &Path, root_task: &Path, output: &Path) -> Result<()> {
    let Some(maker) = find_on_path(MAKER) else {
        bail!("`{MAKER}` is not installed: on Debian, `apt-get install {PACKAGES}`");
    };
    for platform in PLATFORMS {
        ensure!(
            Path::new(GRUB).join(platform).is_dir(),
            "GRUB is not installed for {platform} in {GRUB}: on Debian, `apt-get install {PACKAGES}`"
        );
    }
    let contents = Contents::new(output)?;
    contents.add(kernel, "kernel.elf")?;
    // What is packed behind it belongs to no section, and stripping would drop it.
    contents.copy(root_task, "root-task.elf")?;
    contents.write(CONFIGURATION, "grub/grub.cfg")?;

    eprintln!("making the image");
    let mut command = Command::new(maker);
    command.arg("--output").arg(output);
    command.args(["--install-modules", MODULES]);
    for unused in ["fonts", "themes", "locales"] {
        command.arg(format!("--{unused}="));
    }
    command.arg(contents.folder());
    command.env("SOURCE_DATE_EPOCH", TIME);
    let made = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {MAKER}"))?;
    if !made.status.success() || !output.is_file() {
        bail!(
            "{MAKER} failed ({}):\n{}",
            made.status,
            String::from_utf8_lossy(&made.stderr).trim()
        );
    }
    Ok(())
}

/// The folder of what goes into an image, while it is made.
struct Contents(PathBuf);

impl Contents {
    /// An empty folder, of the image `output` alone.
    fn new(output: &Path) -> Result<Self> {
        let name = output.file_name().context("the image needs a name")?;
        // Several images of one name may be made at a time.
        static IMAGES: AtomicU64 = AtomicU64::new(0);
        let folder = workspace::target_dir().join("images").join(format!(
            "{}-{}-{}",
            name.to_string_lossy(),
            std::process::id(),
            IMAGES.fetch_add(1, Ordering::Relaxed)
        ));
        let grub = folder.join("boot/grub");
        fs::create_dir_all(&grub)
            .with_context(|| format!("cannot make the folder `{}`", grub.display()))?;
        Ok(Self(folder))
    }

    fn folder(&self) -> &Path {
        &self.0
    }

    fn copy(&self, file: &Path, name: &str) -> Result<()> {
        let target = self.0.join("boot").join(name);
        fs::copy(file, &target)
            .with_context(|| format!("cannot copy {} to {}", file.display(), target.display()))?;
        Ok(())
    }

    fn add(&self, file: &Path, name: &str) -> Result<()> {
        let target = self.0.join("boot").join(name);
        stripped::write(file, &target)
    }

    fn write(&self, text: &str, name: &str) -> Result<()> {
        let target = self.0.join("boot").join(name);
        fs::write(&target, text).with_context(|| format!("cannot write {}", target.display()))
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        // A folder that stays costs room, nothing else.
        let _ = fs::remove_dir_all(&self.0);
    }
}
