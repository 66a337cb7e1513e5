//! Marks: functions that do nothing, but that the emulator's plugin sees being executed, and on
//! which core.

use core::arch::global_asm;

/// Servers that can be told apart.
pub const SERVERS: usize = 4;

global_asm!(
    ".globl multicore_begin",
    "multicore_begin:",
    "ret",
    ".globl multicore_end",
    "multicore_end:",
    "ret",
    // Of each server, in their order: it begins to serve a request, and has served it.
    ".globl multicore_busy_0",
    "multicore_busy_0:",
    "ret",
    ".globl multicore_busy_1",
    "multicore_busy_1:",
    "ret",
    ".globl multicore_busy_2",
    "multicore_busy_2:",
    "ret",
    ".globl multicore_busy_3",
    "multicore_busy_3:",
    "ret",
    ".globl multicore_free_0",
    "multicore_free_0:",
    "ret",
    ".globl multicore_free_1",
    "multicore_free_1:",
    "ret",
    ".globl multicore_free_2",
    "multicore_free_2:",
    "ret",
    ".globl multicore_free_3",
    "multicore_free_3:",
    "ret",
);

unsafe extern "C" {
    safe fn multicore_begin();
    safe fn multicore_end();
    safe fn multicore_busy_0();
    safe fn multicore_busy_1();
    safe fn multicore_busy_2();
    safe fn multicore_busy_3();
    safe fn multicore_free_0();
    safe fn multicore_free_1();
    safe fn multicore_free_2();
    safe fn multicore_free_3();
}

/// A window begins.
pub fn begin() {
    multicore_begin();
}

/// It ends.
pub fn end() {
    multicore_end();
}

/// Server `server` begins to serve a request.
pub fn busy(server: usize) {
    match server % SERVERS {
        0 => multicore_busy_0(),
        1 => multicore_busy_1(),
        2 => multicore_busy_2(),
        _ => multicore_busy_3(),
    }
}

/// Server `server` has served it.
pub fn free(server: usize) {
    match server % SERVERS {
        0 => multicore_free_0(),
        1 => multicore_free_1(),
        2 => multicore_free_2(),
        _ => multicore_free_3(),
    }
}
