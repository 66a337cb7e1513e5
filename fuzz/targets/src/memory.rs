//! User memory of a hosted kernel, as the processor would see it.

use sandglass_kernel::arch::hosted::Machine;

const PAGE: u64 = 4096;
const PRESENT: u64 = 1;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Positions of the table indices in a virtual address, from the root on.
const SHIFTS: [u32; 4] = [39, 30, 21, 12];

/// The page of user memory at `vaddr` in the address space in use; `None` if nothing is mapped
/// there by 4 KiB pages.
pub fn page(machine: &Machine, vaddr: u64) -> Option<Vec<u8>> {
    let mut table = machine.address_space()?.get();
    for shift in SHIFTS {
        let entry = table + (vaddr >> shift & 511) * 8;
        let bytes = machine.read_memory(entry, 8)?;
        let entry = u64::from_le_bytes(bytes.try_into().ok()?);
        if entry & PRESENT == 0 {
            return None;
        }
        table = entry & ADDRESS;
    }
    machine.read_memory(table, PAGE as usize)
}
