//! What the loader tells: the start-info structure of PVH's direct boot (the x86/HVM direct boot
//! ABI of Xen), and the RAM that its memory map leaves free.
//!
//! Every number is a claim of the loader: nothing outside of physical memory is read, and what
//! comes out of [`free_memory`] is disjoint, in whole pages, and below the end of what the kernel
//! reaches, whatever the map says.

use crate::arch::abi::boot::{MemoryMapEntry, MAX_MEMORY_MAP};
use crate::arch::abi::firmware::AVAILABLE;
use crate::arch::x86_64::machine::acpi::{number, PhysicalMemory};
use crate::boot::{List, Range, Refusal, MAX_RAM};

const MAGIC: u64 = 0x336e_c578;
const MEMORY_MAP_ENTRY: u64 = 24;
/// Bytes of a page, in which RAM is counted.
const PAGE: u64 = 4096;

/// The loader's start-info structure. Reads outside of `memory` yield nothing.
#[derive(Clone, Copy)]
pub struct StartInfo<'m, M> {
    memory: &'m M,
    paddr: u64,
}

impl<'m, M: PhysicalMemory> StartInfo<'m, M> {
    /// The structure at `paddr`; `None` if it is not one, or of a version without memory map.
    pub fn at(memory: &'m M, paddr: u64) -> Option<Self> {
        let info = StartInfo { memory, paddr };
        (info.number(0, 4)? == MAGIC && info.number(4, 4)? >= 1).then_some(info)
    }

    /// The first module: the root task.
    pub fn module(&self) -> Option<Range> {
        if self.number(12, 4)? == 0 {
            return None;
        }
        let list = self.number(16, 8)?;
        let start = number(self.memory, list, 8)?;
        let end = start.checked_add(number(self.memory, list.checked_add(8)?, 8)?)?;
        (end > start).then_some(Range { start, end })
    }

    /// Physical address of the ACPI root pointer; 0 if the loader does not know.
    pub fn rsdp(&self) -> u64 {
        self.number(32, 8).unwrap_or(0)
    }

    /// The memory map, as far as the boot information has room for it.
    pub fn memory_map(&self) -> List<MemoryMapEntry, MAX_MEMORY_MAP> {
        let mut map = List::new();
        let (Some(list), Some(count)) = (self.number(40, 8), self.number(48, 4)) else {
            return map;
        };
        for i in 0..count.min(MAX_MEMORY_MAP as u64) {
            let Some(entry) = self.map_entry(list.wrapping_add(i * MEMORY_MAP_ENTRY)) else {
                return map;
            };
            map.push(entry).unwrap_or(());
        }
        map
    }

    fn map_entry(&self, paddr: u64) -> Option<MemoryMapEntry> {
        let start = number(self.memory, paddr, 8)?;
        let size = number(self.memory, paddr.wrapping_add(8), 8)?;
        let kind = number(self.memory, paddr.wrapping_add(16), 4)?;
        let end = start.saturating_add(size);
        Some(MemoryMapEntry {
            range: Range { start, end },
            kind: kind as u32,
        })
    }

    fn number(&self, offset: u64, size: u64) -> Option<u64> {
        number(self.memory, self.paddr.checked_add(offset)?, size)
    }
}

/// The RAM of a memory map: what is free, and where the root task's file is.
pub struct FreeMemory {
    /// Ascending, disjoint, without the kernel and the file.
    pub free: List<Range, MAX_RAM>,
    /// RAM with the file: whole pages around it, or just the file if it lies below the kernel,
    /// where a boot loader may put it but where no RAM is free.
    pub module: Range,
}

/// The RAM of `memory_map` above the `kernel`'s image and below `top`, divided at the root task's
/// `file`.
///
/// # Errors
/// [`Refusal::Machine`] if the file is not in one piece of RAM beside the kernel and below `top`.
pub fn free_memory(
    memory_map: &List<MemoryMapEntry, MAX_MEMORY_MAP>,
    kernel: Range,
    file: Range,
    top: u64,
) -> Result<FreeMemory, Refusal> {
    let module = if file.end <= kernel.start {
        file
    } else {
        around(file)
    };
    if module.overlaps(kernel) {
        return Err(Refusal::Machine(
            "the loader put the root task over the kernel",
        ));
    }
    let mut free = List::new();
    let mut found = memory_map.iter().any(|entry| {
        let ram = entry.range;
        let is_below = module.end <= kernel.start.min(top);
        entry.kind == AVAILABLE && is_below && ram.start <= module.start && module.end <= ram.end
    });
    let mut from = kernel.end;
    while let Some(ram) = lowest_ram(memory_map, from, top) {
        from = ram.end;
        let below = Range {
            end: ram.end.min(module.start),
            ..ram
        };
        let above = Range {
            start: ram.start.max(module.end),
            ..ram
        };
        for piece in [below, above] {
            if !piece.is_empty() {
                free.push(piece).unwrap_or(());
            }
        }
        // Only a file that lies in one piece of RAM is one.
        found |= ram.start <= module.start && module.end <= ram.end;
    }
    if !found {
        return Err(Refusal::Machine(
            "the loader put the root task outside of RAM",
        ));
    }
    Ok(FreeMemory { free, module })
}

/// End of the low memory in which other cores may start: behind it, firmware keeps its own, whatever
/// the memory map says.
const LOW_END: u64 = 0x9_0000;

/// Physical address of a page of RAM in low memory, not the first, that has nothing of the root task's
/// `file` in it: the highest such page.
pub fn low_page(memory_map: &List<MemoryMapEntry, MAX_MEMORY_MAP>, file: Range) -> Option<u64> {
    let is_ram = |page: Range| {
        memory_map.iter().any(|entry| {
            let ram = entry.range;
            entry.kind == AVAILABLE && ram.start <= page.start && page.end <= ram.end
        })
    };
    (1..LOW_END / PAGE)
        .rev()
        .map(|number| Range {
            start: number * PAGE,
            end: (number + 1) * PAGE,
        })
        .find(|&page| is_ram(page) && !page.overlaps(file))
        .map(|page| page.start)
}

/// The whole pages around `range`.
fn around(range: Range) -> Range {
    Range {
        start: range.start & !(PAGE - 1),
        end: range.end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX),
    }
}

/// The lowest RAM at or above `from`, in whole pages below `top`.
fn lowest_ram(
    memory_map: &List<MemoryMapEntry, MAX_MEMORY_MAP>,
    from: u64,
    top: u64,
) -> Option<Range> {
    memory_map
        .iter()
        .filter(|entry| entry.kind == AVAILABLE)
        .filter_map(|entry| {
            let start = entry.range.start.checked_next_multiple_of(PAGE)?.max(from);
            let end = entry.range.end.min(top) & !(PAGE - 1);
            let range = Range { start, end };
            (!range.is_empty()).then_some(range)
        })
        .min_by_key(|range| range.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const KERNEL: Range = Range {
        start: 0x10_0000,
        end: 0x20_0000,
    };
    const FILE: Range = Range {
        start: 0x30_0800,
        end: 0x30_1001,
    };
    const TOP: u64 = 1 << 30;

    fn map(ranges: &[(u64, u64, u32)]) -> List<MemoryMapEntry, MAX_MEMORY_MAP> {
        let mut map = List::new();
        for &(start, end, kind) in ranges {
            let range = Range { start, end };
            map.push(MemoryMapEntry { range, kind }).unwrap();
        }
        map
    }

    fn free(ranges: &[(u64, u64, u32)]) -> Vec<(u64, u64)> {
        let found = free_memory(&map(ranges), KERNEL, FILE, TOP).unwrap_or_else(|_| panic!());
        assert_eq!(
            (found.module.start, found.module.end),
            (0x30_0000, 0x30_2000)
        );
        found.free.iter().map(|r| (r.start, r.end)).collect()
    }

    #[test]
    fn ram_is_what_is_left_besides_kernel_and_file() {
        let all = [
            (0, 0x9_fc00, 1),
            (0x9_fc00, 0x10_0000, 2),
            (0x10_0000, 0x50_0000, 1),
        ];
        assert_eq!(free(&all), [(0x20_0000, 0x30_0000), (0x30_2000, 0x50_0000)]);
    }

    /// Ranges may be in any order, overlap, be cut within pages, and exceed the window.
    #[test]
    fn every_byte_is_found_once_whatever_the_map_says() {
        let all = [
            (0x40_0000, u64::MAX, 1),
            (0x2f_f001, 0x40_1fff, 1),
            (0x28_0000, 0x28_0000, 1),
            (u64::MAX, u64::MAX, 1),
        ];
        assert_eq!(free(&all), [(0x30_2000, 0x40_1000), (0x40_1000, TOP)]);
    }

    #[test]
    fn other_cores_start_in_the_highest_page_of_low_memory_that_is_free() {
        let find = |ranges: &[_], start, end| low_page(&map(ranges), Range { start, end });
        let usual = (0, 0x9_fc00, 1);
        let high = (0x10_0000, 0x50_0000, 1);
        assert_eq!(find(&[usual, high], 0x30_0000, 0x30_1000), Some(0x8_f000));
        assert_eq!(find(&[usual], 0x8_ff00, 0x9_1000), Some(0x8_e000));
        assert_eq!(find(&[(0, 0x2_0fff, 1)], 0, 0), Some(0x1_f000));
        // The first page is the firmware's, of old.
        assert_eq!(find(&[(0, 0x1000, 1), high], 0, 0), None);
        assert_eq!(find(&[(0, 0x9_fc00, 2), high], 0, 0), None);
        assert_eq!(find(&[usual], 0x1000, 0x9_0000), None);
    }

    /// A boot loader may put it into the first MiB, of which nothing is handed out as RAM.
    #[test]
    fn a_file_below_the_kernel_lies_in_ram_but_takes_nothing_from_what_is_free() {
        let all = map(&[(0, 0x9_fc00, 1), (0x10_0000, 0x50_0000, 1)]);
        let find = |start, end| free_memory(&all, KERNEL, Range { start, end }, TOP);
        for (start, end) in [(0x9123, 0x9124), (0x9_0000, 0x9_fc00), (0, 1)] {
            let found = find(start, end).unwrap_or_else(|_| panic!());
            assert_eq!((found.module.start, found.module.end), (start, end));
            let free: Vec<_> = found.free.iter().map(|r| (r.start, r.end)).collect();
            assert_eq!(free, [(0x20_0000, 0x50_0000)]);
        }
        assert!(find(0x9_0000, 0x9_fc01).is_err());
        assert!(find(0xa_0000, 0x10_0000).is_err());
        let reserved = map(&[(0, 0x9_fc00, 2), (0x10_0000, 0x50_0000, 1)]);
        let file = Range {
            start: 0x1000,
            end: 0x2000,
        };
        assert!(free_memory(&reserved, KERNEL, file, TOP).is_err());
    }

    #[test]
    fn a_file_over_the_kernel_or_outside_of_ram_is_refused() {
        let ram = map(&[(0, 0x30_1000, 1)]);
        assert!(free_memory(&ram, KERNEL, FILE, TOP).is_err());
        assert!(free_memory(
            &ram,
            KERNEL,
            Range {
                start: 0x1f_ffff,
                end: 0x20_0001
            },
            TOP
        )
        .is_err());
    }
}
