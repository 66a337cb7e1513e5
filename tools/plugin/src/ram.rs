//! The guest's memory, which is mapped in the emulator's own process.
//!
//! The machine has it from `-object memory-backend-memfd`, by whose name it is found among the mappings.

use std::fs;

use crate::watch::Memory;

/// What the mapping is called.
const NAME: &str = "memfd:memory-backend-memfd";

/// Memory from a physical address on, in one mapping that stays.
pub struct Ram {
    base: *const u8,
    first: u64,
    size: u64,
}

impl Ram {
    /// Finds it; the machine has it from the physical address `first` on.
    ///
    /// # Errors
    /// The machine's memory is not of that kind.
    pub fn find(first: u64) -> Result<Self, String> {
        let maps = fs::read_to_string("/proc/self/maps")
            .map_err(|error| format!("cannot read the mappings: {error}"))?;
        let (start, end) = extent(&maps).ok_or_else(|| {
            format!("no mapping is called {NAME}: boot with `-object memory-backend-memfd`")
        })?;
        Ok(Self {
            base: std::ptr::with_exposed_provenance(start as usize),
            first,
            size: end - start,
        })
    }
}

impl Memory for Ram {
    fn end(&self) -> u64 {
        self.first + self.size
    }

    fn word(&self, address: u64) -> u64 {
        let at = address.wrapping_sub(self.first);
        match at.checked_add(8) {
            // SAFETY: within the mapping, which QEMU keeps until its end, after the last callback. Whatever
            // lies there is a number; the guest, which also writes it, does not run meanwhile.
            Some(end) if end <= self.size => unsafe {
                self.base.add(at as usize).cast::<u64>().read_unaligned()
            },
            _ => 0,
        }
    }
}

/// From where to where the memory is mapped: from its beginning, over all the lines that continue it.
fn extent(maps: &str) -> Option<(u64, u64)> {
    let mut found: Option<(u64, u64)> = None;
    for line in maps.lines().filter(|line| line.contains(NAME)) {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        found = match found {
            None if offset == 0 => Some((start, end)),
            Some((first, last)) if last == start && offset == start - first => Some((first, end)),
            other => other,
        };
    }
    found
}
