//! x86_64.

use core::arch::asm;

use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;

pub mod devices;
pub mod privilege;
pub mod stray;

core::arch::global_asm!(
    // The endpoint is in rdi: an empty message, blocking.
    "kernel_tests_send_once:",
    "mov rdx, {send}",
    "xor esi, esi",
    "syscall",
    "2: jmp 2b",
    // The same: 120 words and three capabilities, over and over.
    "kernel_tests_send_long:",
    "mov rdx, {send}",
    "mov rsi, {info}",
    "syscall",
    "jmp kernel_tests_send_long",
    "kernel_tests_receive:",
    "mov r13, rdi",
    "2: mov rdi, r13",
    "mov rdx, {wait}",
    "syscall",
    "jmp 2b",
    send = const Syscall::Send.raw() as i64,
    wait = const Syscall::Wait.raw() as i64,
    info = const MessageInfo::new(0, 0, 3, 120).raw() as i64,
);

/// Reads the first word of the thread block.
pub fn thread_block() -> u64 {
    let block;
    // SAFETY: every thread of the runtime has a block there.
    unsafe { asm!("mov {}, fs:[0]", out(reg) block, options(nostack, readonly)) };
    block
}

/// Fills registers with `seed` plus 1 to 10, spins until the clock is at `end`, and returns what is in them then.
pub fn spin_with_registers(seed: u64, end: u64) -> [u64; 10] {
    let mut out = [0u64; 10];
    // SAFETY: only registers that are declared.
    unsafe {
        asm!(
            "2: rdtsc",
            "shl rdx, 32",
            "or rax, rdx",
            "cmp rax, rdi",
            "jb 2b",
            in("rdi") end,
            out("rax") _,
            out("rdx") _,
            inout("rcx") seed + 1 => out[0],
            inout("rsi") seed + 2 => out[1],
            inout("r8") seed + 3 => out[2],
            inout("r9") seed + 4 => out[3],
            inout("r10") seed + 5 => out[4],
            inout("r11") seed + 6 => out[5],
            inout("r12") seed + 7 => out[6],
            inout("r13") seed + 8 => out[7],
            inout("r14") seed + 9 => out[8],
            inout("r15") seed + 10 => out[9],
        );
    }
    out
}
