//! `sandglass machine`: the processor's state while user code runs, read from outside and compared with
//! the [table](table) of what it must be.
//!
//! A root task spins on each core. QEMU is stopped while all of them are in user code, and asked for
//! all of its state: by a migration into a file, which has every register ([`stream`]), and by reading
//! the memory that descriptor registers lead to ([`state`]).

mod page;
mod state;
mod stream;
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::arch::Arch;
use crate::cli::{MachineAction, MachineStateArgs};
use crate::cores::{Cores, MOST_CORES};
use crate::image;
use crate::kernel::{self, KernelOptions, Variant};
use crate::mutants::named::{self, Catalogue, Set};
use crate::program;
use crate::qemu::session::{Folder, Session};
use crate::qemu::{self, Boot, Ending, Firmware, Machine};

use state::{Facts, Layout, State};

/// The root task, and what it prints when its threads run.
const PACKAGE: &str = "spinners";
const SPINNING: &str = "spinning on ";

/// The processor with everything that QEMU emulates, except x2APIC mode.
const EVERYTHING: &str = "max";
const TIMEOUT: Duration = Duration::from_secs(120);
const MEMORY_MIB: u32 = 256;

/// A way to start a machine.
#[derive(Clone, Copy)]
pub struct Start {
    pub name: &'static str,
    /// `None`: QEMU loads the kernel (PVH).
    firmware: Option<Firmware>,
    /// Whether SeaBIOS runs before a kernel that QEMU loads, as if QEMU is started by hand.
    has_seabios: bool,
    variant: Variant,
    cores: Cores,
    cpu: &'static str,
    /// Hardware threads of each core.
    threads: u32,
    /// Whether it is among the tests, and not by command alone.
    pub is_test: bool,
}

const fn pvh(name: &'static str, variant: Variant, cores: Cores) -> Start {
    Start {
        name,
        firmware: None,
        has_seabios: false,
        variant,
        cores,
        cpu: Arch::X86_64.cpu(),
        threads: 1,
        is_test: true,
    }
}

const SMP: Cores = Cores::Smp(MOST_CORES);

/// All starts.
pub const STARTS: &[Start] = &[
    pvh("pvh::debug", Variant::Debug, Cores::Single),
    pvh("pvh::release", Variant::Release, Cores::Single),
    pvh("pvh::smp-debug", Variant::Debug, SMP),
    Start {
        has_seabios: true,
        ..pvh("pvh::release-seabios", Variant::Release, Cores::Single)
    },
    Start {
        has_seabios: true,
        ..pvh("pvh::smp-release-seabios", Variant::Release, SMP)
    },
    Start {
        cpu: EVERYTHING,
        ..pvh("pvh::smp-release-newest", Variant::Release, SMP)
    },
    Start {
        threads: 2,
        ..pvh("pvh::smp-release-threads", Variant::Release, Cores::Smp(2))
    },
    Start {
        firmware: Some(Firmware::Bios),
        ..pvh("bios::release", Variant::Release, Cores::Single)
    },
    Start {
        firmware: Some(Firmware::Bios),
        is_test: false,
        ..pvh("bios::smp-debug", Variant::Debug, SMP)
    },
    Start {
        firmware: Some(Firmware::Bios),
        is_test: false,
        ..pvh("bios::smp-release", Variant::Release, SMP)
    },
    Start {
        firmware: Some(Firmware::Uefi),
        is_test: false,
        ..pvh("uefi::debug", Variant::Debug, Cores::Single)
    },
    Start {
        firmware: Some(Firmware::Uefi),
        is_test: false,
        ..pvh("uefi::release", Variant::Release, Cores::Single)
    },
    Start {
        firmware: Some(Firmware::Uefi),
        ..pvh("uefi::smp-release", Variant::Release, SMP)
    },
];

/// `sandglass machine`.
pub fn run(args: &MachineStateArgs) -> Result<ExitCode> {
    let good = match args.action {
        None => look_at_all()?,
        Some(MachineAction::Table) => {
            println!("{}", page::write()?.display());
            true
        }
        Some(MachineAction::Spoiled) => look_at_spoiled()?,
    };
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Looks at every start.
fn look_at_all() -> Result<bool> {
    let mut good = true;
    for start in STARTS {
        let findings = look(start)?;
        good &= findings.is_empty();
        println!("{}: {}", start.name, summary(start, &findings));
    }
    Ok(good)
}

fn summary(start: &Start, findings: &[String]) -> String {
    if findings.is_empty() {
        let entries = table::rows().count();
        format!(
            "{entries} entries are right on {} cores",
            start.cores.number()
        )
    } else {
        findings.join("\n    ")
    }
}

/// What is not right in a machine that was started so.
///
/// # Errors
/// It does not start, or cannot be read.
pub fn look(start: &Start) -> Result<Vec<String>> {
    let root_task = program::build(PACKAGE)?;
    let kernel = kernel::build(&KernelOptions::on(start.variant, start.cores))?;
    let folder = Folder::new(&start.name.replace("::", "-"))?;
    let boot = match start.firmware {
        None => Boot::new(&kernel, &root_task),
        Some(firmware) => {
            let image = folder.file("disk.img");
            image::make(Arch::X86_64, &kernel, &root_task, &image)?;
            Boot::from_disk(image, firmware)
        }
    };
    let (state, facts) = observe(boot, start, &kernel, &folder)?;
    Ok(judge(&state, &facts, start))
}

fn judge(state: &State, facts: &Facts, start: &Start) -> Vec<String> {
    let mut findings = table::compare(state, facts);
    if state.cores.len() != start.cores.number() as usize {
        findings.push(format!(
            "{} cores run, but must be {}",
            state.cores.len(),
            start.cores.number()
        ));
    }
    findings
}

/// Boots, waits until user code runs on all cores, and reads the machine.
fn observe(boot: Boot, start: &Start, kernel: &Path, folder: &Folder) -> Result<(State, Facts)> {
    let socket = folder.file("socket");
    let (lines, console) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    let mut boot = Boot {
        machine: Machine {
            cpu: start.cpu.to_owned(),
            cores: start.cores.number(),
            memory_mib: MEMORY_MIB,
            ..Machine::default()
        },
        timeout: Some(TIMEOUT),
        lines: Some(lines),
        ending: Some(Ending::new(Duration::from_millis(20), {
            let over = Arc::clone(&over);
            move || over.load(Ordering::Relaxed)
        })),
        ..boot
    };
    if start.has_seabios {
        boot.extra_args
            .extend(["-bios".into(), qemu::SEABIOS.into()]);
    }
    if start.threads > 1 {
        let cores = start.cores.number();
        let all = cores * start.threads;
        let topology = format!("{all},cores={cores},threads={}", start.threads);
        boot.extra_args.extend(["-smp".into(), topology.into()]);
    }
    let listen = format!("unix:{},server=on,wait=off", socket.display());
    boot.extra_args.extend(["-qmp".into(), listen.into()]);
    thread::scope(|scope| {
        let machine = scope.spawn(|| {
            let outcome = qemu::run(&boot);
            // Nobody says anything any more.
            boot.lines.take();
            outcome
        });
        let seen = console
            .iter()
            .find_map(|line: String| {
                // Firmware leaves the line full of control sequences.
                let (_, count) = line.split_once(SPINNING)?;
                let count = count.split(' ').next()?;
                count.parse::<usize>().ok()
            })
            .context("no thread spins");
        let read = seen.and_then(|cores| {
            let mut session = Session::connect(&socket)?;
            session.stop_in_user_code(cores)?;
            state::read(&mut session, Layout::of_kernel(kernel)?)
        });
        over.store(true, Ordering::Relaxed);
        let outcome = machine.join().expect("QEMU's thread does not panic")?;
        read.with_context(|| format!("console:\n{}", outcome.console))
    })
}

/// Sets every piece of [`Set::State`] wrong in turn, and says whether the table noticed.
fn look_at_spoiled() -> Result<bool> {
    let start = Start {
        cpu: EVERYTHING,
        ..pvh("spoiled", Variant::Release, Cores::Smp(2))
    };
    let root_task = program::build(PACKAGE)?;
    let catalogue = Catalogue::read(Set::State)?;
    let options = KernelOptions::smp(Variant::Release).with_mutants(Set::State);
    let built = kernel::build(&options)?;
    let mut good = true;
    for mutant in std::iter::once(None).chain(catalogue.mutants.iter().map(Some)) {
        let name = mutant.map_or("none", |mutant| &mutant.name);
        let folder = Folder::new(&format!("spoiled-{name}"))?;
        let kernel = named::switch_on(&built, mutant)?;
        let boot = Boot::new(&kernel, &root_task);
        let (state, facts) = observe(boot, &start, &kernel, &folder)?;
        let findings = judge(&state, &facts, &start);
        let noticed = match mutant {
            None => findings.is_empty(),
            Some(mutant) => {
                let entry = format!("{} is ", mutant.caught_by);
                findings.iter().any(|finding| finding.contains(&entry))
            }
        };
        good &= noticed;
        let verdict = if noticed {
            "as expected"
        } else {
            "NOT NOTICED"
        };
        println!("{name}: {verdict}\n    {}", findings.join("\n    "));
    }
    Ok(good)
}
