//! A kernel's ELF file of 64 bits in the format of 32, which boot loaders and emulators want that know no other.
//!
//! Only what is loaded goes into it, where it lies in physical memory: a kernel starts without paging, and the addresses that
//! it is linked at have no place in the format.

use anyhow::{ensure, Context, Result};
use object::elf::{FileFlags, FileHeader64, EM_386, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader};
use object::write::elf::{FileHeader as Header, ProgramHeader as Segment, Writer};
use object::Endianness;

/// Segments begin where they would in a page, so that a loader may map them.
const PAGE: u64 = 4096;

/// The ELF file `wide` in the other format.
///
/// # Errors
/// It is none, or something of it does not lie in the first 4 GiB.
pub fn of(wide: &[u8]) -> Result<Vec<u8>> {
    let header =
        FileHeader64::<Endianness>::parse(wide).context("the kernel is not an ELF file")?;
    let endian = header.endian()?;
    let entry = header.e_entry(endian);
    let segments = header.program_headers(endian, wide)?.iter();
    let segments: Vec<_> = segments
        .filter(|it| [PT_LOAD, PT_NOTE].contains(&it.p_type(endian)))
        .collect();
    let load = |it: &&_| -> bool { ProgramHeader::p_type(*it, endian) == PT_LOAD };
    let entered = segments.iter().copied().filter(load).find(|it| {
        let offset = entry.wrapping_sub(it.p_vaddr(endian));
        offset < it.p_memsz(endian)
    });
    let entered = entered.context("the kernel's entry is in none of its segments")?;
    let entry = entered.p_paddr(endian) + (entry - entered.p_vaddr(endian));

    let mut narrow = Vec::new();
    let mut writer = Writer::new(endian, false, &mut narrow);
    writer.reserve_file_header();
    writer.reserve_program_headers(u32::try_from(segments.len())?);
    // A note lies in what is loaded, and has its bytes once more.
    let mut offsets = Vec::new();
    for segment in &segments {
        offsets.push(writer.reserve(segment.p_filesz(endian), PAGE));
    }
    writer.write_file_header(&Header {
        os_abi: header.e_ident().os_abi,
        abi_version: header.e_ident().abi_version,
        e_type: header.e_type(endian),
        e_machine: EM_386,
        e_entry: entry,
        e_flags: FileFlags(0),
    })?;
    writer.write_align_program_headers();
    for (segment, &offset) in segments.iter().zip(&offsets) {
        let at = segment.p_paddr(endian);
        let end = at.saturating_add(segment.p_memsz(endian));
        ensure!(
            end <= 1 << 32,
            "a segment of the kernel is at {at:#x}, beyond what the format of 32 bits can say"
        );
        writer.write_program_header(&Segment {
            p_type: segment.p_type(endian),
            p_flags: segment.p_flags(endian),
            p_offset: offset,
            p_vaddr: at,
            p_paddr: at,
            p_filesz: segment.p_filesz(endian),
            p_memsz: segment.p_memsz(endian),
            p_align: segment.p_align(endian),
        });
    }
    for (segment, offset) in segments.iter().zip(offsets) {
        let data = segment.data(endian, wide).ok();
        let data = data.context("a segment of the kernel is outside of its file")?;
        writer.pad_until(offset);
        writer.write(data);
    }
    Ok(narrow)
}
