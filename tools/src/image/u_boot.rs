//! Images for aarch64: disks from which U-Boot starts a system, as it starts Linux.
//!
//! The disk has one partition, of FAT, with the kernel as a flat image, the root task, and the configuration by which U-Boot's
//! usual start finds both (`extlinux/extlinux.conf`). U-Boot gives the kernel the board's device tree, in which it has
//! written down where the root task is.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{bail, ensure, Context, Result};

use super::{Contents, TIME};
use crate::kernel::flat_image;
use crate::toolchain::find_on_path;

/// Debian's package with the programs that make file systems.
const PACKAGE: &str = "mtools";

/// What U-Boot does.
const CONFIGURATION: &str = "\
DEFAULT sandglass
LABEL sandglass
  LINUX /boot/kernel.img
  INITRD /boot/root-task.elf
";

/// Files in the folder of contents that are copied into the image, and where they are there.
const FILES: [(&str, &str); 3] = [
    ("kernel.img", "::/boot/kernel.img"),
    ("root-task.elf", "::/boot/root-task.elf"),
    ("extlinux.conf", "::/extlinux/extlinux.conf"),
];

const SECTOR: u64 = 512;
/// First sector of the partition: where a MiB begins.
const PARTITION: u64 = 2048;
/// Room for what belongs to the file system alone, and the smallest partition, in bytes.
const ROOM: u64 = 2 << 20;
const LEAST: u64 = 16 << 20;
/// From so many bytes on, the file system has long numbers of clusters (FAT32), for which it must not be small.
const LONG_NUMBERS: u64 = 512 << 20;

/// Offset of the table of partitions in the first sector, and what that sector ends with.
const TABLE: usize = 446;
const SIGNATURE: [u8; 2] = [0x55, 0xaa];
/// A partition that is looked at for what boots, of FAT, whose place is told by numbers of sectors alone.
const BOOTABLE: u8 = 0x80;
const FAT16: u8 = 0x0e;
const FAT32: u8 = 0x0c;
const NO_GEOMETRY: [u8; 3] = [0xfe, 0xff, 0xff];

/// Makes an image of a kernel and a root task.
///
/// # Errors
/// What makes images is not installed, or fails; or a file cannot be read or written.
pub fn make(kernel: &Path, root_task: &Path, output: &Path) -> Result<()> {
    let contents = Contents::new("")?;
    contents.copy(&flat_image(kernel)?, FILES[0].0)?;
    contents.copy(root_task, FILES[1].0)?;
    contents.write(CONFIGURATION, FILES[2].0)?;
    let bytes = size(&contents)?;
    let disk = contents.path("disk.img");
    partition(&disk, bytes).with_context(|| format!("cannot write {}", disk.display()))?;
    let mtools = Mtools {
        disk: format!("{}@@{}", disk.display(), PARTITION * SECTOR),
    };
    let sectors = (bytes / SECTOR).to_string();
    let long = (bytes >= LONG_NUMBERS).then_some("-F");
    let format = ["-T", &sectors, "-N", "0", "-v", "SANDGLASS"];
    mtools.run("mformat", long.into_iter().chain(format).chain(["::"]))?;
    mtools.run("mmd", ["::/boot", "::/extlinux"])?;
    for (name, place) in FILES {
        let file = contents.path(name);
        let file = file.to_str().context("the path is not UTF-8")?;
        mtools.run("mcopy", [file, place])?;
    }
    fs::copy(&disk, output).with_context(|| format!("cannot write {}", output.display()))?;
    Ok(())
}

/// Bytes of a partition with the files, a whole number of MiB.
fn size(contents: &Contents) -> Result<u64> {
    let mut bytes = ROOM;
    for (name, _) in FILES {
        let file = contents.path(name);
        let metadata = fs::metadata(&file);
        let metadata = metadata.with_context(|| format!("cannot read {}", file.display()))?;
        bytes += metadata.len();
    }
    // An eighth more, because clusters at the ends of files are not full.
    let bytes = (bytes + bytes / 8).max(LEAST).next_multiple_of(1 << 20);
    ensure!(
        bytes <= u64::from(u32::MAX),
        "the system has {bytes} bytes, too many for a file system that every U-Boot reads"
    );
    Ok(bytes)
}

/// Makes an empty disk with one partition of so many bytes.
fn partition(disk: &Path, bytes: u64) -> Result<()> {
    File::create(disk)?.set_len(PARTITION * SECTOR + bytes)?;
    let kind = match bytes {
        LONG_NUMBERS.. => FAT32,
        _ => FAT16,
    };
    let mut sector = Vec::from([0; TABLE]);
    sector.push(BOOTABLE);
    sector.extend(NO_GEOMETRY);
    sector.push(kind);
    sector.extend(NO_GEOMETRY);
    for number in [PARTITION, bytes / SECTOR] {
        sector.extend(u32::try_from(number)?.to_le_bytes());
    }
    sector.resize(SECTOR as usize - SIGNATURE.len(), 0);
    sector.extend(SIGNATURE);
    let mut file = OpenOptions::new().write(true).open(disk)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.write_all(&sector)?)
}

/// Programs that write to a file system in a file.
struct Mtools {
    /// The disk, and where on it.
    disk: String,
}

impl Mtools {
    fn run<'a>(&self, program: &str, arguments: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let Some(path) = find_on_path(program) else {
            bail!("`{program}` is not installed: on Debian, `apt-get install {PACKAGE}`");
        };
        let mut command = Command::new(path);
        command.args(["-i", &self.disk]).args(arguments);
        command.env("SOURCE_DATE_EPOCH", TIME).stdin(Stdio::null());
        let made = command.output();
        let made = made.with_context(|| format!("cannot run {program}"))?;
        ensure!(
            made.status.success(),
            "{program} failed ({}):\n{}",
            made.status,
            String::from_utf8_lossy(&made.stderr).trim()
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_is_where_its_table_says() {
        let folder = std::env::temp_dir().join(format!("sandglass-disk-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let disk = folder.join("disk.img");
        partition(&disk, 16 << 20).unwrap();
        let bytes = fs::read(&disk).unwrap();
        fs::remove_file(&disk).unwrap();
        assert_eq!(bytes.len(), 17 << 20);
        assert_eq!(bytes[510..512], SIGNATURE);
        let entry = &bytes[TABLE..TABLE + 16];
        assert_eq!((entry[0], entry[4]), (BOOTABLE, FAT16));
        assert_eq!(entry[8..12], 2048u32.to_le_bytes());
        assert_eq!(entry[12..16], 32_768u32.to_le_bytes());
    }
}
