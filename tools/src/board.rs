//! Boards of aarch64, as data: what described systems find there, and, of those whose device tree the emulator does not bring
//! along, the tree that is made.
//!
//! QEMU makes a tree for `virt`. For others it expects one (`-dtb`), into which it writes the memory and where it has put the
//! root task. A further board is one more entry of [`BOARDS`].

use std::fs;
use std::iter;
use std::path::PathBuf;

use anyhow::{ensure, Context, Result};
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use dtoolkit::ToPropertyValue;
use sandglass_abi::vspace::aarch64::{MAX_IRQ, MAX_IRQ_ZYNQMP};
use sandglass_description::OUTPUT_REGISTERS;

use crate::stripped;
use crate::workspace;

/// What a board has for described systems.
#[derive(Debug, PartialEq, Eq)]
pub struct Devices {
    /// What descriptions call it.
    pub name: &'static str,
    /// QEMU's `-machine`, unless a run asks for another.
    pub model: &'static str,
    /// A name of the root of its device tree that no other of these boards has.
    pub tree: &'static str,
    /// The highest interrupt that the kernel gives.
    pub last_irq: i64,
    pub timer: Timer,
    /// What output to the host leaves through.
    pub output: Output,
}

impl Devices {
    /// Ticks in a second of what interrupts by `irq`, if that must be told.
    pub fn rate_of(&self, irq: i64) -> Option<u64> {
        match &self.timer {
            Timer::Counter(counter) if counter.irq == irq => Some(counter.hz),
            _ => None,
        }
    }

    /// Whether the kernel must let user level set the timer of each core.
    pub const fn has_core_timer(&self) -> bool {
        matches!(self.timer, Timer::Core { .. })
    }
}

/// Where components' time comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum Timer {
    /// The physical timer of the first core, which the kernel lets user level set; its interrupt.
    Core { irq: i64 },
    /// A triple timer counter.
    Counter(Counter),
}

/// The first counter of a triple timer counter.
#[derive(Debug, PartialEq, Eq)]
pub struct Counter {
    /// Physical address of its registers, and their bytes.
    pub registers: (i64, u64),
    pub irq: i64,
    /// Ticks of its clock in a second.
    pub hz: u64,
}

/// A serial port; physical address of its registers, and their bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Behind the PCI bridge, where QEMU is asked to put it.
    Pci((u64, u64)),
    /// The second of the board's own, of Cadence's kind.
    Second((u64, u64)),
}

/// QEMU's `virt`.
const VIRT: Devices = Devices {
    name: "virt",
    model: "virt,gic-version=2",
    tree: "linux,dummy-virt",
    last_irq: MAX_IRQ as i64,
    timer: Timer::Core { irq: 30 },
    output: Output::Pci(OUTPUT_REGISTERS),
};

/// What a board has.
struct Board {
    devices: Devices,
    compatible: &'static [&'static str],
    core: &'static str,
    most_cores: u32,
    /// Where its memory begins, and how much can be there, in bytes: what is more goes into the next piece.
    memory: &'static [(u64, u64)],
    /// The most memory, in MiB, of which a tree that QEMU has been given is true: it writes memory down as one piece from the
    /// lowest address on.
    most_memory_mib: u32,
    nodes: &'static [Device],
    /// Path of the console, and the alias by which it is chosen.
    console: (&'static str, &'static str),
}

/// A device with registers.
struct Device {
    name: &'static str,
    compatible: &'static [&'static str],
    /// Address and bytes of each part.
    registers: &'static [(u64, u64)],
    /// Shared interrupts, by the controller's number less 32: they are there as long as the device asks for them.
    interrupts: &'static [u32],
    is_controller: bool,
}

impl Device {
    const fn new(
        name: &'static str,
        compatible: &'static [&'static str],
        registers: &'static [(u64, u64)],
        interrupts: &'static [u32],
    ) -> Self {
        Self {
            name,
            compatible,
            registers,
            interrupts,
            is_controller: false,
        }
    }

    /// An interrupt controller.
    const fn controller(
        name: &'static str,
        compatible: &'static [&'static str],
        registers: &'static [(u64, u64)],
    ) -> Self {
        Self {
            is_controller: true,
            ..Self::new(name, compatible, registers, &[])
        }
    }
}

const BOARDS: &[Board] = &[ZCU102];

/// Xilinx's board with a Zynq UltraScale+: the part of it that is used here.
const ZCU102: Board = Board {
    devices: Devices {
        name: "xlnx-zcu102",
        model: "xlnx-zcu102",
        tree: "xlnx,zynqmp",
        last_irq: MAX_IRQ_ZYNQMP as i64,
        timer: Timer::Counter(Counter {
            registers: (0xff11_0000, 0x1000),
            irq: 32 + 36,
            // QEMU's. A real board's is set by its firmware.
            hz: 133_000_000,
        }),
        output: Output::Second((0xff01_0000, 0x1000)),
    },
    compatible: &[
        "xlnx,zynqmp-zcu102-rev1.0",
        "xlnx,zynqmp-zcu102",
        "xlnx,zynqmp",
    ],
    core: "arm,cortex-a53",
    most_cores: 4,
    memory: &[(0, 0x8000_0000), (0x8_0000_0000, 0x8_0000_0000)],
    most_memory_mib: 2048,
    nodes: &[
        Device::controller(
            "interrupt-controller@f9010000",
            &["arm,gic-400"],
            &[(0xf901_0000, 0x1_0000), (0xf902_0000, 0x2_0000)],
        ),
        Device::new(
            "serial@ff000000",
            &["cdns,uart-r1p12", "xlnx,xuartps"],
            &[(0xff00_0000, 0x1000)],
            &[21],
        ),
        Device::new(
            "serial@ff010000",
            &["cdns,uart-r1p12", "xlnx,xuartps"],
            &[(0xff01_0000, 0x1000)],
            &[22],
        ),
        Device::new(
            "timer@ff110000",
            &["cdns,ttc"],
            &[(0xff11_0000, 0x1000)],
            &[36, 37, 38],
        ),
    ],
    console: ("/serial@ff000000", "serial0"),
};

/// Handle by which devices name the interrupt controller.
const CONTROLLER: u32 = 1;
/// Kinds of interrupts: shared ones, and private ones.
const SHARED: u32 = 0;
const PRIVATE: u32 = 1;
/// Triggered by a level that is high; and of private ones, the cores that have them, one bit for each.
const LEVEL_HIGH: u32 = 4;
const ALL_CORES: u32 = 0xf00;
/// The timer's private interrupts, by the controller's number less 16: of the secure and the other physical timer, the
/// virtual one and that of the hypervisor.
const TIMERS: [u32; 4] = [13, 14, 11, 10];

/// The board `model`, QEMU's `-machine`, if it is one of those.
fn find(model: &str) -> Option<&'static Board> {
    let name = name_of(model);
    BOARDS.iter().find(|board| board.devices.name == name)
}

/// The board of a `-machine`: options of it follow behind a comma.
fn name_of(model: &str) -> &str {
    model.split(',').next().unwrap_or(model)
}

/// What the board `model`, QEMU's `-machine`, has for described systems; `None` if it is none of those that are known.
pub fn devices(model: &str) -> Option<&'static Devices> {
    all_devices().find(|devices| devices.name == name_of(model))
}

/// What every known board has for described systems; first that which is meant if none is named.
pub fn all_devices() -> impl Iterator<Item = &'static Devices> {
    iter::once(&VIRT).chain(BOARDS.iter().map(|board| &board.devices))
}

/// What the board has for described systems that is meant if none is named.
pub const fn default_devices() -> &'static Devices {
    &VIRT
}

/// The device tree of the board `model`, QEMU's `-machine`, with that many cores and as much memory; `None` if QEMU makes the
/// tree itself.
///
/// # Errors
/// The board has no such number of cores.
pub fn tree(model: &str, cores: u32, memory_mib: u32) -> Result<Option<Vec<u8>>> {
    let Some(board) = find(model) else {
        return Ok(None);
    };
    ensure!(
        cores <= board.most_cores,
        "`{}` has {} cores, not {cores}",
        board.devices.name,
        board.most_cores
    );
    Ok(Some(board.tree(cores, memory_mib).to_dtb()))
}

/// Writes the [`tree`] into a file, for QEMU, which writes into it what memory there is.
///
/// # Errors
/// There is no such board with as many cores or as much memory; or the file cannot be written.
pub fn tree_file(model: &str, cores: u32, memory_mib: u32) -> Result<Option<PathBuf>> {
    let (Some(board), Some(tree)) = (find(model), tree(model, cores, memory_mib)?) else {
        return Ok(None);
    };
    let name = board.devices.name;
    ensure!(
        memory_mib <= board.most_memory_mib,
        "QEMU tells of the memory of `{name}` truly up to {} MiB, not {memory_mib}: what it has more is not behind that",
        board.most_memory_mib
    );
    let folder = workspace::target_dir().join("boards");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{name}-{cores}-{memory_mib}.dtb"));
    // Whoever boots with it, and whoever else makes it, sees it whole.
    stripped::write_as_it_is(&tree, &path)?;
    Ok(Some(path))
}

impl Board {
    fn tree(&self, cores: u32, memory_mib: u32) -> DeviceTree {
        let mut tree = DeviceTree::new();
        let root = &mut tree.root;
        set(root, "#address-cells", 2u32);
        set(root, "#size-cells", 2u32);
        set(root, "compatible", self.compatible);
        set(root, "model", self.devices.name);
        set(root, "interrupt-parent", CONTROLLER);
        root.add_child(memory(self.memory, u64::from(memory_mib) << 20));
        root.add_child(processors(self.core, cores));
        root.add_child(firmware());
        root.add_child(timer());
        for device in self.nodes {
            root.add_child(device.node());
        }
        let (console, alias) = self.console;
        let mut aliases = node("aliases");
        set(&mut aliases, alias, console);
        root.add_child(aliases);
        let mut chosen = node("chosen");
        set(&mut chosen, "stdout-path", format!("{alias}:115200n8"));
        root.add_child(chosen);
        tree
    }
}

impl Device {
    fn node(&self) -> DeviceTreeNode {
        let mut it = node(self.name);
        set(&mut it, "compatible", self.compatible);
        set(&mut it, "reg", reg(self.registers.iter().copied()));
        if self.is_controller {
            set(&mut it, "interrupt-controller", [0u8; 0]);
            set(&mut it, "#interrupt-cells", 3u32);
            set(&mut it, "phandle", CONTROLLER);
        } else {
            let interrupts = self.interrupts.iter();
            let cells: Vec<u32> = interrupts
                .flat_map(|&number| [SHARED, number, LEVEL_HIGH])
                .collect();
            set(&mut it, "interrupts", cells);
        }
        it
    }
}

/// Addresses and sizes in cells.
fn reg(parts: impl Iterator<Item = (u64, u64)>) -> Vec<u32> {
    let numbers = parts.flat_map(|(address, bytes)| [address, bytes]);
    let cells = numbers.flat_map(|number| [(number >> 32) as u32, number as u32]);
    cells.collect()
}

/// So many `bytes` of memory in the places for it.
fn memory(places: &[(u64, u64)], bytes: u64) -> DeviceTreeNode {
    let mut left = bytes;
    let pieces = places.iter().map(|&(start, room)| {
        let here = left.min(room);
        left -= here;
        (start, here)
    });
    let cells = reg(pieces.filter(|&(_, bytes)| bytes > 0));
    let mut it = node(&format!("memory@{:x}", places[0].0));
    set(&mut it, "device_type", "memory");
    set(&mut it, "reg", cells);
    it
}

fn processors(core: &str, cores: u32) -> DeviceTreeNode {
    let mut all = node("cpus");
    set(&mut all, "#address-cells", 1u32);
    set(&mut all, "#size-cells", 0u32);
    for number in 0..cores {
        let mut one = node(&format!("cpu@{number}"));
        set(&mut one, "device_type", "cpu");
        set(&mut one, "compatible", core);
        set(&mut one, "reg", number);
        set(&mut one, "enable-method", "psci");
        all.add_child(one);
    }
    all
}

/// Firmware, called by SMC.
fn firmware() -> DeviceTreeNode {
    let mut it = node("psci");
    set(&mut it, "compatible", &["arm,psci-1.0", "arm,psci-0.2"][..]);
    set(&mut it, "method", "smc");
    it
}

/// The timer of the architecture.
fn timer() -> DeviceTreeNode {
    let mut it = node("timer");
    set(&mut it, "compatible", "arm,armv8-timer");
    let cells: Vec<u32> = TIMERS
        .iter()
        .flat_map(|&number| [PRIVATE, number, ALL_CORES | LEVEL_HIGH])
        .collect();
    set(&mut it, "interrupts", cells);
    it
}

fn node(name: &str) -> DeviceTreeNode {
    DeviceTreeNode::new(name).expect("a name of the tables above is one of a node")
}

fn set(node: &mut DeviceTreeNode, name: &str, value: impl ToPropertyValue) {
    let property = DeviceTreeProperty::new(name, value);
    node.add_property(property.expect("a name of the tables above is one of a property"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_boards_that_need_one_have_a_tree() {
        assert!(tree("virt,gic-version=3", 8, 1 << 20).unwrap().is_none());
        let bytes = tree("xlnx-zcu102,secure=off", 4, 4096).unwrap().unwrap();
        let tree = dtoolkit::fdt::Fdt::new(&bytes).unwrap();
        assert!(tree.find_node("/cpus/cpu@3").is_some());
        assert!(tree.find_node("/cpus/cpu@4").is_none());
        let memory = tree.find_node("/memory@0").unwrap().reg().unwrap().unwrap();
        let memory: Vec<(u64, u64)> = memory
            .map(|part| (part.address().unwrap(), part.size().unwrap()))
            .collect();
        assert_eq!(memory, [(0, 0x8000_0000), (0x8_0000_0000, 0x8000_0000)]);
    }

    #[test]
    fn what_a_board_does_not_have_is_refused_in_words() {
        let refused =
            |cores, memory| format!("{:#}", tree_file("xlnx-zcu102", cores, memory).unwrap_err());
        assert!(refused(5, 512).contains("has 4 cores, not 5"));
        assert!(refused(4, 2049).contains("2048 MiB"));
    }
}
