//! Physical memory for the tests of what firmware and loaders tell.

use std::vec::Vec;

use super::acpi::PhysicalMemory;

/// Memory from physical address 0 on.
pub struct Bytes(pub Vec<u8>);

impl PhysicalMemory for Bytes {
    fn byte(&self, paddr: u64) -> Option<u8> {
        self.0.get(usize::try_from(paddr).ok()?).copied()
    }
}
