//! What the boot of the hosted machine finds on a PC.

use crate::arch::abi::boot::FirmwareInfo;
use crate::arch::hosted::Machine;
use crate::arch::list::List;
use crate::arch::Range;

/// End of what is handed out as device memory.
pub const DEVICE_TOP: u64 = 1 << 47;

/// Where interrupt controllers would be.
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

/// No firmware told anything.
pub fn firmware(_machine: &Machine) -> FirmwareInfo {
    FirmwareInfo {
        memory_map: List::new(),
        rsdp: None,
        framebuffer: None,
        clock: None,
    }
}
