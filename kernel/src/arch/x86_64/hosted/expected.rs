//! What tests of the boot expect on x86_64 (06, sections 1 to 4).

use crate::arch::{Context, Register};

/// A machine that is another one.
pub const OTHER_MACHINE: u8 = 183;
/// The last address of users is in the page behind this.
pub const LAST_PAGE: u64 = 0x7fff_ffff_f000;

/// Bytes and pages of the extra boot information: a memory map, the clock, and what is told of time.
pub const EXTRA: u64 = 1220 + 20 + 80;
pub const EXTRA_PAGES: u64 = 1;
/// Levels of I/O page tables.
pub const IO_LEVELS: u64 = u64::MAX;
pub const SCHED_CONTROL_FIRST: bool = true;
/// Pages of the slots of the interrupts.
pub const IRQ_PAGES: u64 = 1;

/// Stack pointer, flags and argument of the root task.
pub fn registers(context: &Context) -> [u64; 3] {
    [Register::Rsp, Register::Rflags, Register::Rdi].map(|register| context.get(register))
}
pub const FLAGS: u64 = 0x202;

/// Where the entry of a page or table leads to, if users may write there.
pub fn follow(entry: u64) -> Option<u64> {
    (entry & 7 == 7).then_some(entry & 0x000f_ffff_ffff_f000)
}

/// Whether user code may be executed in the page of this entry.
pub fn is_executable(entry: u64) -> bool {
    entry >> 63 == 0
}

/// What of the extra boot information must be right, on a machine of 1,000 ticks in a microsecond.
pub fn check_extra(extra: &[u8]) {
    assert_eq!(extra[..8], 2u64.to_le_bytes());
    assert_eq!(extra[1236..1240], 1000u32.to_le_bytes());
}
pub const DATA_IS_EXECUTABLE: bool = true;
