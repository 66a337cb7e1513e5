//! What tests of the boot expect on aarch64 (06, sections 1 to 4).

use sandglass_abi::boot::extra::{DEVICE_TREE, TIMING};

use super::{tree, TREE_BYTES};
use crate::arch::{Context, Register};

/// A machine that is another one.
pub const OTHER_MACHINE: u8 = 62;
/// The last address of users is in the page behind this.
pub const LAST_PAGE: u64 = 0x8000_0000_0000;

/// Bytes and pages of the extra boot information: the device tree, and what is told of time.
pub const EXTRA: u64 = 16 + TREE_BYTES as u64 + 80;
pub const EXTRA_PAGES: u64 = 2;
/// Levels of I/O page tables.
pub const IO_LEVELS: u64 = 0;
pub const SCHED_CONTROL_FIRST: bool = false;
/// Pages of the slots of the interrupts: with several cores there are more private ones.
pub const IRQ_PAGES: u64 = if cfg!(feature = "smp") { 4 } else { 2 };

/// Stack pointer, flags and argument of the root task.
pub fn registers(context: &Context) -> [u64; 3] {
    [Register::Sp, Register::Spsr, Register::X0].map(|register| context.get(register))
}
pub const FLAGS: u64 = if cfg!(feature = "debug") { 0x40 } else { 0x140 };

/// Where the entry of a page or table leads to, if users may write there.
pub fn follow(entry: u64) -> Option<u64> {
    let is_table = entry >> 55 & 1 == 1;
    let is_right = entry & 0b11 == 0b11 && (is_table || entry >> 6 & 0b11 == 0b01);
    is_right.then_some(entry & 0x0000_ffff_ffff_f000)
}

/// Whether user code may be executed in the page of this entry.
pub fn is_executable(entry: u64) -> bool {
    entry >> 54 & 1 == 0
}

/// What of the extra boot information must be right, on a machine of 1,000 ticks in a millisecond.
pub fn check_extra(extra: &[u8]) {
    let word = |at: usize| u64::from_le_bytes(extra[at..at + 8].try_into().unwrap());
    assert_eq!((word(0), word(8)), (DEVICE_TREE, 16 + TREE_BYTES as u64));
    let behind = 16 + TREE_BYTES;
    assert_eq!(extra[16..behind], tree());
    assert_eq!((word(behind), word(behind + 8)), (TIMING, 80));
    assert_eq!(word(behind + 16), 1_000_000, "ticks in a second");
    assert!(extra[EXTRA as usize..].iter().all(|&byte| byte == 0));
}
pub const DATA_IS_EXECUTABLE: bool = false;
