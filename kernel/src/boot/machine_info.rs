//! What the machine's part of the boot found out, in terms of no particular machine.

use crate::arch::abi::boot::{FirmwareInfo, MAX_MEMORY_MAP};
use crate::arch::list::List;
use crate::arch::Range;
use crate::mem::objects::Ram;

/// Most pieces of RAM: each entry of a memory map, cut by the kernel and the root task's file.
pub const MAX_RAM: usize = MAX_MEMORY_MAP + 4;

/// Most ranges of devices that the kernel keeps.
pub const MAX_RESERVED: usize = 16;

/// What the loader left of the root task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RootTask {
    /// Its file: a range within the RAM.
    File(Range),
    /// Its image, as it is to run: all of that RAM, as its first address and the one where it starts. Both are in user memory,
    /// and the machine's part of the boot has seen to that.
    Loaded { start: u64, entry: u64 },
}

/// What the machine has.
pub struct MachineInfo {
    pub firmware: FirmwareInfo,
    /// RAM that nothing uses, ascending.
    pub ram: List<Ram, MAX_RAM>,
    /// The code that runs before the first user instruction alone: not used any more by then, and handed out, too.
    pub init_code: Ram,
    /// RAM with what the loader left of the root task in it.
    pub module: Ram,
    /// Whether that RAM is handed out once the root task has been loaded. In the first MiB, where
    /// a boot loader may put a module, it is not: to the root task, that is a device's memory.
    pub module_is_free: bool,
    /// What that is.
    pub root_task: RootTask,
    /// What is neither RAM nor to be handed out as a device, in any order: the kernel's image, its
    /// interrupt controllers, addresses that raise interrupts.
    pub reserved: List<Range, MAX_RESERVED>,
    /// End of the physical addresses that are handed out.
    pub device_top: u64,
}
