//! Reading what firmware and loader left in physical memory, through the window.

use super::acpi::PhysicalMemory;
use super::layout::{WINDOW_BASE, WINDOW_SIZE};

/// The byte at the physical address `paddr`; `None` outside of the window.
///
/// The value is whatever the machine has there: all ones where nothing answers.
pub fn byte(paddr: u64) -> Option<u8> {
    if paddr >= WINDOW_SIZE {
        return None;
    }
    let address = WINDOW_BASE.wrapping_add(paddr) as *const u8;
    // SAFETY: the window maps it. Volatile, since no Rust object is known to lie there.
    Some(unsafe { address.read_volatile() })
}

/// The little-endian number of `size` bytes, up to 8, at the physical address `paddr`.
pub fn number(paddr: u64, size: u64) -> Option<u64> {
    let mut value = 0;
    for i in (0..size).rev() {
        value = value << 8 | u64::from(byte(paddr.checked_add(i)?)?);
    }
    Some(value)
}

/// All physical memory that the window shows.
pub struct Window;

impl PhysicalMemory for Window {
    fn byte(&self, paddr: u64) -> Option<u8> {
        byte(paddr)
    }
}
