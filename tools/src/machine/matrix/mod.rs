//! `sandglass machine matrix`: `hello` on many machines and processors of the emulator, each of which boots it or
//! is refused in words. None hangs.

mod entries;
mod page;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::inherited::{self, Place};
use crate::arch::Arch;
use crate::image;
use crate::kernel::{self, KernelOptions, Variant};
use crate::program;
use crate::qemu::session::Folder;
use crate::qemu::{self, second, Boot, Emulator, End, Firmware, Machine, Outcome};
use crate::side_by_side;

pub use entries::MACHINES;
pub use page::write;

/// What is booted, and what it says in the end.
const PACKAGE: &str = "hello";
const DONE: &str = "hello is done";
/// A machine that has said nothing more for so long hangs. The longest has 255 processors.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A machine.
#[derive(Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    emulator: Emulator,
    /// QEMU's `-machine`.
    machine: &'static str,
    /// QEMU's `-cpu`.
    cpu: &'static str,
    memory_mib: u32,
    /// QEMU's `-smp`.
    processors: &'static str,
    /// More arguments of QEMU, with spaces between.
    more: &'static str,
    loader: Loader,
    /// Registers that are written before the kernel's first instruction, as no firmware of the emulator does.
    written: Option<Written>,
    kernel: Kernel,
    outcome: Expected,
    /// Whether it is among the tests, and not by command alone.
    pub is_test: bool,
}

/// Model-specific registers, on the processor that comes first to a place.
type Written = (Place, &'static [(u32, u64)]);

/// Who brings kernel and root task into memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loader {
    /// QEMU, after a small firmware of its own.
    Pvh,
    /// The same, after the usual firmware of PCs.
    PvhAfterSeaBios,
    /// GRUB, from a disk.
    Disk(Firmware),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kernel {
    Debug,
    Release,
    SmpDebug,
    SmpRelease,
    /// Without page-table isolation, for one core.
    NotIsolated,
}

impl Kernel {
    const ALL: [Self; 5] = [
        Self::Debug,
        Self::Release,
        Self::SmpDebug,
        Self::SmpRelease,
        Self::NotIsolated,
    ];

    fn build(self) -> Result<PathBuf> {
        kernel::build(&match self {
            Kernel::Debug => KernelOptions::new(Variant::Debug),
            Kernel::Release => KernelOptions::new(Variant::Release),
            Kernel::SmpDebug => KernelOptions::smp(Variant::Debug),
            Kernel::SmpRelease => KernelOptions::smp(Variant::Release),
            Kernel::NotIsolated => KernelOptions::new(Variant::Release).without_isolation(),
        })
    }
}

/// How it goes.
#[derive(Clone, Copy)]
enum Expected {
    /// `hello` runs, on so many cores, by a clock that is measured by these.
    Boots { cores: u32, by: &'static str },
    /// The kernel does not start, and says this.
    Refused(&'static str),
}

/// Boots all machines whose name has `only` in it, and says how each went. Whether each went as the table says. Those of the
/// second emulator are left out, in words, if it is not there.
pub fn run(only: &str) -> Result<bool> {
    let named = MACHINES.iter().filter(|entry| entry.name.contains(only));
    let (machines, left_out): (Vec<&Entry>, Vec<_>) =
        named.partition(|entry| entry.emulator == Emulator::Installed || second::is_there());
    // Nothing is built while machines run.
    for kernel in Kernel::ALL {
        kernel.build()?;
    }
    let judged = side_by_side::run(
        &machines,
        // One that cannot be tried, or resets, is not as expected, and the others go on.
        |entry| Ok(look(entry).unwrap_or_else(|error| vec![format!("{error:#}")])),
        |findings, done| {
            if !findings.is_empty() {
                eprintln!("{done} of {}", machines.len());
            }
        },
    )?;
    for (entry, findings) in machines.iter().zip(&judged) {
        match findings.as_slice() {
            [] => println!("{}: {}", entry.name, entry.outcome.text()),
            findings => println!("{}: {}", entry.name, findings.join("\n    ")),
        }
    }
    let wrong = judged
        .iter()
        .filter(|findings| !findings.is_empty())
        .count();
    println!("{} machines, {wrong} not as expected", machines.len());
    if !left_out.is_empty() {
        println!(
            "{} machines left out: the second emulator, QEMU {}, is not there; {}",
            left_out.len(),
            second::VERSION,
            second::ADVICE
        );
    }
    Ok(wrong == 0)
}

/// What is not as the table says of a machine.
///
/// # Errors
/// It cannot be tried.
pub fn look(entry: &Entry) -> Result<Vec<String>> {
    let boot = boot(entry)?;
    let outcome = match entry.written {
        None => qemu::run(&boot),
        Some(written) => run_written(boot, &entry.kernel.build()?, written),
    };
    let outcome = outcome.with_context(|| format!("machine {}", entry.name))?;
    Ok(entry.outcome.findings(&outcome))
}

/// Boots with registers written.
fn run_written(mut boot: Boot, kernel: &Path, (place, registers): Written) -> Result<Outcome> {
    // One for each that runs at the same time.
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder = Folder::new(&format!("matrix-written-{number}"))?;
    let socket = folder.file("debugger");
    let listen = format!("unix:{},server=on,wait=off", socket.display());
    let debugger = ["-S".into(), "-gdb".into(), listen.into()];
    boot.extra_args.extend(debugger);
    thread::scope(|scope| {
        let machine = scope.spawn(|| qemu::run(&boot));
        let written = inherited::stopped(&socket).and_then(|mut gdb| {
            inherited::write(&mut gdb, kernel, place, registers)?;
            gdb.go_on()
        });
        let outcome = machine.join().expect("QEMU's thread does not panic")?;
        written.map(|()| outcome)
    })
}

fn boot(entry: &Entry) -> Result<Boot> {
    let root_task = program::build(PACKAGE)?;
    let kernel = entry.kernel.build()?;
    let boot = match entry.loader {
        Loader::Pvh | Loader::PvhAfterSeaBios => Boot::new(kernel, root_task),
        Loader::Disk(firmware) => Boot::from_disk(disk(entry.kernel)?, firmware),
    };
    let mut arguments = vec!["-smp", entry.processors];
    if entry.loader == Loader::PvhAfterSeaBios {
        arguments.extend(["-bios", qemu::SEABIOS]);
    }
    arguments.extend(entry.more.split_whitespace());
    Ok(Boot {
        machine: Machine {
            model: entry.machine.to_owned(),
            cpu: entry.cpu.to_owned(),
            memory_mib: entry.memory_mib,
            ..Machine::default()
        },
        emulator: entry.emulator,
        timeout: Some(TIMEOUT),
        extra_args: arguments.into_iter().map(Into::into).collect(),
        ..boot
    })
}

/// A disk with the kernel, made once.
fn disk(kernel: Kernel) -> Result<PathBuf> {
    static DISKS: Mutex<BTreeMap<Kernel, (Folder, PathBuf)>> = Mutex::new(BTreeMap::new());
    let mut disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, path)) = disks.get(&kernel) {
        return Ok(path.clone());
    }
    let folder = Folder::new(&format!("matrix-{}", kernel as u8))?;
    let path = folder.file("disk.img");
    image::make(
        Arch::X86_64,
        &kernel.build()?,
        &program::build(PACKAGE)?,
        &path,
    )?;
    disks.insert(kernel, (folder, path.clone()));
    Ok(path)
}

impl Expected {
    fn findings(&self, outcome: &Outcome) -> Vec<String> {
        let console = &outcome.console;
        let has_line = |words: &[&str]| {
            let has_all = |line: &str| words.iter().all(|word| line.contains(word));
            console.lines().any(has_all)
        };
        let is_right = match *self {
            Expected::Boots { cores, by } => {
                let by = format!(" kHz by {by}");
                let cores = format!("  cores                {cores}");
                outcome.end == End::Guest(0)
                    && has_line(&[DONE])
                    && console.lines().any(|line| line.trim_end() == cores)
                    && console.lines().any(|line| line.trim_end().ends_with(&by))
            }
            Expected::Refused(words) => outcome.end == End::Guest(REFUSED) && has_line(&[words]),
        };
        if is_right {
            return Vec::new();
        }
        let how = match outcome.end {
            End::TimedOut => "hangs".to_owned(),
            _ => format!("ends with status {}", outcome.status()),
        };
        vec![format!(
            "it {how}, but is expected to end so: {}. Console:\n{}",
            self.text(),
            console.trim_end()
        )]
    }

    /// In words.
    fn text(&self) -> String {
        match self {
            Expected::Boots { cores: 1, by } => format!("boots; clock by {by}"),
            Expected::Boots { cores, by } => format!("boots with {cores} cores; clock by {by}"),
            Expected::Refused(words) => format!("is refused: *{words}*"),
        }
    }
}

/// Status with which the kernel refuses a machine.
const REFUSED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: End, console: &str) -> Outcome {
        Outcome {
            end,
            console: console.to_owned(),
        }
    }

    const BOOTS: Expected = Expected::Boots {
        cores: 4,
        by: "HPET",
    };
    const CONSOLE: &str =
        "  cores                4\r\n  measured             1 to 2 kHz by HPET\r\nhello is done\r\n";

    #[test]
    fn a_boot_is_one_that_ends_well_with_its_cores_and_its_clock() {
        let findings = |end, console: &str| BOOTS.findings(&ended(end, console)).len();
        assert_eq!(findings(End::Guest(0), CONSOLE), 0);
        assert_eq!(findings(End::Guest(1), CONSOLE), 1);
        assert_eq!(findings(End::TimedOut, CONSOLE), 1);
        for wrong in ["cores                4", "by HPET", "done"] {
            assert_eq!(findings(End::Guest(0), &CONSOLE.replace(wrong, "")), 1);
        }
    }

    #[test]
    fn a_refusal_says_its_words_and_ends() {
        let refused = Expected::Refused("no ACPI");
        let findings = |end, console: &str| refused.findings(&ended(end, console)).len();
        assert_eq!(
            findings(End::Guest(1), "Sandglass cannot start: no ACPI root"),
            0
        );
        assert_eq!(findings(End::Guest(1), "Sandglass cannot start: no"), 1);
        assert_eq!(
            findings(End::TimedOut, "Sandglass cannot start: no ACPI root"),
            1
        );
        let said = &refused.findings(&ended(End::TimedOut, ""))[0];
        assert!(said.contains("hangs"), "{said}");
    }

    #[test]
    fn no_test_needs_what_is_only_there_when_somebody_has_fetched_it() {
        for entry in MACHINES.iter().filter(|entry| entry.is_test) {
            assert_eq!(entry.emulator, Emulator::Installed, "{}", entry.name);
        }
    }

    #[test]
    fn there_are_at_least_forty_machines_with_names_of_their_own() {
        let mut names: Vec<_> = MACHINES.iter().map(|entry| entry.name).collect();
        assert!(names.len() >= 40, "{} machines", names.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MACHINES.len());
    }
}
