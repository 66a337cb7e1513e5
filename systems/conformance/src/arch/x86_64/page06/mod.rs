//! Page 06: what x86_64 has of it.

mod chunks;
mod console;
mod devices;

use sandglass::abi::boot::extra as id;

use crate::page02::support::Kind;
use crate::page06::image::{extra_region, PAGE};
use crate::page06::untypeds::{range, Range};
use crate::prelude::*;

use chunks::map_entries;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[chunks::CHECKS, console::CHECKS, devices::CHECKS];

/// Chunks of extra boot information in their order (06, section 4), and those that every boot has.
pub const CHUNKS: &[u64] = &[
    id::X86_VBE,
    id::X86_ACPI_RSDP,
    id::X86_FRAMEBUFFER,
    id::X86_MEMORY_MAP,
    id::X86_TSC_MHZ,
];
pub const REQUIRED: &[u64] = &[id::X86_ACPI_RSDP, id::X86_MEMORY_MAP, id::X86_TSC_MHZ];

/// Bytes of a chunk, if there is one of this id.
pub fn chunk_length(id: u64, _payload: &[u8]) -> Option<usize> {
    Some(match id {
        1 => 800,
        2 => 1220,
        3 => 52,
        4 => 38,
        5 => 20,
        _ => return None,
    })
}

/// What fixed slots hold that differs between architectures (06, section 1.2), and which are empty.
pub const FIXED: &[(u64, Kind)] = &[(7, Kind::IoPortControl), (16, Kind::SchedControl)];
pub const NULL_SLOTS: &[u64] = &[];

/// The regions of boot information in their order, by number: authorities over time are 0, paging structures 1, pages of extra
/// boot information 2.
pub const REGIONS: [usize; 3] = [0, 1, 2];

/// Pages of extra boot information that have capabilities: all of the region (06, section 3).
pub fn extra_pages(f: &Fixture) -> u64 {
    extra_region(f) / PAGE
}

/// The attributes of the frames of buffer and boot information.
pub const OTHER_ATTRIBUTES: u64 = 0;

/// Flags at the first instruction (06, section 1.1), as far as they are seen.
pub const FIRST_FLAGS: u64 = 0x202;

/// The highest page that can be mapped (06, section 8).
pub const HIGHEST_PAGE: u64 = 0x7fff_ffff_e000;

/// Above all devices.
pub const DEVICE_TOP: u64 = 1 << 47;
/// Low memory, a device.
const LOW_MEMORY_END: u64 = 1 << 20;

/// I/O APIC, local APIC, and the window of message-signalled interrupts: withheld.
pub fn reserved_devices(_f: &Fixture) -> Result<Vec<Range>, Failure> {
    Ok(vec![
        range(0xfec0_0000, 0xfec0_1000),
        range(0xfee0_0000, 0xfee0_1000),
        range(0xffff_fff8, 0x1_0000_0000),
    ])
}

/// Whether a frame of the initial address space is mapped: one that is not is refused a misaligned address for that (03,
/// section 8.3).
pub fn is_mapped(frame: u64, address: u64) -> bool {
    let words = [address + 1, Rights::READ_WRITE.raw(), 0];
    let caps = [boot::VSPACE.cptr()];
    let probe = Invocation::new(CPtr::new(frame), arch_label::PAGE_MAP, &words, &caps);
    probe.call().label != AlignmentError as u64
}

/// Memory at 1 MiB and above, in whole pages, ascending.
pub fn memory(f: &Fixture) -> Result<Vec<Range>, Failure> {
    let mut memory: Vec<Range> = map_entries(f)?
        .into_iter()
        .filter(|entry| entry.kind == 1 && entry.base >= LOW_MEMORY_END)
        .map(|entry| {
            let end = (entry.base + entry.bytes) & !(PAGE - 1);
            range(entry.base.next_multiple_of(PAGE), end)
        })
        .collect();
    memory.sort_unstable_by_key(|range| range.start);
    if memory.is_empty() {
        return Err(Failure::skip("the boot loader gave no memory map"));
    }
    Ok(memory)
}
