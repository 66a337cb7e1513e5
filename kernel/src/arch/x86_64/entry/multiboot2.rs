//! What a boot loader tells: the boot information of version 2.0 (Multiboot2 specification, section
//! 3.6): a size, and tags one behind the other, each at a multiple of 8 bytes.
//!
//! Every number is a claim of the loader: nothing outside of physical memory is read, and every
//! walk advances by 8 bytes at least and ends at the information's end, which is near.

use crate::arch::abi::boot::{Framebuffer, MemoryMapEntry, MAX_MEMORY_MAP};
use crate::arch::abi::firmware::AVAILABLE;
use crate::arch::x86_64::machine::acpi::{number, PhysicalMemory, RSDP_LENGTH, RSDP_V1_LENGTH};
use crate::boot::{List, Range};

/// What a boot loader leaves in EAX.
pub const MAGIC: u32 = 0x36d7_6289;

/// Most bytes of information that are looked at. Loaders leave a few KiB.
const LONGEST: u64 = 1 << 20;

/// The size of everything, and a word without meaning.
const FIRST_TAG: u64 = 8;
/// Kind and size, which every tag begins with.
const TAG_HEADER: u64 = 8;
const ALIGNMENT: u64 = 8;

/// Kinds of tags.
const END: u64 = 0;
const MODULE: u64 = 3;
const MEMORY_MAP: u64 = 6;
const FRAMEBUFFER: u64 = 8;
const RSDP_V1: u64 = 14;
const RSDP_V2: u64 = 15;

/// First entry of a memory map in its tag, and the least size of an entry.
const MAP_ENTRIES: u64 = 16;
const MAP_ENTRY: u64 = 24;

/// The loader's information. Reads outside of `memory` and of the information yield nothing.
#[derive(Clone, Copy)]
pub struct Information<'m, M> {
    memory: &'m M,
    paddr: u64,
    end: u64,
}

/// A tag that lies in the information.
#[derive(Clone, Copy)]
struct Tag {
    kind: u64,
    paddr: u64,
    size: u64,
}

impl<'m, M: PhysicalMemory> Information<'m, M> {
    /// The information at `paddr`; `None` if there is none of a believable size.
    pub fn at(memory: &'m M, paddr: u64) -> Option<Self> {
        let size = number(memory, paddr, 4)?;
        if !(FIRST_TAG..=LONGEST).contains(&size) {
            return None;
        }
        let end = paddr.checked_add(size)?;
        Some(Information { memory, paddr, end })
    }

    /// The first module: the root task.
    pub fn module(&self) -> Option<Range> {
        let tag = self.find(MODULE)?;
        let start = self.number(tag, 8, 4)?;
        let end = self.number(tag, 12, 4)?;
        (end > start).then_some(Range { start, end })
    }

    /// Physical address of the copy of ACPI's root pointer, the newer of two; 0 if there is none.
    pub fn rsdp(&self) -> u64 {
        let copy = |kind, bytes: u64| {
            let tag = self.find(kind)?;
            (tag.size >= TAG_HEADER + bytes).then_some(tag.paddr.wrapping_add(TAG_HEADER))
        };
        copy(RSDP_V2, RSDP_LENGTH as u64)
            .or_else(|| copy(RSDP_V1, RSDP_V1_LENGTH))
            .unwrap_or(0)
    }

    /// The available memory: the first pieces of it, should there be more than a list has room
    /// for.
    pub fn ram(&self) -> List<MemoryMapEntry, MAX_MEMORY_MAP> {
        let mut ram = List::new();
        let Some(tag) = self.find(MEMORY_MAP) else {
            return ram;
        };
        let Some(step @ MAP_ENTRY..) = self.number(tag, 8, 4) else {
            return ram;
        };
        let mut offset = MAP_ENTRIES;
        while let Some(entry) = self.map_entry(tag, offset) {
            if entry.kind == AVAILABLE {
                ram.push(entry).unwrap_or(());
            }
            offset = offset.wrapping_add(step);
        }
        ram
    }

    fn map_entry(&self, tag: Tag, offset: u64) -> Option<MemoryMapEntry> {
        let start = self.number(tag, offset, 8)?;
        let size = self.number(tag, offset.wrapping_add(8), 8)?;
        let kind = self.number(tag, offset.wrapping_add(16), 4)?;
        let end = start.saturating_add(size);
        Some(MemoryMapEntry {
            range: Range { start, end },
            kind: kind as u32,
        })
    }

    /// What the firmware shows the screen with; `None` without an address (06, section 4).
    pub fn framebuffer(&self) -> Option<Framebuffer> {
        let tag = self.find(FRAMEBUFFER)?;
        let word = |offset| self.number(tag, offset, 4).map(|value| value as u32);
        let byte = |offset| self.number(tag, offset, 1).map(|value| value as u8);
        let framebuffer = Framebuffer {
            paddr: self.number(tag, 8, 8)?,
            pitch: word(16)?,
            width: word(20)?,
            height: word(24)?,
            bits_per_pixel: byte(28)?,
            kind: byte(29)?,
        };
        (framebuffer.paddr != 0).then_some(framebuffer)
    }

    /// The first tag of `kind`.
    #[inline(never)]
    fn find(&self, kind: u64) -> Option<Tag> {
        let mut next = self.paddr.wrapping_add(FIRST_TAG);
        loop {
            let tag = self.tag(next)?;
            if tag.kind == kind {
                return Some(tag);
            }
            if tag.kind == END {
                return None;
            }
            next = tag
                .paddr
                .checked_add(tag.size)?
                .checked_next_multiple_of(ALIGNMENT)?;
        }
    }

    /// The tag at `paddr`, if it lies in the information.
    fn tag(&self, paddr: u64) -> Option<Tag> {
        let room = self.end.checked_sub(paddr)?;
        if room < TAG_HEADER {
            return None;
        }
        let kind = number(self.memory, paddr, 4)?;
        let size = number(self.memory, paddr.checked_add(4)?, 4)?;
        (TAG_HEADER..=room)
            .contains(&size)
            .then_some(Tag { kind, paddr, size })
    }

    /// The little-endian number of `size` bytes at `offset` in `tag`; `None` past its end.
    #[inline(never)]
    fn number(&self, tag: Tag, offset: u64, size: u64) -> Option<u64> {
        if offset.checked_add(size)? > tag.size {
            return None;
        }
        number(self.memory, tag.paddr.checked_add(offset)?, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::x86_64::machine::bytes::Bytes;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const AT: u64 = 0x40;

    /// Information with these tags and an end, at [`AT`]; behind it, bytes that are none of it.
    fn information(tags: &[(u32, &[u8])]) -> Bytes {
        let mut bytes = vec![0u8; AT as usize + 8];
        for (kind, payload) in tags.iter().chain([&(0, &[][..])]) {
            bytes.extend(kind.to_le_bytes());
            bytes.extend((8 + payload.len() as u32).to_le_bytes());
            bytes.extend(*payload);
            bytes.resize(bytes.len().next_multiple_of(8), 0xee);
        }
        let size = bytes.len() as u32 - AT as u32;
        bytes[AT as usize..][..4].copy_from_slice(&size.to_le_bytes());
        bytes.extend([0xff; 64]);
        Bytes(bytes)
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn at(memory: &Bytes) -> Information<'_, Bytes> {
        Information::at(memory, AT).unwrap()
    }

    fn memory_map(step: u32, entries: &[(u64, u64, u32)]) -> Vec<u8> {
        let mut payload = words(&[step, 0]);
        for &(start, size, kind) in entries {
            payload.extend(start.to_le_bytes());
            payload.extend(size.to_le_bytes());
            payload.extend(kind.to_le_bytes());
            payload.resize(payload.len() + step as usize - 20, 0);
        }
        payload
    }

    fn ram(payload: &[u8]) -> Vec<(u64, u64)> {
        let memory = information(&[(6, payload)]);
        let ram = at(&memory).ram();
        let ranges = ram.iter().map(|entry| (entry.range.start, entry.range.end));
        ranges.collect()
    }

    #[test]
    fn the_first_module_is_the_root_task() {
        let memory = information(&[
            (2, b"GRUB\0"),
            (3, &words(&[0x20_0000, 0x20_1234, 0])),
            (3, &words(&[0x30_0000, 0x30_1234, 0])),
        ]);
        let module = at(&memory).module().unwrap();
        assert_eq!((module.start, module.end), (0x20_0000, 0x20_1234));
        for (start, end) in [(5, 5), (6, 5)] {
            let memory = information(&[(3, &words(&[start, end]))]);
            assert_eq!(at(&memory).module(), None);
        }
    }

    #[test]
    fn the_newer_root_pointer_is_preferred_and_a_cut_one_is_none() {
        let (old, new) = ([1; 20], [2; 36]);
        let memory = information(&[(14, &old), (15, &new)]);
        let rsdp = at(&memory).rsdp() as usize;
        assert_eq!(memory.0[rsdp..rsdp + 36], new);
        let memory = information(&[(14, &old), (15, &new[..35])]);
        let rsdp = at(&memory).rsdp() as usize;
        assert_eq!(memory.0[rsdp..rsdp + 20], old);
        let memory = information(&[(14, &old[..19])]);
        assert_eq!(at(&memory).rsdp(), 0);
    }

    #[test]
    fn ram_is_what_is_available() {
        let entries = [
            (0, 0x9_f000, 1),
            (0x20_0000, 0x1000, 2),
            (0x30_0000, u64::MAX, 1),
        ];
        let found = [(0, 0x9_f000), (0x30_0000, u64::MAX)];
        assert_eq!(ram(&memory_map(24, &entries)), found);
        // Later versions may have longer entries.
        assert_eq!(ram(&memory_map(32, &entries)), found);
    }

    #[test]
    fn a_memory_map_that_cannot_be_walked_is_empty() {
        let mut payload = memory_map(24, &[(0x20_0000, 0x1000, 1); 2]);
        for step in [0u32, 8, 23] {
            payload[..4].copy_from_slice(&step.to_le_bytes());
            assert_eq!(ram(&payload), []);
        }
        // A step that leaves the tag ends the walk.
        payload[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(ram(&payload).len(), 1);
        assert_eq!(ram(&words(&[24])), []);
    }

    #[test]
    fn a_memory_map_of_many_pieces_is_known_in_part() {
        let entries = [(0x20_0000, 0x1000, 1); MAX_MEMORY_MAP + 1];
        assert_eq!(ram(&memory_map(24, &entries)).len(), MAX_MEMORY_MAP);
    }

    #[test]
    fn the_framebuffer_is_one_with_an_address() {
        let payload = |paddr: u32| {
            let mut payload = words(&[paddr, 1, 4096, 1024, 768]);
            payload.extend([32, 1, 0, 0]);
            payload
        };
        let memory = information(&[(8, &payload(0x8000_0000))]);
        let expected = Framebuffer {
            paddr: 0x1_8000_0000,
            pitch: 4096,
            width: 1024,
            height: 768,
            bits_per_pixel: 32,
            kind: 1,
        };
        assert_eq!(at(&memory).framebuffer(), Some(expected));
        let memory = information(&[(8, &payload(0)[..21])]);
        assert_eq!(at(&memory).framebuffer(), None);
        let mut none = payload(0);
        none[4] = 0;
        let memory = information(&[(8, &none)]);
        assert_eq!(at(&memory).framebuffer(), None);
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for size in [0, 7, LONGEST as u32 + 1, u32::MAX] {
            let mut memory = information(&[(3, &words(&[1, 2]))]);
            memory.0[AT as usize..][..4].copy_from_slice(&size.to_le_bytes());
            assert!(Information::at(&memory, AT).is_none(), "{size}");
        }
        let memory = information(&[]);
        for paddr in [memory.0.len() as u64 - 3, u64::MAX - 1] {
            assert!(Information::at(&memory, paddr).is_none());
        }
    }

    /// What lies behind the information is none of it, nor what lies behind the end's tag.
    #[test]
    fn tags_lie_in_the_information_and_before_its_end() {
        let mut memory = information(&[(2, &[0; 4]), (3, &words(&[1, 2]))]);
        assert!(at(&memory).module().is_some());
        for size in [0u32, 7, 0x1000, u32::MAX] {
            memory.0[AT as usize + 12..][..4].copy_from_slice(&size.to_le_bytes());
            assert!(at(&memory).module().is_none(), "{size}");
        }
        let mut memory = information(&[(3, &words(&[1, 2]))]);
        for size in [8u32, 15, 23] {
            memory.0[AT as usize..][..4].copy_from_slice(&size.to_le_bytes());
            assert!(at(&memory).module().is_none(), "{size}");
        }
        let memory = information(&[(0, &[]), (3, &words(&[1, 2]))]);
        assert!(at(&memory).module().is_none());
    }

    proptest! {
        /// Whatever the bytes, reading ends, and what is found is as promised.
        #[test]
        fn any_bytes_are_read(
            mut bytes in proptest::collection::vec(prop_oneof![0u8..32, any::<u8>()], 8..512),
            paddr in 0u64..64,
        ) {
            if let Some(size) = bytes.get_mut(paddr as usize..paddr as usize + 4) {
                // Most often a size that lets the walk begin.
                size[2..].fill(0);
            }
            let memory = Bytes(bytes);
            if let Some(found) = Information::at(&memory, paddr) {
                if let Some(module) = found.module() {
                    prop_assert!(module.start < module.end);
                }
                for entry in found.ram().iter() {
                    prop_assert!(entry.kind == AVAILABLE);
                }
                prop_assert!(found.framebuffer().is_none_or(|found| found.paddr != 0));
                let rsdp = found.rsdp();
                prop_assert!(rsdp == 0 || (paddr..paddr + LONGEST).contains(&rsdp));
            }
        }
    }
}
