//! What the boot of the hosted machine finds on one with a device tree.

use std::vec::Vec;

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

/// Bytes of the device tree: as many as the reference's has (06, section 4).
pub const TREE_BYTES: usize = 7633;

/// A device tree: its magic number and its length, and behind them bytes of which the kernel makes nothing.
pub fn tree() -> Vec<u8> {
    let head = [0xd00d_feed, TREE_BYTES as u32].map(u32::to_be_bytes);
    let rest = (8..TREE_BYTES).map(|i| i as u8);
    head.concat().into_iter().chain(rest).collect()
}

/// The loader has told of a device tree, and it is in the memory of `machine`.
pub fn firmware(machine: &Machine) -> FirmwareInfo {
    // SAFETY: the machine is new, nothing is in its memory.
    unsafe { machine.write_memory(TREE, &tree()) };
    // SAFETY: memory of this machine that nothing else uses: it is kept as if it were the kernel's.
    let tree = unsafe { Ram::vouch(TREE, TREE + TREE_BYTES as u64) };
    FirmwareInfo { tree: Some(tree) }
}
