//! Boards whose device tree the emulator does not bring along: what they have, as data, and the tree that is made of it.
//!
//! QEMU makes a tree for `virt`. For others it expects one (`-dtb`), into which it writes the memory and where it has put the
//! root task. A further board is one more entry of [`BOARDS`].

use std::fs;
use std::path::PathBuf;

use anyhow::{ensure, Context, Result};
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use dtoolkit::ToPropertyValue;

use crate::stripped;
use crate::workspace;

/// What a board has.
struct Board {
    /// QEMU's name of it.
    model: &'static str,
    compatible: &'static [&'static str],
    core: &'static str,
    most_cores: u32,
    /// The most memory, in MiB, of which the tree is true: QEMU writes it down as one piece from the lowest address on.
    most_memory_mib: u32,
    devices: &'static [Device],
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
    model: "xlnx-zcu102",
    compatible: &[
        "xlnx,zynqmp-zcu102-rev1.0",
        "xlnx,zynqmp-zcu102",
        "xlnx,zynqmp",
    ],
    core: "arm,cortex-a53",
    most_cores: 4,
    // The 2 GiB of its lower memory, less the MiB at the end that QEMU does not have there.
    most_memory_mib: 2047,
    devices: &[
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

/// Writes the device tree of the board `model`, QEMU's `-machine`, with that many cores, into a file; `None` if QEMU makes
/// the tree itself.
///
/// # Errors
/// There is no such board with as many cores or as much memory; or the file cannot be written.
pub fn tree(model: &str, cores: u32, memory_mib: u32) -> Result<Option<PathBuf>> {
    let name = model.split(',').next().unwrap_or(model);
    let Some(board) = BOARDS.iter().find(|board| board.model == name) else {
        return Ok(None);
    };
    ensure!(
        cores <= board.most_cores,
        "`{name}` has {} cores, not {cores}",
        board.most_cores
    );
    ensure!(
        memory_mib <= board.most_memory_mib,
        "QEMU tells of the memory of `{name}` truly up to {} MiB, not {memory_mib}: what it has more is not behind that",
        board.most_memory_mib
    );
    let folder = workspace::target_dir().join("boards");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{name}-{cores}.dtb"));
    // Whoever boots with it, and whoever else makes it, sees it whole.
    stripped::write_as_it_is(&board.tree(cores).to_dtb(), &path)?;
    Ok(Some(path))
}

impl Board {
    /// The device tree, without memory.
    fn tree(&self, cores: u32) -> DeviceTree {
        let mut tree = DeviceTree::new();
        let root = &mut tree.root;
        set(root, "#address-cells", 2u32);
        set(root, "#size-cells", 2u32);
        set(root, "compatible", self.compatible);
        set(root, "model", self.model);
        set(root, "interrupt-parent", CONTROLLER);
        root.add_child(processors(self.core, cores));
        root.add_child(firmware());
        root.add_child(timer());
        for device in self.devices {
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
        let parts = self.registers.iter();
        let reg: Vec<u32> = parts
            .flat_map(|&(address, bytes)| {
                [high(address), address as u32, high(bytes), bytes as u32]
            })
            .collect();
        set(&mut it, "reg", reg);
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

/// The upper half of a number.
fn high(number: u64) -> u32 {
    (number >> 32) as u32
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
        let path = tree("xlnx-zcu102,secure=off", 4, 2047).unwrap().unwrap();
        let bytes = fs::read(path).unwrap();
        let tree = dtoolkit::fdt::Fdt::new(&bytes).unwrap();
        assert!(tree.find_node("/cpus/cpu@3").is_some());
        assert!(tree.find_node("/cpus/cpu@4").is_none());
    }

    #[test]
    fn what_a_board_does_not_have_is_refused_in_words() {
        let refused =
            |cores, memory| format!("{:#}", tree("xlnx-zcu102", cores, memory).unwrap_err());
        assert!(refused(5, 512).contains("has 4 cores, not 5"));
        assert!(refused(4, 2048).contains("2047 MiB"));
    }
}
