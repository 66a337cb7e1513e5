//! aarch64. Around a step:
//!
//! ```text
//! mrs     the reading
//! svc     the step
//! mrs     the reading, in whichever thread runs then
//! ```

use core::arch::global_asm;
use core::mem::{offset_of, size_of};

use sandglass::abi::syscall::Syscall;
use sandglass::{Process, SetupError};

use crate::script::{Script, Step, Times, READINGS, RUNS};

/// Of QEMU's `-icount`, with which the counter counts instructions: it has a tick in 16 ns.
pub const SHIFT: u32 = 4;
/// Instructions between two readings, the first among them.
pub const BETWEEN: u64 = 1;
/// Instructions from the kernel's return to the second reading.
pub const AFTER: u64 = 0;

/// Whether the kernel is one with traces: this is not measured here.
pub fn is_traced(_process: &mut Process) -> Result<bool, SetupError> {
    Ok(false)
}

/// Instructions that the spinner has executed from its last reading that is in memory, that
/// reading included, when it is interrupted before the instruction at `ip`; `None` outside of it.
pub fn spinner_progress(ip: u64) -> Option<u64> {
    let labels = [
        (&raw const bench_spinner as u64, 3),
        (&raw const bench_spinner_store as u64, 4),
        (&raw const bench_spinner_jump as u64, 2),
    ];
    labels
        .into_iter()
        .find_map(|(label, count)| (label == ip).then_some(count))
}

unsafe extern "C" {
    static bench_spinner: u8;
    static bench_spinner_store: u8;
    static bench_spinner_jump: u8;
}

global_asm!(
    // The step at x19 as run x20, with the readings around the instruction. Clobbers x0 to x11.
    ".macro bench_step instruction:vararg",
    "ldr x0, [x19, {cap}]",
    "ldr x1, [x19, {info}]",
    "ldp x2, x3, [x19, {registers}]",
    "ldp x4, x5, [x19, {registers} + 16]",
    "ldr x6, [x19, {reply}]",
    "ldr x8, [x19, {destination}]",
    "ldr x7, [x19, {number}]",
    "mrs x9, cntvct_el0",
    "\\instruction",
    "mrs x10, cntvct_el0",
    "bench_note",
    ".endm",
    // Writes the readings of run x20 down, from x9 and x10.
    ".macro bench_note",
    "add x11, x19, x20, lsl #3",
    "str x9, [x11, {before}]",
    "str x10, [x11, {after}]",
    ".endm",
    // Script in x0.
    "bench_script:",
    "mov x21, x0",
    "ldr x19, [x21, {first}]",
    "mov x20, xzr",
    "2: bench_step svc #0",
    "add x19, x19, {step_bytes}",
    "ldr x9, [x21, {end}]",
    "cmp x19, x9",
    "b.lo 2b",
    "ldr x19, [x21, {repeated}]",
    "add x20, x20, #1",
    "cmp x20, {runs}",
    "b.lo 2b",
    "ldr x0, [x21, {done}]",
    "mov x1, xzr",
    "mov x7, {send}",
    "svc #0",
    "3: ldr x0, [x21, {park}]",
    "mov x7, {wait}",
    "svc #0",
    "b 3b",
    // Step in x0, run in x1.
    ".globl bench_perform",
    "bench_perform:",
    "stp x19, x20, [sp, #-16]!",
    "mov x19, x0",
    "mov x20, x1",
    "bench_step svc #0",
    "ldp x19, x20, [sp], #16",
    "ret",
    // The difference of two readings with nothing in between.
    ".globl bench_between",
    "bench_between:",
    "mrs x9, cntvct_el0",
    "mrs x10, cntvct_el0",
    "sub x0, x10, x9",
    "ret",
    // Step in x0.
    "bench_faulter:",
    "mov x19, x0",
    "mov x20, xzr",
    "2: mrs x9, cntvct_el0",
    "udf #0",
    "bench_faulter_resume:",
    "mrs x10, cntvct_el0",
    "bench_note",
    "add x20, x20, #1",
    "cmp x20, {readings}",
    "b.lo 2b",
    "3: b 3b",
    // Word in x0.
    "bench_spinner:",
    "mrs x9, cntvct_el0",
    "bench_spinner_store:",
    "str x9, [x0]",
    "bench_spinner_jump:",
    "b bench_spinner",
    number = const offset_of!(Step, number),
    cap = const offset_of!(Step, cap),
    info = const offset_of!(Step, info),
    registers = const offset_of!(Step, registers),
    reply = const offset_of!(Step, reply),
    destination = const offset_of!(Step, destination),
    before = const offset_of!(Step, times) + offset_of!(Times, before),
    after = const offset_of!(Step, times) + offset_of!(Times, after),
    step_bytes = const size_of::<Step>(),
    first = const offset_of!(Script, first),
    repeated = const offset_of!(Script, repeated),
    end = const offset_of!(Script, end),
    done = const offset_of!(Script, done),
    park = const offset_of!(Script, park),
    runs = const RUNS,
    readings = const READINGS,
    send = const Syscall::Send.raw() as i64,
    wait = const Syscall::Wait.raw() as i64,
);
