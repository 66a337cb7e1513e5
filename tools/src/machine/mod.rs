//! `sandglass machine`: the processor's state while user code runs, read from outside and compared with
//! the [table](table) of what it must be.
//!
//! A root task spins on each core. QEMU is stopped while all of them are in user code, and asked for
//! all of its state: by a migration into a file, which has every register ([`stream`]), and by reading
//! the memory that descriptor registers lead to ([`state`]).

mod aarch64;
mod busy;
mod inherited;
pub mod matrix;
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
use crate::qemu::gdb::Gdb;
use crate::qemu::session::{Folder, Session};
use crate::qemu::{self, Boot, Emulator, Ending, Firmware, Machine};

use inherited::Place;
use state::{Facts, Layout, State};

/// The root task, and what it prints when its threads run.
const PACKAGE: &str = "spinners";
const SPINNING: &str = "spinning on ";

/// The processor with everything that QEMU emulates, except x2APIC mode.
const EVERYTHING: &str = "max";
const TIMEOUT: Duration = Duration::from_secs(120);
const MEMORY_MIB: u32 = 256;
const ICOUNT: u8 = 3;

/// A way to start a machine.
#[derive(Clone, Copy)]
pub struct Start {
    pub name: &'static str,
    pub arch: Arch,
    emulator: Emulator,
    /// QEMU's machine, unless it is the architecture's usual one.
    model: Option<&'static str>,
    /// On aarch64: whether programs are let have the clock and the physical timer, which the ABI's profile does not.
    has_user_timer: bool,
    /// `None`: QEMU loads the kernel (PVH).
    firmware: Option<Firmware>,
    /// Whether SeaBIOS runs before a kernel that QEMU loads, as if QEMU is started by hand.
    has_seabios: bool,
    variant: Variant,
    cores: Cores,
    cpu: &'static str,
    /// Hardware threads of each core.
    threads: u32,
    /// QEMU's `-smp`, unless cores and threads say it.
    processors: Option<&'static str>,
    /// More arguments of QEMU, with spaces between.
    more: &'static str,
    /// Whether firmware leaves local APICs in x2APIC mode.
    is_x2apic: bool,
    /// Whether the kernel [inherits](inherited) what no firmware should leave.
    is_odd: bool,
    /// Whether it is among the tests, and not by command alone.
    pub is_test: bool,
}

const fn pvh(name: &'static str, variant: Variant, cores: Cores) -> Start {
    Start {
        name,
        arch: Arch::X86_64,
        emulator: Emulator::Installed,
        model: None,
        has_user_timer: false,
        firmware: None,
        has_seabios: false,
        variant,
        cores,
        cpu: Arch::X86_64.cpu(),
        threads: 1,
        processors: None,
        more: "",
        is_x2apic: false,
        is_odd: false,
        is_test: true,
    }
}

impl Start {
    /// Has everything odd on the first `spoiled` processors that come to the kernel. Returns the machine, which is stopped, and
    /// the last of them.
    fn spoil(&self, folder: &Folder, kernel: &Path, spoiled: u32) -> Result<(Gdb, u32)> {
        let first = match self.firmware {
            None => Place::Pvh,
            Some(_) => Place::Multiboot,
        };
        let mut gdb = inherited::stopped(&folder.file(DEBUGGER))?;
        let mut processor = inherited::spoil(&mut gdb, kernel, first)?;
        for _ in 1..spoiled {
            gdb.step()?;
            processor = inherited::spoil(&mut gdb, kernel, Place::FurtherCore)?;
        }
        Ok((gdb, processor))
    }
}

/// A start of aarch64's kernel of the ABI's profile, by QEMU's own loader.
const fn linux(name: &'static str, variant: Variant, cores: Cores) -> Start {
    Start {
        arch: Arch::Aarch64,
        cpu: Arch::Aarch64.cpu(),
        ..pvh(name, variant, cores)
    }
}

/// A start of the second emulator's, with processors of which so many make firmware leave x2APIC mode on.
const fn x2apic(name: &'static str, variant: Variant, firmware: Option<Firmware>) -> Start {
    Start {
        emulator: Emulator::Second,
        firmware,
        has_seabios: firmware.is_none(),
        model: Some("q35,kernel-irqchip=split"),
        cpu: EVERYTHING,
        processors: Some("288"),
        more: "-device intel-iommu,intremap=on,eim=on",
        is_x2apic: true,
        is_test: false,
        ..pvh(name, variant, SMP)
    }
}

const GIC3: Option<&str> = Some("virt,gic-version=3");

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
        is_odd: true,
        cpu: EVERYTHING,
        ..pvh("pvh::release-odd", Variant::Release, Cores::Single)
    },
    Start {
        is_odd: true,
        cpu: EVERYTHING,
        ..pvh("pvh::smp-debug-odd", Variant::Debug, SMP)
    },
    Start {
        is_odd: true,
        cpu: EVERYTHING,
        firmware: Some(Firmware::Bios),
        ..pvh("bios::smp-release-odd", Variant::Release, SMP)
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
    x2apic("x2apic::smp-debug", Variant::Debug, None),
    x2apic("x2apic::smp-release", Variant::Release, None),
    Start {
        cores: Cores::Single,
        ..x2apic("x2apic::release", Variant::Release, None)
    },
    x2apic("x2apic::bios", Variant::Release, Some(Firmware::Bios)),
    x2apic("x2apic::uefi", Variant::Release, Some(Firmware::Uefi)),
    linux("aarch64::release", Variant::Release, Cores::Single),
    Start {
        model: GIC3,
        has_user_timer: true,
        ..linux("aarch64::gic3-timer-smp-debug", Variant::Debug, SMP)
    },
    Start {
        is_test: false,
        ..linux("aarch64::smp-debug", Variant::Debug, SMP)
    },
    Start {
        model: GIC3,
        has_user_timer: true,
        is_test: false,
        ..linux(
            "aarch64::gic3-timer-release",
            Variant::Release,
            Cores::Single,
        )
    },
    Start {
        is_test: false,
        ..linux("aarch64::debug", Variant::Debug, Cores::Single)
    },
    Start {
        model: GIC3,
        is_test: false,
        ..linux("aarch64::gic3-smp-release", Variant::Release, SMP)
    },
    Start {
        cpu: "cortex-a57",
        is_test: false,
        ..linux("aarch64::smp-release-a57", Variant::Release, SMP)
    },
];

/// `sandglass machine`.
pub fn run(args: &MachineStateArgs) -> Result<ExitCode> {
    let good = match args.action {
        None => look_at_all(args.arch, &args.only)?,
        Some(MachineAction::Table) => {
            println!("{}", page::write()?.display());
            println!("{}", matrix::write()?.display());
            true
        }
        Some(MachineAction::Spoiled) => look_at_spoiled(args.arch)?,
        Some(MachineAction::Matrix) => matrix::run(&args.only)?,
        Some(MachineAction::Emulator) => {
            println!("{}", qemu::second::fetch()?.display());
            true
        }
        Some(MachineAction::Busy { boots }) => busy::run(boots)?,
    };
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Looks at every start of an architecture whose name has `only` in it.
fn look_at_all(arch: Arch, only: &str) -> Result<bool> {
    let mut good = true;
    let of_arch = STARTS.iter().filter(|start| start.arch == arch);
    let starts = of_arch.filter(|start| start.name.contains(only));
    for start in starts {
        if start.emulator == Emulator::Second && !qemu::second::is_there() {
            println!("{}: left out: {}", start.name, qemu::second::ADVICE);
            continue;
        }
        let findings = look(start)?;
        good &= findings.is_empty();
        println!("{}: {}", start.name, summary(start, &findings));
    }
    Ok(good)
}

fn summary(start: &Start, findings: &[String]) -> String {
    if findings.is_empty() {
        let entries = table::rows(start.arch).count();
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
    let root_task = program::build_for(start.arch, PACKAGE)?;
    let mut options = KernelOptions::on(start.variant, start.cores).for_arch(start.arch);
    if start.has_user_timer {
        options = options.with_user_timer();
    }
    let kernel = kernel::build(&options)?;
    let folder = Folder::new(&start.name.replace("::", "-"))?;
    let boot = match start.firmware {
        None => Boot::new(&kernel, &root_task),
        Some(firmware) => {
            let image = folder.file("disk.img");
            image::make(Arch::X86_64, &kernel, &root_task, &image)?;
            Boot::from_disk(image, firmware)
        }
    };
    let mut findings = Vec::new();
    let places = if start.is_odd {
        start.cores.number()
    } else {
        0
    };
    for spoiled in 1..=places {
        findings.extend(beside(boot.clone(), start, &folder, |_| {
            let (_machine, processor) = start.spoil(&folder, &kernel, spoiled)?;
            let mut session = Session::connect(&folder.file(SOCKET))?;
            inherited::still_right(&mut session, processor)
        })?);
    }
    let (state, facts) = observe(boot, start, &kernel, &folder)?;
    findings.extend(judge(&state, &facts, start));
    Ok(findings)
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
    beside(boot, start, folder, |console| {
        if start.is_odd {
            let cores = start.cores.number();
            start.spoil(folder, kernel, cores)?.0.go_on()?;
        }
        let cores = console
            .iter()
            .find_map(|line: String| {
                // Firmware leaves the line full of control sequences.
                let (_, count) = line.split_once(SPINNING)?;
                let count = count.split(' ').next()?;
                count.parse::<usize>().ok()
            })
            .context("no thread spins")?;
        let mut session = Session::connect(&folder.file(SOCKET))?;
        session.stop_in_user_code(cores)?;
        read(&mut session, kernel, start)
    })
}

/// The sockets of a machine, in its folder.
const SOCKET: &str = "socket";
const DEBUGGER: &str = "debugger";

/// Boots a machine, which ends when what is done beside it is done; that can read its console's lines.
fn beside<T>(
    boot: Boot,
    start: &Start,
    folder: &Folder,
    act: impl FnOnce(&mpsc::Receiver<String>) -> Result<T>,
) -> Result<T> {
    let (lines, console) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    let mut machine = Machine {
        cpu: start.cpu.to_owned(),
        cores: start.cores.number(),
        memory_mib: MEMORY_MIB,
        // Where a debugger stops it, so that a core which is late on a busy host is not given up.
        icount: start.is_odd.then_some(ICOUNT),
        is_debugged: start.is_odd,
        ..Machine::of(start.arch)
    };
    if let Some(model) = start.model {
        machine.model = model.to_owned();
    }
    let mut boot = Boot {
        machine,
        emulator: start.emulator,
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
    if let Some(processors) = start.processors {
        boot.extra_args.extend(["-smp".into(), processors.into()]);
    }
    let more = start.more.split_whitespace();
    boot.extra_args.extend(more.map(Into::into));
    let listen = |name| {
        let socket = folder.file(name);
        format!("unix:{},server=on,wait=off", socket.display())
    };
    let socket = listen(SOCKET);
    boot.extra_args.extend(["-qmp".into(), socket.into()]);
    if start.is_odd {
        let socket = listen(DEBUGGER);
        let debugger = ["-S".into(), "-gdb".into(), socket.into()];
        boot.extra_args.extend(debugger);
    }
    thread::scope(|scope| {
        let machine = scope.spawn(|| {
            let outcome = qemu::run(&boot);
            // Nobody says anything any more.
            boot.lines.take();
            outcome
        });
        let done = act(&console);
        over.store(true, Ordering::Relaxed);
        let outcome = machine.join().expect("QEMU's thread does not panic")?;
        done.with_context(|| format!("console:\n{}", outcome.console))
    })
}

/// Reads a machine that was started so, and is stopped.
fn read(session: &mut Session, kernel: &Path, start: &Start) -> Result<(State, Facts)> {
    match start.arch {
        Arch::X86_64 => {
            let (state, facts) = state::read(session, Layout::of_kernel(kernel)?)?;
            let is_x2apic = start.is_x2apic;
            Ok((state, Facts { is_x2apic, ..facts }))
        }
        Arch::Aarch64 => {
            let facts = Facts {
                has_user_timer: start.has_user_timer,
                is_smp: start.cores != Cores::Single,
                masks_errors: start.variant == Variant::Release,
                ..Facts::default()
            };
            aarch64::read(session, kernel, facts)
        }
    }
}

/// Sets every piece of [`Set::of_state`] wrong in turn, and says whether the table noticed.
fn look_at_spoiled(arch: Arch) -> Result<bool> {
    const TWO: Cores = Cores::Smp(2);
    let start = match arch {
        Arch::X86_64 => Start {
            cpu: EVERYTHING,
            ..pvh("spoiled", Variant::Release, TWO)
        },
        Arch::Aarch64 => Start {
            model: GIC3,
            ..linux("spoiled-aarch64", Variant::Release, TWO)
        },
    };
    let set = Set::of_state(arch);
    let root_task = program::build_for(arch, PACKAGE)?;
    let catalogue = Catalogue::read(set)?;
    let options = KernelOptions::smp(Variant::Release).for_arch(arch);
    let options = options.with_mutants(set);
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
