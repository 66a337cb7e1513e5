//! x86_64. Around a step:
//!
//! ```text
//! rdtsc; shl; or; mov     the reading, and the number of the system call
//! syscall                 the step
//! mov; rdtsc              the reading, in whichever thread runs then
//! ```

use core::arch::global_asm;
use core::mem::{offset_of, size_of};

use sandglass::abi::syscall::Syscall;
use sandglass::firmware::Files;
use sandglass::{Process, SetupError};

use crate::script::{Script, Step, Times, READINGS, RUNS};

/// With 1 in this file of the firmware, the kernel is one with traces, and is given a log.
const TRACED: &str = "opt/sandglass/trace";

/// Of QEMU's `-icount`, with which the counter counts instructions.
pub const SHIFT: u32 = 0;
/// Instructions between two readings, the first among them.
pub const BETWEEN: u64 = 5;
/// Instructions from the kernel's return to the second reading.
pub const AFTER: u64 = 1;

/// Whether the kernel is one with traces.
pub fn is_traced(process: &mut Process) -> Result<bool, SetupError> {
    Ok(Files::open(process)?.number(TRACED)? == Some(1))
}

/// Instructions that the spinner has executed from its last reading that is in memory, that
/// reading included, when it is interrupted before the instruction at `ip`; `None` outside of it.
pub fn spinner_progress(ip: u64) -> Option<u64> {
    let labels = [
        (&raw const bench_spinner as u64, 5),
        (&raw const bench_spinner_shift as u64, 6),
        (&raw const bench_spinner_merge as u64, 7),
        (&raw const bench_spinner_store as u64, 8),
        (&raw const bench_spinner_jump as u64, 4),
    ];
    labels
        .into_iter()
        .find_map(|(label, count)| (label == ip).then_some(count))
}

unsafe extern "C" {
    static bench_spinner: u8;
    static bench_spinner_shift: u8;
    static bench_spinner_merge: u8;
    static bench_spinner_store: u8;
    static bench_spinner_jump: u8;
}

global_asm!(
    // Reads the counter into rax; clobbers rdx.
    ".macro bench_read",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    ".endm",
    // The step at rbx as run r14, with the readings around \instruction. Clobbers all registers
    // of the system call's convention, rax, rcx and r11, and rsp if it is a system call.
    ".macro bench_step instruction:vararg",
    "mov rdi, [rbx + {cap}]",
    "mov rsi, [rbx + {info}]",
    "mov r10, [rbx + {registers}]",
    "mov r8, [rbx + {registers} + 8]",
    "mov r9, [rbx + {registers} + 16]",
    "mov r15, [rbx + {registers} + 24]",
    "mov r12, [rbx + {reply}]",
    "mov r13, [rbx + {destination}]",
    "bench_read",
    "mov rdx, [rbx + {number}]",
    "\\instruction",
    "mov r11, rax",
    "bench_read",
    "mov [rbx + r14 * 8 + {before}], r11",
    "mov [rbx + r14 * 8 + {after}], rax",
    ".endm",
    // Script in rdi.
    "bench_script:",
    "mov rbp, rdi",
    "mov rbx, [rbp + {first}]",
    "xor r14d, r14d",
    "2: bench_step syscall",
    "add rbx, {step_bytes}",
    "cmp rbx, [rbp + {end}]",
    "jb 2b",
    "mov rbx, [rbp + {repeated}]",
    "inc r14",
    "cmp r14, {runs}",
    "jb 2b",
    "mov rdi, [rbp + {done}]",
    "mov rdx, {send}",
    "xor esi, esi",
    "syscall",
    "3: mov rdi, [rbp + {park}]",
    "mov rdx, {wait}",
    "syscall",
    "jmp 3b",
    // Step in rdi, run in rsi. Keeps rsp in rbp.
    ".globl bench_perform",
    "bench_perform:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov rbx, rdi",
    "mov r14, rsi",
    "mov rbp, rsp",
    "bench_step syscall",
    "mov rsp, rbp",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    // The difference of two readings with nothing in between.
    ".globl bench_between",
    "bench_between:",
    "bench_read",
    "mov rdx, [rsp]",
    "mov r11, rax",
    "bench_read",
    "sub rax, r11",
    "ret",
    // Step in rdi.
    "bench_faulter:",
    "mov rbx, rdi",
    "xor r14d, r14d",
    "2: bench_read",
    "mov rdx, [rbx + {number}]",
    "ud2",
    "bench_faulter_resume:",
    "mov r11, rax",
    "bench_read",
    "mov [rbx + r14 * 8 + {before}], r11",
    "mov [rbx + r14 * 8 + {after}], rax",
    "inc r14",
    "cmp r14, {readings}",
    "jb 2b",
    "3: jmp 3b",
    // Word in rdi.
    "bench_spinner:",
    "rdtsc",
    "bench_spinner_shift:",
    "shl rdx, 32",
    "bench_spinner_merge:",
    "or rax, rdx",
    "bench_spinner_store:",
    "mov [rdi], rax",
    "bench_spinner_jump:",
    "jmp bench_spinner",
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
