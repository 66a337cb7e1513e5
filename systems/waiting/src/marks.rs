//! Marks: functions that do nothing, but that the emulator's plugin sees being executed.

use core::arch::global_asm;

global_asm!(
    ".globl waiting_begin",
    "waiting_begin:",
    "ret",
    ".globl waiting_end",
    "waiting_end:",
    "ret",
);

unsafe extern "C" {
    safe fn waiting_begin();
    safe fn waiting_end();
}

/// A window begins.
pub fn begin() {
    waiting_begin();
}

/// It ends.
pub fn end() {
    waiting_end();
}
