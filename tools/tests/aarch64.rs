//! aarch64: the machine is found out from its device tree, and a tree that is wrong is refused in words.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use object::{Object, ObjectSection};
use sandglass_tools::arch::Arch;
use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::program::{self, Profile};
use sandglass_tools::qemu::{self, Boot, End, Machine, Outcome};
use sandglass_tools::system::{self, Built, Source};
use sandglass_tools::workspace;

/// The usual machine of this model.
fn machine(model: &str, cores: u32, memory_mib: u32) -> Machine {
    Machine {
        model: model.to_owned(),
        cores,
        memory_mib,
        ..Machine::of(Arch::Aarch64)
    }
}

fn boot(kernel: &Path, machine: Machine, options: &[OsString]) -> Outcome {
    let root_task = program::build_for(Arch::Aarch64, "hello").unwrap();
    qemu::run(&Boot {
        machine,
        timeout: Some(Duration::from_secs(60)),
        user_semihosting: true,
        extra_args: options.to_vec(),
        ..Boot::new(kernel, root_task)
    })
    .unwrap()
}

/// Memory that kernel, root task and what the emulator puts there may take, in KiB.
pub const TAKEN_KIB: u64 = 2112;

/// The number that `hello` tells of `what`.
pub fn told(console: &str, what: &str) -> u64 {
    let mut lines = console.lines();
    let line = lines.find_map(|line| line.trim().strip_prefix(what));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    let number = number.unwrap_or_else(|| panic!("{console}"));
    number.parse().unwrap()
}

/// Boots on `machine`; everything of it is found.
fn assert_boots(kernel: &Path, machine: Machine) {
    let outcome = boot(kernel, machine.clone(), &[]);
    let console = &outcome.console;
    assert_eq!(outcome.end, End::Guest(0), "{machine:?}: {console}");
    let told = |what: &str| told(console, what);
    assert_eq!(told("cores"), u64::from(machine.cores), "{machine:?}");
    let (all, given) = (u64::from(machine.memory_mib) << 10, told("untyped memory"));
    assert!(
        given < all && all - given < TAKEN_KIB,
        "{machine:?}: {given} KiB"
    );
}

/// One file for all machines: both boards, both interrupt controllers, little memory and much, entered at EL1 and at EL2.
/// Memory need not consist of blocks of 2 MiB.
#[test]
fn one_kernel_boots_on_every_machine() {
    let build = |options: KernelOptions| {
        let options = options.for_arch(Arch::Aarch64).with_user_timer();
        kernel::build(&options).unwrap()
    };
    let several = build(KernelOptions::smp(Variant::Debug));
    for cores in [1, 4] {
        for memory in [512, 4096] {
            for model in ["virt,gic-version=2", "virt,gic-version=3"] {
                assert_boots(&several, machine(model, cores, memory));
            }
        }
        assert_boots(&several, machine("xlnx-zcu102", cores, 512));
    }
    let single = build(KernelOptions::new(Variant::Release));
    for (model, memory) in [
        ("virt,gic-version=2", 513),
        ("virt,gic-version=3,virtualization=on", 512),
        ("xlnx-zcu102", 2048),
    ] {
        assert_boots(&single, machine(model, 1, memory));
    }
}

/// Where the header of a tree has its size, and of its strings place and size.
const TOTAL_SIZE: usize = 4;
const STRINGS_AT: usize = 12;
const STRINGS_SIZE: usize = 32;

/// The tree of QEMU's machine, with `from` replaced by `to`, which is as long.
fn tree_with(from: &str, to: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Commas divide options.
    let path = folder.join(format!("{}.dtb", to.replace(',', "-")));
    let dump = format!("virt,gic-version=2,dumpdtb={}", path.display());
    let (emulator, _) = Arch::Aarch64.emulator();
    let mut qemu = Command::new(emulator);
    qemu.args(["-machine", &dump, "-cpu", Arch::Aarch64.cpu(), "-m", "512"]);
    assert!(qemu.output().unwrap().status.success());
    let mut tree = fs::read(&path).unwrap();
    let found = tree
        .windows(from.len())
        .position(|it| it == from.as_bytes());
    let at = found.expect("the tree has it");
    tree[at..at + to.len()].copy_from_slice(to.as_bytes());
    // QEMU leaves a MiB of room, and doubles that of a tree that it is given: it ends with its strings now.
    let word = |at: usize| u32::from_be_bytes(*tree[at..].first_chunk().unwrap());
    let end = word(STRINGS_AT) + word(STRINGS_SIZE);
    tree[TOTAL_SIZE..TOTAL_SIZE + 4].copy_from_slice(&end.to_be_bytes());
    tree.truncate(end as usize);
    fs::write(&path, tree).unwrap();
    path
}

#[test]
fn a_tree_that_lacks_something_is_refused_in_words() {
    // A kernel that other tests have, too.
    let options = KernelOptions::smp(Variant::Debug).for_arch(Arch::Aarch64);
    let options = options.with_user_timer();
    let kernel = kernel::build(&options).unwrap();
    for (from, to, said) in [
        ("arm,armv8-timer", "arm,armv8-timex", "names no timer"),
        (
            "arm,cortex-a15-gic",
            "arm,cortex-a15-gix",
            "names no interrupt controller",
        ),
    ] {
        let tree = tree_with(from, to);
        let machine = machine("virt,gic-version=2", 1, 512);
        let outcome = boot(&kernel, machine, &["-dtb".into(), tree.into()]);
        assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);
        assert!(outcome.console.contains(said), "{}", outcome.console);
    }
}

/// Described systems: components in address spaces of their own, timers, faults, output to the host. The same programs and
/// descriptions as on x86_64, on one kernel, with the timer, whether they need it or not.
#[test]
fn described_systems_run() {
    for (path, said) in [
        ("systems/described-tests/SYSTEM.toml", "9 passed, 0 failed"),
        (
            "systems/examples/hello/SYSTEM.toml",
            "HELLO FROM A FILE (14 letters changed)",
        ),
        (
            "systems/examples/c/SYSTEM.toml",
            "control: 20 jobs, 0 of them late; the level is 54.7",
        ),
    ] {
        assert_runs(path, "virt", said);
    }
}

/// Timers of a service on the board's triple timer counter, and output through its second serial port: components need
/// nothing of the kernel but the clock. On a board without those devices, the system is refused in words.
#[test]
fn described_systems_have_the_devices_of_a_board() {
    for (path, said) in [
        ("systems/described-tests/SYSTEM.toml", "9 passed, 0 failed"),
        (
            "systems/examples/timers/SYSTEM.toml",
            "task 5: 4 jobs, 0 missing, 0 astray, 0 late",
        ),
    ] {
        assert_runs(path, "xlnx-zcu102", said);
    }
    let (_, mut boot) = described("systems/described-tests/SYSTEM.toml", "xlnx-zcu102");
    boot.machine.model = Machine::of(Arch::Aarch64).model;
    let outcome = qemu::run(&boot).unwrap();
    let console = &outcome.console;
    assert_eq!(outcome.end, End::Guest(1), "{console}");
    assert!(
        console.contains("was built for the devices of the board `xlnx,zynqmp`"),
        "{console}"
    );
}

/// How to boot the system on the board, in virtual time.
fn described(path: &str, model: &str) -> (Built, Boot) {
    let source = Source::read(&workspace::root().join(path)).unwrap();
    let description = system::check_on(&source.for_arch(Some(Arch::Aarch64)), Some(model));
    let description = description.unwrap_or_else(|report| panic!("{report}"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let image = folder.join(format!("{}-{model}.elf", description.system.name));
    let built = system::build(&description, Some(&image)).unwrap();
    let mut kernel = built.kernel(Variant::Release, built.cores_with(None).unwrap());
    if model == "virt" {
        kernel = kernel.with_user_timer();
    }
    let mut boot = Boot {
        timeout: Some(Duration::from_secs(60)),
        ..built.boot(kernel::build(&kernel).unwrap())
    };
    boot.machine.icount = Some(0);
    (built, boot)
}

/// The system runs on the board to its end, and says this.
fn assert_runs(path: &str, model: &str, said: &str) {
    let (built, mut boot) = described(path, model);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let output = folder.join(format!("aarch64-{model}.output"));
    if built.output.is_some() {
        built.output_to(&mut boot, &output).unwrap();
    }
    let outcome = qemu::run(&boot).unwrap();
    let console = &outcome.console;
    assert_eq!(outcome.end, End::Guest(0), "{path}, {model}: {console}");
    assert!(console.contains(said), "{path}, {model}: {console}");
    if built.output.is_some() {
        let expected: Vec<u8> = (0..64).flat_map(|_| 0..=255).collect();
        let output = fs::read(output).unwrap();
        assert!(output == expected, "{model}: {} bytes", output.len());
    }
}

/// Names of sections.
fn sections(elf: &[u8]) -> Vec<String> {
    let file = object::File::parse(elf).unwrap();
    let names = file
        .sections()
        .map(|section| section.name().unwrap().to_owned());
    names.collect()
}

/// A debugger reads what was built; the machine gets it without, but with symbols.
#[test]
fn what_boots_is_without_the_debugging_information_that_programs_have() {
    let built = program::read_all(Arch::Aarch64, &["hello"], Profile::Release).unwrap();
    let whole = sections(&built[0].bytes);
    let booted = program::build_for(Arch::Aarch64, "hello").unwrap();
    let stripped = sections(&fs::read(booted).unwrap());
    assert!(whole.iter().any(|name| name == ".debug_info"), "{whole:?}");
    assert!(
        !stripped.iter().any(|name| name.starts_with(".debug")),
        "{stripped:?}"
    );
    assert!(
        stripped.iter().any(|name| name == ".symtab"),
        "{stripped:?}"
    );
}
