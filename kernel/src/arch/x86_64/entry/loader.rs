//! What the loader tells, whichever it was: QEMU by PVH, or a boot loader by Multiboot2.

use super::multiboot2::{self, Information};
use super::start_info::StartInfo;
use crate::arch::abi::boot::{Framebuffer, MemoryMapEntry, MAX_MEMORY_MAP};
use crate::arch::x86_64::machine::acpi::PhysicalMemory;
use crate::boot::{List, Range};

/// The loader's structure.
#[derive(Clone, Copy)]
pub enum Loader<'m, M> {
    Pvh(StartInfo<'m, M>),
    Multiboot2(Information<'m, M>),
}

impl<'m, M: PhysicalMemory> Loader<'m, M> {
    /// The structure at `paddr`; `magic` is what a boot loader leaves in EAX. `None` if it is not
    /// one.
    pub fn at(memory: &'m M, magic: u32, paddr: u64) -> Option<Self> {
        if magic == multiboot2::MAGIC {
            Information::at(memory, paddr).map(Loader::Multiboot2)
        } else {
            StartInfo::at(memory, paddr).map(Loader::Pvh)
        }
    }

    /// The first module: the root task.
    pub fn module(&self) -> Option<Range> {
        match self {
            Loader::Pvh(info) => info.module(),
            Loader::Multiboot2(info) => info.module(),
        }
    }

    /// Physical address of ACPI's root pointer; 0 if the loader does not know.
    pub fn rsdp(&self) -> u64 {
        match self {
            Loader::Pvh(info) => info.rsdp(),
            Loader::Multiboot2(info) => info.rsdp(),
        }
    }

    /// The memory map, of which at least the available memory is there.
    pub fn memory_map(&self) -> List<MemoryMapEntry, MAX_MEMORY_MAP> {
        match self {
            Loader::Pvh(info) => info.memory_map(),
            Loader::Multiboot2(info) => info.ram(),
        }
    }

    /// Whether the root task is told of the memory map (06, section 4).
    pub fn tells_memory_map(&self) -> bool {
        matches!(self, Loader::Pvh(_))
    }

    pub fn framebuffer(&self) -> Option<Framebuffer> {
        match self {
            Loader::Pvh(_) => None,
            Loader::Multiboot2(info) => info.framebuffer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::x86_64::machine::bytes::Bytes;
    use std::vec;

    /// The register decides; the other structure is none.
    #[test]
    fn each_loader_is_known_by_its_magic() {
        let mut multiboot2 = vec![16, 0, 0, 0, 0, 0, 0, 0];
        multiboot2.extend([0, 0, 0, 0, 8, 0, 0, 0]);
        let multiboot2 = Bytes(multiboot2);
        let found = Loader::at(&multiboot2, multiboot2::MAGIC, 0).unwrap();
        assert!(matches!(found, Loader::Multiboot2(_)) && !found.tells_memory_map());
        assert!(Loader::at(&multiboot2, 0, 0).is_none());

        let mut pvh = Bytes(vec![0; 64]);
        pvh.0[..8].copy_from_slice(&[0x78, 0xc5, 0x6e, 0x33, 1, 0, 0, 0]);
        let found = Loader::at(&pvh, 0, 0).unwrap();
        assert!(matches!(found, Loader::Pvh(_)) && found.tells_memory_map());
        assert!(Loader::at(&pvh, multiboot2::MAGIC, 0).is_none());
    }
}
