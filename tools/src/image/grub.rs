//! Images for x86_64: disks that boot through BIOS and through UEFI, with GRUB as their boot loader.
//!
//! The image is what `grub-mkrescue` makes: a hybrid of CD and disk with a boot sector for BIOS and
//! an EFI system partition. It holds the kernel, which GRUB starts by Multiboot2, the root task as
//! its module, and the modules of GRUB that this takes.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{bail, ensure, Context, Result};

use super::{Contents, TIME};
use crate::toolchain::find_on_path;

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
    let contents = Contents::new("boot/grub")?;
    contents.add(kernel, "boot/kernel.elf")?;
    // What is packed behind it belongs to no section, and stripping would drop it.
    contents.copy(root_task, "boot/root-task.elf")?;
    contents.write(CONFIGURATION, "boot/grub/grub.cfg")?;

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
