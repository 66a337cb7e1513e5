//! Reading what firmware and loader left in physical memory, through the window.

use super::acpi::PhysicalMemory;
use super::layout::{WINDOW_BASE, WINDOW_SIZE};

/// All physical memory that the window shows. What is read is whatever the machine has there: all
/// ones where nothing answers.
pub struct Window;

impl PhysicalMemory for Window {
    fn byte(&self, paddr: u64) -> Option<u8> {
        if paddr >= WINDOW_SIZE {
            return None;
        }
        let address = WINDOW_BASE.wrapping_add(paddr) as *const u8;
        // SAFETY: the window maps it. Volatile, since no Rust object is known to lie there.
        Some(unsafe { address.read_volatile() })
    }
}
