//! The smallest root task.

/// Where it is loaded.
const ADDRESS: u64 = 0x40_0000;
const PAGE: u64 = 0x1000;
const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;

/// The ELF file of a root task with one page of nothing: whoever drives the machine says what its
/// threads do.
pub fn nothing() -> Vec<u8> {
    let header = [
        &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
        &2u16.to_le_bytes(),
        &62u16.to_le_bytes(),
        &1u32.to_le_bytes(),
        &ADDRESS.to_le_bytes(),
        &HEADER.to_le_bytes(),
        &0u64.to_le_bytes(),
        &0u32.to_le_bytes(),
        &(HEADER as u16).to_le_bytes(),
        &(PROGRAM_HEADER as u16).to_le_bytes(),
        &1u16.to_le_bytes(),
        &[0; 6],
    ];
    let load = [1u32, 7].map(u32::to_le_bytes).concat();
    // No bytes from the file, a page of memory.
    let numbers = [HEADER + PROGRAM_HEADER, ADDRESS, ADDRESS, 0, PAGE, PAGE];
    let numbers = numbers.map(u64::to_le_bytes).concat();
    [header.concat(), load, numbers].concat()
}
