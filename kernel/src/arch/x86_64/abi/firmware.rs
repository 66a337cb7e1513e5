//! What firmware and loader of a PC tell.

use sandglass_abi::boot::extra::Clock;

use crate::arch::list::List;
use crate::arch::Range;

/// Kind of available memory in a memory map.
pub const AVAILABLE: u32 = 1;

/// An entry of the firmware's memory map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryMapEntry {
    pub range: Range,
    /// [`AVAILABLE`]; the firmware's other numbers as they are.
    pub kind: u32,
}

/// A linear framebuffer (06, section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framebuffer {
    pub paddr: u64,
    /// Bytes of a line.
    pub pitch: u32,
    pub width: u32,
    pub height: u32,
    pub bits_per_pixel: u8,
    pub kind: u8,
}

/// Most entries of a memory map: as many as the boot information has room for (06, section 4).
pub const MAX_MEMORY_MAP: usize = sandglass_abi::boot::extra::X86_MEMORY_MAP_ENTRIES;

/// What firmware and loader told, for the boot information only.
pub struct FirmwareInfo {
    pub memory_map: List<MemoryMapEntry, MAX_MEMORY_MAP>,
    /// ACPI's root pointer.
    pub rsdp: Option<[u8; 36]>,
    pub framebuffer: Option<Framebuffer>,
    /// How the clock was measured.
    pub clock: Option<Clock>,
}
