//! Where the storm's exception returns, vectors and jumps lead to: code that finds out whether it executes at the kernel's
//! level, and says so.
//!
//! It speaks by semihosting, which the machine offers to no program of the storm but at that level. So there is nothing
//! that random code could do to pretend it: at user level it faults here.

core::arch::global_asm!(
    ".balign 2048",
    // At user level, the level is not to be read.
    "storm_summit:",
    "mrs x9, currentel",
    // SYS_WRITE0, of a text on the console of the emulator.
    "mov x0, #4",
    "adr x1, 2f",
    "hlt #0xf000",
    // SYS_EXIT, with this status.
    "mov x0, #0x18",
    "adr x1, 3f",
    "hlt #0xf000",
    "b storm_summit",
    ".balign 8",
    "3:",
    ".quad 0x20026, {status}",
    "2:",
    ".asciz \"test isolation ... FAILED: the kernel's level was reached\\n\"",
    ".balign 8",
    status = const STATUS,
);

/// Status that ends the run.
const STATUS: u64 = 5;

extern "C" {
    /// Code, not data: only its address is used.
    static storm_summit: u8;
}

/// Where ways out of user level lead to.
pub fn address() -> u64 {
    &raw const storm_summit as u64
}
