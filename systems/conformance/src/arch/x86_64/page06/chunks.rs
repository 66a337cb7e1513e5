//! 06, section 4: the chunks of extra boot information.

use sandglass::abi::boot::extra as id;

use crate::page06::extra::{clock_is_right, required};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("06/4/rsdp", rsdp),
    check("06/4/memory-map", memory_map),
    check("06/4/tsc-frequency", tsc),
    check("06/6/the-tsc-runs-at-its-frequency", clock_is_right),
];

fn rsdp(f: &mut Fixture) -> TestResult {
    let rsdp = required(f, id::X86_ACPI_RSDP)?;
    ensure_eq!(&rsdp[..8], b"RSD PTR ");
    let sum = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    ensure_eq!(sum(&rsdp[..20]), 0);
    // Version 2 has a checksum over all of it.
    if rsdp[15] >= 2 {
        ensure_eq!(sum(rsdp), 0);
    }
    Ok(())
}

/// An entry of the memory map.
#[derive(Clone, Copy, Debug)]
pub struct MapEntry {
    pub base: u64,
    pub bytes: u64,
    pub kind: u32,
}

/// The entries of the memory map; none if the boot loader gave none.
pub fn map_entries(f: &Fixture) -> Result<Vec<MapEntry>, Failure> {
    let map = required(f, id::X86_MEMORY_MAP)?;
    let u32_at = |at: usize| u32::from_le_bytes([map[at], map[at + 1], map[at + 2], map[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    let used = u32_at(0) as usize;
    ensure!(
        used.is_multiple_of(24) && used <= 50 * 24,
        "{used} bytes of entries"
    );
    let mut entries = Vec::new();
    for at in (4..4 + used).step_by(24) {
        // As Multiboot has it: the size of what follows it.
        ensure_eq!(u32_at(at), 20);
        entries.push(MapEntry {
            base: u64_at(at + 4),
            bytes: u64_at(at + 12),
            kind: u32_at(at + 20),
        });
    }
    Ok(entries)
}

fn memory_map(f: &mut Fixture) -> TestResult {
    let entries = map_entries(f)?;
    if entries.is_empty() {
        return Err(Failure::skip("the boot loader gave no memory map"));
    }
    // The user image lies in usable memory.
    let frame = Frame::at(f.boot.user_image_frames().start).physical_address()?;
    let holds = |e: &&MapEntry| e.kind == 1 && e.base <= frame && frame < e.base + e.bytes;
    ensure_eq!(entries.iter().filter(holds).count(), 1);
    Ok(())
}

fn tsc(f: &mut Fixture) -> TestResult {
    let mhz = required(f, id::X86_TSC_MHZ)?;
    ensure_eq!(mhz.len(), 4);
    ensure!(mhz.iter().any(|&byte| byte != 0));
    Ok(())
}
