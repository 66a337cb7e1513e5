//! 06, sections 4 and 6: the chunks of extra boot information.

use sandglass::abi::boot::extra as id;
use sandglass::boot::ExtraChunk;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("06/4/chunks-come-in-order-and-fill-the-length", order),
    check("06/4/chunks-have-their-lengths", lengths),
    check("06/4/rsdp", rsdp),
    check("06/4/memory-map", memory_map),
    check("06/4/tsc-frequency", tsc),
    check("06/6/the-tsc-runs-at-its-frequency", tsc_is_right),
];

pub fn chunk(f: &Fixture, id: u64) -> Option<ExtraChunk<'static>> {
    f.boot.extra().find(|chunk| chunk.id == id)
}

/// A chunk that every boot has.
fn required(f: &Fixture, id: u64) -> Result<&'static [u8], Failure> {
    let chunk = chunk(f, id).ok_or_else(|| Failure::from(format!("no chunk {id}")))?;
    Ok(chunk.payload)
}

fn order(f: &mut Fixture) -> TestResult {
    let ids: Vec<u64> = f.boot.extra().map(|chunk| chunk.id).collect();
    let order = [
        id::X86_VBE,
        id::X86_ACPI_RSDP,
        id::X86_FRAMEBUFFER,
        id::X86_MEMORY_MAP,
        id::X86_TSC_MHZ,
        // Of Sandglass, outside the ABI's numbers.
        id::TIMING,
    ];
    let expected: Vec<u64> = order.into_iter().filter(|id| ids.contains(id)).collect();
    ensure_eq!(ids, expected);
    for id in [id::X86_ACPI_RSDP, id::X86_MEMORY_MAP, id::X86_TSC_MHZ] {
        required(f, id)?;
    }
    let bytes: usize = f.boot.extra().map(|chunk| chunk.payload.len() + 16).sum();
    ensure_eq!(bytes as u64, f.boot.raw().extra_len);
    Ok(())
}

fn lengths(f: &mut Fixture) -> TestResult {
    for chunk in f.boot.extra() {
        let expected = match chunk.id {
            1 => 800,
            2 => 1220,
            3 => 52,
            4 => 38,
            5 => 20,
            id::TIMING => 80,
            other => return Err(Failure::from(format!("a chunk with the id {other}"))),
        };
        ensure_eq!(chunk.payload.len() + 16, expected);
    }
    Ok(())
}

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

fn tsc_is_right(f: &mut Fixture) -> TestResult {
    // A round-robin thread runs until it is stopped, and its context counts µs by the kernel's
    // own idea of the frequency: within a percent the same as ticks by the reported one.
    const US: u64 = 5_000;
    let context = f.context(FULL)?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    f.spawn(params, || spin())?;
    let begin = time::ticks();
    f.sleep(US)?;
    let elapsed = time::ticks() - begin;
    let consumed = f.ticks(context.consumed_us()?);
    ensure!(
        consumed <= elapsed && consumed * 10 >= elapsed * 9,
        "{consumed} ticks were consumed, of {elapsed}"
    );
    Ok(())
}
