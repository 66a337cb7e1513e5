//! aarch64: the register contract of the reference's loader, and device trees as such a loader passes them on: byte for byte,
//! while QEMU reads and edits those that it is given.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sandglass_tools::arch::Arch;
use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::program::{self, Profile};
use sandglass_tools::qemu::{self, Boot, End, Machine, Medium, Outcome};

const GICV2: &str = "virt,gic-version=2";

/// A machine for the loader.
fn machine(model: &str, cores: u32) -> Machine {
    Machine {
        model: model.to_owned(),
        cores,
        ..Machine::of(Arch::Aarch64)
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The device tree that QEMU makes for a machine, without the room that it leaves behind it.
fn tree_of(machine: &Machine) -> Vec<u8> {
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
    let loader = program::read_all(Arch::Aarch64, &["reference-loader"], Profile::Release).unwrap();
    let loader = loader[0].path.clone();
    let root_task = program::build_for(Arch::Aarch64, "hello").unwrap();
    let content = archive(&[
        ("kernel.elf", &fs::read(kernel).unwrap()),
        ("kernel.dtb", tree),
        ("hello", &fs::read(root_task).unwrap()),
    ]);
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

/// One core and several, of which the loader has started all, from EL1 and from EL2.
#[test]
fn the_references_loader_starts_the_kernel() {
    let single = kernel(KernelOptions::new(Variant::Release));
    let several = kernel(KernelOptions::smp(Variant::Debug));
    for (kernel, model, cores) in [
        (&single, GICV2, 1),
        (&single, "virt,gic-version=3,virtualization=on", 1),
        (&several, GICV2, 1),
        (&several, GICV2, 4),
        (&several, "virt,gic-version=3", 4),
    ] {
        let machine = machine(model, cores);
        let tree = tree_of(&machine);
        let name = format!("loader-{}-{cores}", model.len());
        let outcome = boot(kernel, machine, &name, &tree);
        assert_eq!(outcome.end, End::Guest(0), "{model}: {}", outcome.console);
        let told = format!("cores                {cores}");
        assert!(outcome.console.contains(&told), "{}", outcome.console);
    }
}
