//! Putting kernel, device tree and root task where the contract has them.

use elf::abi::PT_LOAD;
use elf::endian::LittleEndian;
use elf::segment::ProgramHeader;
use elf::ElfBytes;

const PAGE: u64 = 4096;

/// Where the kernel is, and where it begins to run.
pub struct Kernel {
    pub start: u64,
    pub end: u64,
    /// Where its start is mapped.
    pub virtual_start: u64,
    pub entry: u64,
}

/// Where the root task is, what a virtual address is less than a physical one, and where it begins to run.
pub struct RootTask {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub entry: u64,
}

/// The next page boundary.
pub fn page_behind(address: u64) -> u64 {
    address.next_multiple_of(PAGE)
}

/// Copies `bytes` to the physical address `to`.
pub fn copy(bytes: &[u8], to: u64) {
    // SAFETY: memory of the machine that is in nobody's use: the archive's files are small enough that what is placed ends
    // before the loader.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) }
}

/// Makes the bytes from `from` to `to` zero.
fn clear(from: u64, to: u64) {
    // SAFETY: as in `copy`.
    unsafe { core::ptr::write_bytes(from as *mut u8, 0, (to - from) as usize) }
}

/// The segments that are loaded.
fn segments<'f>(
    file: &'f ElfBytes<'f, LittleEndian>,
) -> impl Iterator<Item = (ProgramHeader, &'f [u8])> {
    let headers = file.segments().expect("program headers");
    headers
        .iter()
        .filter(|header| header.p_type == PT_LOAD)
        .map(|header| (header, file.segment_data(&header).expect("a segment")))
}

fn parse(file: &[u8]) -> ElfBytes<'_, LittleEndian> {
    ElfBytes::minimal_parse(file).expect("an ELF file")
}

/// Places the kernel at its physical addresses.
pub fn kernel(file: &[u8]) -> Kernel {
    let file = parse(file);
    let first = segments(&file).min_by_key(|(header, _)| header.p_paddr);
    let (first, _) = first.expect("a kernel has segments");
    let mut end = 0;
    for (header, bytes) in segments(&file) {
        let behind = header.p_paddr + header.p_memsz;
        copy(bytes, header.p_paddr);
        clear(header.p_paddr + bytes.len() as u64, behind);
        end = end.max(behind);
    }
    Kernel {
        start: first.p_paddr,
        end,
        virtual_start: first.p_vaddr,
        entry: file.ehdr.e_entry,
    }
}

/// Places the root task at the physical address `at`, and its program headers behind it.
pub fn root_task(bytes: &[u8], at: u64) -> RootTask {
    let file = parse(bytes);
    let starts = segments(&file).map(|(header, _)| header.p_vaddr);
    let ends = segments(&file).map(|(header, _)| header.p_vaddr + header.p_memsz);
    let start = starts.min().expect("a root task has segments") & !(PAGE - 1);
    let length = page_behind(ends.max().unwrap_or(start) - start);
    clear(at, at + length + PAGE);
    for (header, bytes) in segments(&file) {
        copy(bytes, at + (header.p_vaddr - start));
    }
    let (count, size) = (file.ehdr.e_phnum, file.ehdr.e_phentsize);
    let headers = usize::from(count) * usize::from(size);
    let from = file.ehdr.e_phoff as usize;
    let behind = at + length;
    copy(&u32::from(count).to_le_bytes(), behind);
    copy(&u32::from(size).to_le_bytes(), behind + 4);
    copy(&bytes[from..from + headers], behind + 8);
    RootTask {
        start: at,
        end: behind,
        offset: at.wrapping_sub(start),
        entry: file.ehdr.e_entry,
    }
}
