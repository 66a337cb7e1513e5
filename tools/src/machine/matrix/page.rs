//! The page of the book that shows the matrix.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::super::inherited::Place;
use super::{Entry, Kernel, Loader, MACHINES};
use crate::qemu::{second, Emulator};
use crate::workspace;

/// Where it is, in the repository.
const PAGE: &str = "docs/src/reference/machines.md";

const INTRODUCTION: &str = "\
# Machines and processors

What becomes of the root task `hello` on machines of the emulator (QEMU 7.2): it boots, by a clock that was
[measured](../architecture/x86_64.md#the-clock), or the kernel refuses the machine in words, with status 1. None hangs.

`./sandglass machine matrix` boots all of them, and fails if one does not end as the table says; the tests do so for the
machines marked with a star. `./sandglass machine table` has made this page from `tools/src/machine/matrix/entries.rs`; a
test fails when it is out of date.

";

const SECOND: &str = "
## A second emulator

The installed QEMU has no processors in x2APIC mode, and so no more than 255. These machines are of QEMU {VERSION}, which
`./sandglass machine emulator` fetches: Debian's packages for bookworm from its backports, each of a version and a SHA-256 that
the command knows, which are unpacked in the target directory, and run from there. What is installed stays as it is. No test
needs it; `./sandglass machine matrix` says how many machines it leaves out where it is not there
(`--only x2APIC` boots some of these alone).

Firmware hands processors over in x2APIC mode if one of them has a number above 254: SeaBIOS does, which brings the kernel
into that mode, and QEMU's small one for PVH does not: the kernel then leaves those processors alone.

";

const CONCLUSION: &str = "
## What the emulators do not have

Neither has a TSC-deadline mode or an invariant time-stamp counter without the host's. A first processor with a number above
254, which the kernel refuses since I/O APICs do not reach it, cannot be made. Memory above 510 GiB is handed out as device
memory only. No machine of the tables is a real one: for those there is [a checklist](../how-to/new-machine.md).
";

/// The page.
pub fn render() -> String {
    let mut text = INTRODUCTION.to_owned();
    add_table(&mut text, Emulator::Installed);
    text += &SECOND.replace("{VERSION}", second::VERSION);
    add_table(&mut text, Emulator::Second);
    text + CONCLUSION
}

/// The machines of an emulator.
fn add_table(text: &mut String, emulator: Emulator) {
    *text +=
        "| machine | `-machine` | `-cpu` | MiB | `-smp` | kernel, loaded by | what happens |\n";
    *text += "| --- | --- | --- | ---: | --- | --- | --- |\n";
    for entry in MACHINES.iter().filter(|entry| entry.emulator == emulator) {
        add_row(text, entry);
    }
}

fn add_row(text: &mut String, entry: &Entry) {
    let kernel = match entry.kernel {
        Kernel::Debug => "debug",
        Kernel::Release => "release",
        Kernel::SmpDebug => "debug, SMP",
        Kernel::SmpRelease => "release, SMP",
        Kernel::NotIsolated => "release, not isolated",
    };
    let loader = match entry.loader {
        Loader::Pvh => "PVH".to_owned(),
        Loader::PvhAfterSeaBios => "PVH, SeaBIOS".to_owned(),
        Loader::Disk(firmware) => format!("GRUB, {}", firmware.name().to_uppercase()),
    };
    let written = match entry.written {
        None => String::new(),
        Some((place, registers)) => {
            let registers: Vec<_> = registers
                .iter()
                .map(|(number, value)| format!("{number:#x} = {value:#x}"))
                .collect();
            let core = match place {
                Place::Pvh | Place::Multiboot => "",
                Place::FurtherCore => " of the second core",
            };
            format!("; WRMSR{core} {}", registers.join(", "))
        }
    };
    let star = if entry.is_test { " \\*" } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "| {}{star} | `{}` | `{}` | {} | `{}` | {kernel}; {loader}{written} | {} |",
        entry.name,
        entry.machine,
        entry.cpu,
        entry.memory_mib,
        entry.processors,
        entry.outcome.text()
    );
}

fn path() -> PathBuf {
    workspace::root().join(PAGE)
}

/// Writes it, and returns where.
pub fn write() -> Result<PathBuf> {
    let path = path();
    fs::write(&path, render()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_machines_is_current() {
        let page = fs::read_to_string(path()).unwrap();
        assert!(page == render(), "run `./sandglass machine table`");
    }
}
