//! aarch64: the register contract of the reference's loader, and device trees as such a loader passes them on: byte for byte,
//! while QEMU reads and edits those that it is given.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use Damage::{Bytes, Tree};

use dtoolkit::fdt::Fdt;
use dtoolkit::memreserve::MemoryReservation;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use dtoolkit::ToPropertyValue;
use sandglass_tools::arch::Arch;
use sandglass_tools::board;
use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::program::{self, Profile};
use sandglass_tools::qemu::{self, Boot, End, Machine, Medium, Outcome};

use crate::aarch64::{told, TAKEN_KIB};

const GICV2: &str = "virt,gic-version=2";

/// A machine for the loader.
fn machine(model: &str, cores: u32, memory_mib: u32) -> Machine {
    Machine {
        model: model.to_owned(),
        cores,
        memory_mib,
        ..Machine::of(Arch::Aarch64)
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The device tree of a machine: the tool's, or that which QEMU makes, without the room that it leaves behind it.
fn tree_of(machine: &Machine) -> Vec<u8> {
    let ours = board::tree(&machine.model, machine.cores, machine.memory_mib).unwrap();
    if let Some(tree) = ours {
        return tree;
    }
    // Commas divide options.
    let path = file(&format!(
        "{}-{}.dtb",
        machine.model.replace([',', '='], "-"),
        machine.cores
    ));
    let dump = format!("{},dumpdtb={}", machine.model, path.display());
    let (emulator, _) = Arch::Aarch64.emulator();
    let mut qemu = Command::new(emulator);
    qemu.args(["-machine", &dump, "-cpu", &machine.cpu]);
    qemu.args(["-smp", &machine.cores.to_string()]);
    qemu.args(["-m", &machine.memory_mib.to_string()]);
    assert!(qemu.output().unwrap().status.success());
    let mut tree = fs::read(&path).unwrap();
    let word = |at: usize| u32::from_be_bytes(*tree[at..].first_chunk().unwrap());
    // The strings come last.
    let end = word(12) + word(32);
    tree[4..8].copy_from_slice(&end.to_be_bytes());
    tree.truncate(end as usize);
    tree
}

/// An archive (cpio, newc) of files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in files.iter().chain(&[("TRAILER!!!", &[][..])]) {
        let mut header = String::from("070701");
        for number in [
            1,
            0o100_644,
            0,
            0,
            1,
            0,
            content.len(),
            0,
            0,
            0,
            0,
            name.len() + 1,
            0,
        ] {
            header.push_str(&format!("{number:08x}"));
        }
        archive.extend(header.bytes().chain(name.bytes()).chain([0]));
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend(*content);
        archive.resize(archive.len().next_multiple_of(4), 0);
    }
    archive
}

/// Boots `hello` on a kernel by the loader, which passes `tree` on.
fn boot(kernel: &Path, machine: Machine, name: &str, tree: &[u8]) -> Outcome {
    boot_with(kernel, machine, name, tree, "hello", &[])
}

/// Boots `root_task` likewise, with what else the loader is told.
fn boot_with(
    kernel: &Path,
    machine: Machine,
    name: &str,
    tree: &[u8],
    root_task: &str,
    told: &[&str],
) -> Outcome {
    let loader = program::read_all(Arch::Aarch64, &["reference-loader"], Profile::Release).unwrap();
    let loader = loader[0].path.clone();
    let program = program::build_for(Arch::Aarch64, root_task).unwrap();
    let [kernel, program] = [kernel, &program].map(|path| fs::read(path).unwrap());
    let mut files: Vec<(&str, &[u8])> = vec![
        ("kernel.elf", &kernel),
        ("kernel.dtb", tree),
        (root_task, &program),
    ];
    files.extend(told.iter().map(|&name| (name, &[][..])));
    if machine.cores == 1 {
        files.push(("one-core", &[]));
    }
    let content = archive(&files);
    let archive = file(&format!("{name}.cpio"));
    fs::write(&archive, content).unwrap();
    qemu::run(&Boot {
        machine,
        timeout: Some(Duration::from_secs(60)),
        user_semihosting: true,
        ..Boot::from(Medium::Loader { loader, archive })
    })
    .unwrap()
}

/// The kernel that also boots by itself, as it is.
fn kernel(options: KernelOptions) -> PathBuf {
    let options = options.for_arch(Arch::Aarch64).with_user_timer();
    kernel::build(&options).unwrap()
}

/// One core and several, of which the loader has started all, from EL1 and from EL2. On the second board with more memory
/// than the lower 2 GiB, which QEMU's own tree would tell wrongly.
#[test]
fn the_references_loader_starts_the_kernel() {
    let single = kernel(KernelOptions::new(Variant::Release));
    let several = kernel(KernelOptions::smp(Variant::Debug));
    for (kernel, model, cores, memory) in [
        (&single, GICV2, 1, 512),
        (&single, "virt,gic-version=3,virtualization=on", 1, 512),
        (&single, "xlnx-zcu102", 1, 4096),
        (&several, GICV2, 1, 512),
        (&several, GICV2, 4, 512),
        (&several, "virt,gic-version=3", 4, 512),
    ] {
        let machine = machine(model, cores, memory);
        let tree = tree_of(&machine);
        let name = format!("loader-{}-{cores}", model.len());
        let outcome = boot(kernel, machine, &name, &tree);
        assert_eq!(outcome.end, End::Guest(0), "{model}: {}", outcome.console);
        let told = |what: &str| told(&outcome.console, what);
        assert_eq!(told("cores"), u64::from(cores), "{model}");
        let all = u64::from(memory) << 10;
        assert!(
            (all - TAKEN_KIB..all).contains(&told("untyped memory")),
            "{model}"
        );
    }
}

/// Boots two threads that wait for an interrupt on a kernel by the loader, which stays at EL2 and is told what they have then.
fn boot_watched(variant: Variant, told: &str) -> Outcome {
    const NAME: &str = "system-error";
    // Kernels that other tests have, too.
    let kernel = kernel(match variant {
        Variant::Debug => KernelOptions::smp(variant),
        Variant::Release => KernelOptions::new(variant),
    });
    let machine = machine("virt,gic-version=2,virtualization=on", 1, 512);
    let tree = tree_of(&machine);
    boot_with(&kernel, machine, told, &tree, NAME, &[told])
}

/// A system error that arrives while user code runs is an exception of the thread that it meets, with ESR as its number, and of
/// nobody else; a kernel that is not for debugging masks it, and goes on (reference, deliberate difference 17).
#[test]
fn a_system_error_is_an_exception_of_whom_it_meets() {
    const SYSTEM_ERROR: &str = "exception 0xbe000000";
    for (variant, is_reported) in [(Variant::Debug, true), (Variant::Release, false)] {
        let outcome = boot_watched(variant, "system-errors");
        let console = &outcome.console;
        assert_eq!(outcome.end, End::Guest(0), "{console}");
        for thread in ["thread 1", "thread 2"] {
            let line = console.lines().find(|line| line.contains(thread));
            let line = line.unwrap_or_else(|| panic!("{console}"));
            assert_eq!(line.contains(SYSTEM_ERROR), is_reported, "{line}");
        }
    }
}

/// What no program can cause, and a broken machine or kernel may: each of the vectors that must not be taken stops the debug
/// kernel, with words and a status.
#[test]
fn exceptions_that_must_not_be_end_in_words() {
    for (vector, status, said) in [
        (0, 4, "an exception in the kernel on a user's stack"),
        (1, 4, "an interrupt in the kernel on a user's stack"),
        (4, 2, "exception in the kernel at "),
        (6, 4, "a fast interrupt in the kernel"),
        (7, 4, "a system error (SError) in the kernel"),
        (10, 4, "a fast interrupt in user code"),
        (12, 4, "an exception in user code of 32 bits"),
        (15, 4, "a system error (SError) in user code of 32 bits"),
    ] {
        let outcome = boot_watched(Variant::Debug, &format!("vector-{vector:02}"));
        let console = &outcome.console;
        assert_eq!(outcome.end, End::Guest(status), "{vector}: {console}");
        let line = console.lines().find(|line| line.contains(said));
        let line = line.unwrap_or_else(|| panic!("{vector}: {console}"));
        // That of waiting, as the loader has passed it on.
        assert!(line.contains("syndrome 0x7e00000"), "{line}");
    }
}

/// What is wrong with a tree, what makes it so, and what the kernel says, or [`SURVIVED`].
type Case = (&'static str, Damage, &'static str);

enum Damage {
    /// Of what the tree says.
    Tree(fn(&mut DeviceTree)),
    /// Of its bytes.
    Bytes(fn(&mut Vec<u8>)),
}

/// The last line of `hello`.
const SURVIVED: &str = "hello is done";

fn set(tree: &mut DeviceTree, path: &str, name: &str, value: impl ToPropertyValue) {
    let node = match path {
        "/" => &mut tree.root,
        _ => tree.find_node_mut(path).unwrap(),
    };
    node.add_property(DeviceTreeProperty::new(name, value).unwrap());
}

fn remove(tree: &mut DeviceTree, name: &str) {
    assert!(tree.root.remove_child(name).is_some(), "{name}");
}

/// Sets number `index` of the header.
fn header(tree: &mut [u8], index: usize, number: u32) {
    tree[4 * index..4 * index + 4].copy_from_slice(&number.to_be_bytes());
}

/// Where the structure begins, or the strings.
fn part(tree: &[u8], index: usize) -> usize {
    u32::from_be_bytes(*tree[4 * index..].first_chunk().unwrap()) as usize
}

/// Writes `words` over the structure, from its token `from` on, which is behind the name of the root.
fn tokens(tree: &mut [u8], from: usize, words: &[u32]) {
    let at = part(tree, 2) + 4 * from;
    for (place, word) in tree[at..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
}

const MEMORY: &str = "/memory@40000000";
const GIC: &str = "/intc@8000000";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // ---- what is no tree
    ("magic", Bytes(|tree| header(tree, 0, 0xd00d_fee0)), "no magic number"),
    ("no-header", Bytes(|tree| tree.truncate(4)), "shorter than its header"),
    ("truncated", Bytes(|tree| tree.truncate(tree.len() / 2)), "longer than what is there"),
    ("cut-header", Bytes(|tree| { tree.truncate(20); header(tree, 1, 20); }), "shorter than its header"),
    ("endless", Bytes(|tree| header(tree, 1, u32::MAX)), "larger than 2 MiB"),
    ("old", Bytes(|tree| header(tree, 5, 3)), "older than version 17"),
    ("new", Bytes(|tree| header(tree, 6, 99)), "cannot be read as version 17"),
    ("structure-outside", Bytes(|tree| header(tree, 2, u32::MAX - 3)), "structure is not inside it"),
    ("structure-odd", Bytes(|tree| { let at = part(tree, 2); header(tree, 2, at as u32 + 2); }), "multiple of 4 bytes"),
    ("structure-long", Bytes(|tree| header(tree, 9, u32::MAX)), "structure is not inside it"),
    ("strings-outside", Bytes(|tree| header(tree, 3, u32::MAX)), "strings are not inside it"),
    ("reservations-outside", Bytes(|tree| header(tree, 4, u32::MAX)), "no end inside it"),
    // ---- what is no structure
    ("token", Bytes(|tree| tokens(tree, 2, &[7])), "a token that is none"),
    ("no-end", Bytes(|tree| header(tree, 9, 4)), "without an end"),
    ("property-long", Bytes(|tree| tokens(tree, 2, &[3, u32::MAX, 0])), "longer than the structure"),
    ("property-nameless", Bytes(|tree| tokens(tree, 2, &[3, 0, u32::MAX])), "no name in its strings"),
    ("early-end", Bytes(|tree| tokens(tree, 2, &[9])), "ends inside a node"),
    ("second-root", Bytes(|tree| tokens(tree, 2, &[2, 1, 0, 2, 9])), "more than one root"),
    ("extra-end", Bytes(|tree| tokens(tree, 2, &[2, 2])), "ends a node that did not begin"),
    ("property-outside", Bytes(|tree| tokens(tree, 2, &[2, 3, 0, 0])), "outside of its nodes"),
    ("property-late", Bytes(|tree| tokens(tree, 2, &[1, 0, 2, 3, 0, 0])), "behind a node"),
    ("deep", Tree(|tree| {
        let mut node = DeviceTreeNode::new("a").unwrap();
        for _ in 0..1000 {
            let mut above = DeviceTreeNode::new("a").unwrap();
            above.add_child(node);
            node = above;
        }
        tree.root.add_child(node);
    }), "more than 16 nodes"),
    // ---- what is no machine
    ("no-memory", Tree(|tree| remove(tree, "memory@40000000")), "names no memory"),
    ("no-timer", Tree(|tree| remove(tree, "timer")), "names no timer"),
    ("no-controller", Tree(|tree| remove(tree, "intc@8000000")), "names no interrupt controller"),
    ("no-cores", Tree(|tree| remove(tree, "cpus")), "names no core"),
    ("three-cells", Tree(|tree| set(tree, "/", "#address-cells", 3u32)), "more than 2 cells"),
    ("memory-half", Tree(|tree| set(tree, MEMORY, "reg", [0u32, 0x4000_0000, 0])), "does not consist of addresses and sizes"),
    ("memory-wraps", Tree(|tree| set(tree, MEMORY, "reg", [!0u32, 0, 1, 0])), "behind the last address"),
    ("memory-pieces", Tree(|tree| set(tree, MEMORY, "reg", vec![1u32; 4 * 17])), "more pieces of memory than 16"),
    ("memory-elsewhere", Tree(|tree| set(tree, MEMORY, "reg", [0u32, 0x5000_0000, 0, 0x1000_0000])), "outside of RAM"),
    ("memory-beyond", Tree(|tree| set(tree, MEMORY, "reg", [0x100u32, 0, 0x100, 0])), "whole pages below 510 GiB"),
    ("memory-crumbs", Tree(|tree| set(tree, MEMORY, "reg", [0u32, 0x4000_0001, 0, 0xffe])), "whole pages"),
    ("all-reserved", Tree(|tree| tree.memory_reservations.push(MemoryReservation::new(0x4000_0000, 0x2000_0000))), "does not fit into memory"),
    ("reserved-wraps", Tree(|tree| tree.memory_reservations.push(MemoryReservation::new(u64::MAX, 2))), "behind the last address"),
    ("reserved-pieces", Tree(|tree| (0..17).for_each(|i| tree.memory_reservations.push(MemoryReservation::new(0x4800_0000 + i * 0x2000, 0x1000)))), "reserves more"),
    ("two-cells", Tree(|tree| set(tree, GIC, "#interrupt-cells", 2u32)), "fewer than 3 cells"),
    ("controller-odd", Tree(|tree| set(tree, GIC, "reg", [0u32, 0x0800_0010, 0, 0x1000, 0, 0x0801_0000, 0, 0x1000])), "do not begin at a page"),
    ("controller-far", Tree(|tree| set(tree, GIC, "reg", [1u32 << 18, 0, 0, 0x1000, 0, 0x0801_0000, 0, 0x1000])), "impossible address"),
    ("controller-memory", Tree(|tree| set(tree, GIC, "reg", [0u32, 0x4800_0000, 0, 0x1000, 0, 0x0801_0000, 0, 0x1000])), "interrupt controller is in memory"),
    ("timer-short", Tree(|tree| set(tree, "/timer", "interrupts", [1u32, 13, 4])), "lacks the private interrupt"),
    ("timer-other", Tree(|tree| set(tree, "/timer", "interrupts", [1u32, 13, 4, 1, 14, 4, 1, 12, 4])), "not number 27"),
    ("initrd-half", Tree(|tree| set(tree, "/chosen", "linux,initrd-start", 0x4800_0000u32)), "not both numbers"),
    // ---- what can be lived with
    ("memory-overlaps", Tree(|tree| set(tree, MEMORY, "reg", [0u32, 0x4000_0000, 0, 0x2000_0000, 0, 0x4800_0000, 0, 0x800_1000])), SURVIVED),
    ("memory-odd", Tree(|tree| set(tree, MEMORY, "reg", [0u32, 0x4000_0000, 0, 0x1234_5678])), SURVIVED),
    ("alias-of-itself", Tree(|tree| {
        set(tree, "/chosen", "stdout-path", "console");
        let mut aliases = DeviceTreeNode::new("aliases").unwrap();
        aliases.add_property(DeviceTreeProperty::new("console", "console").unwrap());
        tree.root.add_child(aliases);
    }), SURVIVED),
    ("no-firmware", Tree(|tree| remove(tree, "psci")), SURVIVED),
];

/// Each is refused in words, or boots, soon.
#[test]
fn wrong_trees_are_refused_in_words_or_survived() {
    let kernel = kernel(KernelOptions::smp(Variant::Debug));
    let right = tree_of(&machine(GICV2, 1, 512));
    for (name, damage, said) in CASES {
        let tree = match damage {
            Tree(change) => {
                let mut tree = DeviceTree::from_fdt(&Fdt::new(&right).unwrap());
                change(&mut tree);
                tree.to_dtb()
            }
            Bytes(change) => {
                let mut tree = right.clone();
                change(&mut tree);
                tree
            }
        };
        fs::write(file(&format!("{name}.dtb")), &tree).unwrap();
        let outcome = boot(&kernel, machine(GICV2, 1, 512), "wrong-tree", &tree);
        let status = u8::from(*said != SURVIVED);
        let console = &outcome.console;
        assert_eq!(outcome.end, End::Guest(status), "{name}: {console}");
        assert!(console.contains(said), "{name}: {console}");
    }
}
