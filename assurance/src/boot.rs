//! A kernel on a small machine, with a root task that does nothing by itself.

use sandglass_kernel::arch::hosted::{self, Machine};
use sandglass_kernel::Kernel;

/// Ticks in a microsecond: a machine of 1 GHz.
pub const TICKS_PER_US: u64 = 1000;
/// Bytes of memory: what sweeps look at all of.
const MEMORY: usize = 8 << 20;

/// A root task without code: its registers are set by scripts.
fn root_task() -> Vec<u8> {
    const ENTRY: u64 = 0x40_0000;
    const OFFSET: u64 = 0x1000;
    let mut file = vec![0; 0x2000];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    // An ELF file for x86_64 with one segment of a page.
    put(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    put(16, &2u16.to_le_bytes());
    put(18, &62u16.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(24, &ENTRY.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &64u16.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &1u16.to_le_bytes());
    put(64, &1u32.to_le_bytes());
    put(68, &7u32.to_le_bytes());
    put(72, &OFFSET.to_le_bytes());
    put(80, &ENTRY.to_le_bytes());
    put(96, &OFFSET.to_le_bytes());
    put(104, &OFFSET.to_le_bytes());
    file
}

/// A kernel that has just booted: the root task runs.
///
/// # Panics
/// If the kernel refuses the machine or the root task.
pub fn boot() -> Box<Kernel> {
    let machine = Machine::new(MEMORY, TICKS_PER_US);
    match hosted::boot(machine, &root_task()) {
        Ok((kernel, _)) => kernel,
        Err(refusal) => panic!("the kernel does not boot: {refusal:?}"),
    }
}
