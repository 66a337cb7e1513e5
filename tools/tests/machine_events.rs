//! What the machine says of itself: non-maskable interrupts and machine checks end it in words, whatever it executes. QEMU's
//! monitor raises them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::Duration;

use object::{Object, ObjectSymbol};
use sandglass_tools::cores::Cores;
use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::program;
use sandglass_tools::qemu::gdb::Gdb;
use sandglass_tools::qemu::session::{retry, Folder, Session};
use sandglass_tools::qemu::{self, Boot, End, Ending, Outcome};
use serde_json::json;

/// Status with which the kernel stops then.
const STATUS: u8 = 5;

/// An error that cannot be corrected, in bank 3, with an address.
const MACHINE_CHECK_ON_0: &str = "mce 0 3 0xbe00000000000135 5 0x1234000 0";
const MACHINE_CHECK_ON_1: &str = "mce 1 3 0xbe00000000000135 5 0x1234000 0";
const SAID_OF_BANK: &str = ": bank 3, status 0xbe00000000000135, address 0x1234000";

const KERNELS: [(Variant, Cores); 4] = [
    (Variant::Release, Cores::Single),
    (Variant::Debug, Cores::Single),
    (Variant::Release, Cores::Smp(2)),
    (Variant::Debug, Cores::Smp(2)),
];

fn kernel(variant: Variant, cores: Cores) -> PathBuf {
    kernel::build(&KernelOptions::on(variant, cores)).unwrap()
}

/// Boots `root_task`, and has `act` done beside the machine; it is told what the console says.
fn beside(
    kernel: &Path,
    cores: Cores,
    root_task: &str,
    is_debugged: bool,
    act: impl FnOnce(&mpsc::Receiver<String>, &Folder),
) -> Outcome {
    let mut boot = booted(kernel, cores, root_task);
    if is_debugged {
        boot.machine.is_debugged = true;
        // Cores take turns, so none is done before the others come to where they are waited for.
        boot.machine.keep_virtual_time(0);
        boot.extra_args.push("-S".into());
    }
    beside_boot(boot, act)
}

/// `root_task` on a machine with so many cores.
fn booted(kernel: &Path, cores: Cores, root_task: &str) -> Boot {
    let mut boot = Boot::new(kernel, program::build(root_task).unwrap());
    boot.machine.cores = cores.number();
    boot
}

/// Has `act` done beside a machine; it is told what the console says.
fn beside_boot(boot: Boot, act: impl FnOnce(&mpsc::Receiver<String>, &Folder)) -> Outcome {
    let folder = Folder::new(&format!("events-{:?}", thread::current().id())).unwrap();
    let (lines, console) = mpsc::channel();
    let mut boot = Boot {
        timeout: Some(Duration::from_secs(60)),
        lines: Some(lines),
        ..boot
    };
    for (option, name) in [("-qmp", "socket"), ("-gdb", "gdb")] {
        let path = folder.file(name);
        let listen = format!("unix:{},server=on,wait=off", path.display());
        boot.extra_args.extend([option.into(), listen.into()]);
    }
    thread::scope(|scope| {
        let machine = scope.spawn(|| {
            let outcome = qemu::run(&boot);
            boot.lines.take();
            outcome
        });
        act(&console, &folder);
        machine.join().unwrap().unwrap()
    })
}

/// The one line of the kernel's about what the machine said.
fn said(outcome: &Outcome) -> &str {
    let console = &outcome.console;
    assert_eq!(outcome.end, End::Guest(STATUS), "{console}");
    let mut lines = console.lines().filter(|line| {
        line.starts_with("NMI on core ") || line.starts_with("machine check on core ")
    });
    let line = lines
        .next()
        .unwrap_or_else(|| panic!("no word in:\n{console}"));
    assert_eq!(lines.next(), None, "{console}");
    assert_eq!(
        console.trim_end().lines().next_back(),
        Some(line),
        "{console}"
    );
    line
}

/// While user code runs on all cores.
#[test]
fn what_comes_in_user_code_ends_the_machine_in_words() {
    for (variant, cores) in KERNELS {
        let kernel = kernel(variant, cores);
        for (command, begin, end) in [
            ("nmi", "NMI on core ", ""),
            (MACHINE_CHECK_ON_0, "machine check on core 0", SAID_OF_BANK),
        ] {
            let outcome = beside(&kernel, cores, "spinners", false, |console, folder| {
                console
                    .iter()
                    .find(|line| line.contains("spinning on "))
                    .unwrap();
                let mut session = Session::connect(&folder.file("socket")).unwrap();
                session.stop_in_user_code(cores.number() as usize).unwrap();
                assert_eq!(session.monitor(command).unwrap(), "");
                // The machine may end before it answers.
                let _ = session.monitor("cont");
            });
            let line = said(&outcome);
            assert!(line.starts_with(begin) && line.ends_with(end), "{line}");
            assert!(line.contains(", user code at 0x"), "{line}");
        }
    }
}

/// Where a symbol of the kernel is, whose name ends so.
fn symbol(kernel: &Path, name: &str) -> u64 {
    let bytes = std::fs::read(kernel).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let mut symbols = file.symbols();
    let symbol = symbols.find(|symbol| symbol.name().is_ok_and(|of| of.ends_with(name)));
    let symbol = symbol.unwrap_or_else(|| panic!("the kernel has no `{name}`"));
    symbol.address()
}

/// The core that a machine check comes to ends the machine while another one runs; neither waits for the other.
#[test]
fn one_of_several_cores_ends_the_machine() {
    const PLACE: &str = "5fatal10of_machine";
    let cores = Cores::Smp(2);
    let kernel = kernel(Variant::Release, cores);
    let (exit, place) = (symbol(&kernel, "sandglass_exit_0"), symbol(&kernel, PLACE));
    let outcome = beside(&kernel, cores, "hello", true, |_, folder| {
        let mut gdb = Gdb::connect(&folder.file("gdb")).unwrap();
        gdb.run_to(exit).unwrap();
        let mut session = Session::connect(&folder.file("socket")).unwrap();
        assert_eq!(session.monitor(MACHINE_CHECK_ON_0).unwrap(), "");
        assert_eq!(gdb.run_to(place).unwrap(), 0);
        gdb.go_on().unwrap();
    });
    assert!(said(&outcome).starts_with("machine check on core 0, "));
}

/// All of them ran user code until then, and nothing ends the emulator here, so that they could run on.
#[test]
fn no_core_runs_on_when_one_has_ended_the_machine() {
    let cores = Cores::Smp(4);
    for variant in [Variant::Release, Variant::Debug] {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let boot = Boot {
            is_endless: true,
            ending: Some(Ending::new(Duration::from_millis(20), move || {
                over.load(Ordering::Relaxed)
            })),
            ..booted(&kernel(variant, cores), cores, "spinners")
        };
        beside_boot(boot, |console, folder| {
            let has = |text| console.iter().find(|line: &String| line.contains(text));
            has("spinning on ").unwrap();
            let mut session = Session::connect(&folder.file("socket")).unwrap();
            session.stop_in_user_code(cores.number() as usize).unwrap();
            assert_eq!(session.monitor(MACHINE_CHECK_ON_0).unwrap(), "");
            session.ask("cont", json!({})).unwrap();
            has("machine check on core 0").unwrap();
            // An emulator on a busy host may not have let the others do anything yet.
            let stopped = retry(|| {
                let registers = session.halted_registers().unwrap();
                let have_stopped = registers.matches("HLT=1").count();
                (have_stopped == cores.number() as usize).then_some(registers)
            });
            let registers = stopped.expect("a core runs on");
            assert!(!registers.contains("CPL=3"), "{registers}");
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

/// While nobody runs: a core of its own has nothing to do.
#[test]
fn what_comes_while_a_core_idles_ends_the_machine_in_words() {
    let cores = Cores::Smp(2);
    for variant in [Variant::Release, Variant::Debug] {
        let kernel = kernel(variant, cores);
        let exit = symbol(&kernel, "sandglass_exit_0");
        let outcome = beside(&kernel, cores, "hello", true, |_, folder| {
            let mut gdb = Gdb::connect(&folder.file("gdb")).unwrap();
            gdb.run_to(exit).unwrap();
            let mut session = Session::connect(&folder.file("socket")).unwrap();
            assert_eq!(session.monitor(MACHINE_CHECK_ON_1).unwrap(), "");
            gdb.go_on().unwrap();
        });
        let line = said(&outcome);
        assert!(
            line.starts_with("machine check on core 1, kernel at "),
            "{line}"
        );
    }
}

/// On the way in, from SYSCALL on, whose first instructions have the user's address space and stack, to where the kernel has
/// begun to work, with its lock; and on both ways out, whose last instructions have the user's again.
#[test]
fn what_comes_in_the_kernel_ends_the_machine_in_words() {
    const CALL: &str = "sandglass_system_call_0";
    const EXIT: &str = "sandglass_exit_0";
    for (variant, cores) in [
        (Variant::Release, Cores::Single),
        (Variant::Debug, Cores::Smp(2)),
    ] {
        let kernel = kernel(variant, cores);
        for (way, steps) in [
            (&[CALL][..], &[0, 1, 2, 3, 12, 20, 80][..]),
            // By IRET, to a thread that begins.
            (&[EXIT], &[0, 8, 29, 32, 33]),
            // By SYSRET.
            (&[CALL, EXIT], &[20, 27, 28]),
        ] {
            for &steps in steps {
                comes_at(&kernel, cores, way, steps);
            }
        }
    }
}

/// At an instruction of the first core's: so many behind the last of these places, which it reaches one after the other.
fn comes_at(kernel: &Path, cores: Cores, way: &[&str], steps: u32) {
    // A non-maskable interrupt comes to all cores, and any of them may speak.
    let command = match cores {
        Cores::Single if steps.is_multiple_of(2) => "nmi",
        _ => MACHINE_CHECK_ON_0,
    };
    let mut at = 0;
    let outcome = beside(kernel, cores, "hello", true, |_, folder| {
        let mut gdb = Gdb::connect(&folder.file("gdb")).unwrap();
        for place in way {
            gdb.run_to(symbol(kernel, place)).unwrap();
        }
        (0..steps).for_each(|_| gdb.step().unwrap());
        at = gdb.instruction().unwrap();
        let mut session = Session::connect(&folder.file("socket")).unwrap();
        assert_eq!(session.monitor(command).unwrap(), "");
        gdb.go_on().unwrap();
    });
    let line = said(&outcome);
    let place = format!(" on core 0, kernel at {at:#x}");
    assert!(line.contains(&place), "{way:?}, {steps}: {line}");
}
