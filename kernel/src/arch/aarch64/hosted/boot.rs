//! What the boot of the hosted machine finds on one with a device tree.

use super::{tree, TREE_BYTES};
use crate::arch::abi::boot::FirmwareInfo;
use crate::arch::hosted::Machine;
use crate::arch::Range;
use crate::mem::objects::Ram;

/// End of what is handed out as device memory.
pub const DEVICE_TOP: u64 = sandglass_abi::vspace::aarch64::DEVICE_TOP;

/// Where the GIC would be: its distributor, and what each core has of it.
pub const RESERVED: [Range; 2] = [
    Range {
        start: 0xfec0_0000,
        end: 0xfec0_1000,
    },
    Range {
        start: 0xfee0_0000,
        end: 0xfee0_1000,
    },
];

/// Where the device tree lies, in what would be the kernel's image.
const TREE: u64 = 0x10_0000;

/// The loader has told of a device tree, and it is in the memory of `machine`.
pub fn firmware(machine: &Machine) -> FirmwareInfo {
    // SAFETY: the machine is new, nothing is in its memory.
    unsafe { machine.write_memory(TREE, &tree()) };
    // SAFETY: memory of this machine that nothing else uses: it is kept as if it were the kernel's.
    let tree = unsafe { Ram::vouch(TREE, TREE + TREE_BYTES as u64) };
    FirmwareInfo { tree: Some(tree) }
}
