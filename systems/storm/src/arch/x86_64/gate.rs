//! The system call with every register under control, and the ways into random code.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::actor::{actor, Dice};
use crate::area::CodePages;

/// What the registers are before a system call, and what they are behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    /// rdx.
    pub number: u64,
    /// rdi: capability, then badge.
    pub cap: u64,
    /// rsi.
    pub info: u64,
    /// r10, r8, r9, r15.
    pub message: [u64; 4],
    /// r12.
    pub reply: u64,
    /// r13.
    pub destination: u64,
    pub rax: u64,
    pub rbx: u64,
    pub rbp: u64,
    pub flags: u64,
    /// rsp while the registers belong to the system call.
    pub saved_stack: u64,
}

core::arch::global_asm!(
    // The registers' address is in rdi. It stays in r14, which the kernel preserves.
    "storm_system_call:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov r14, rdi",
    "mov [r14 + 104], rsp",
    "mov rdx, [r14]",
    "mov rsi, [r14 + 16]",
    "mov r10, [r14 + 24]",
    "mov r8, [r14 + 32]",
    "mov r9, [r14 + 40]",
    "mov r15, [r14 + 48]",
    "mov r12, [r14 + 56]",
    "mov r13, [r14 + 64]",
    "mov rax, [r14 + 72]",
    "mov rbx, [r14 + 80]",
    "mov rbp, [r14 + 88]",
    "push qword ptr [r14 + 96]",
    "mov rdi, [r14 + 8]",
    "popfq",
    "syscall",
    "mov rsp, [r14 + 104]",
    "push 0x202",
    "popfq",
    "mov [r14 + 8], rdi",
    "mov [r14 + 16], rsi",
    "mov [r14 + 24], r10",
    "mov [r14 + 32], r8",
    "mov [r14 + 40], r9",
    "mov [r14 + 48], r15",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    // Where a thread starts: its area's address is in rdi.
    "storm_entry:",
    "cld",
    "xor ebp, ebp",
    "call {actor}",
    "ud2",
    actor = sym actor,
);

extern "C" {
    fn storm_system_call(registers: *mut Registers);
    /// Code, not data: only its address is used.
    static storm_entry: u8;
}
const _: () = assert!(core::mem::offset_of!(Registers, saved_stack) == 104);

/// Where a thread of the storm starts, with its area's address in rdi and a stack.
pub fn entry_address() -> u64 {
    &raw const storm_entry as u64
}

impl Registers {
    /// With noise in those that no system call reads.
    pub fn noisy(dice: &mut Dice) -> Self {
        const DIRECTION_NESTED_ALIGNMENT_ID: u64 = 0x400 | 0x4000 | 0x4_0000 | 0x20_0000;
        const ARITHMETIC: u64 = 0x8d5;
        const TRAP: u64 = 0x100;
        let mut registers = Self {
            flags: dice.word() & (DIRECTION_NESTED_ALIGNMENT_ID | ARITHMETIC) | 0x202,
            rax: dice.word(),
            rbx: dice.word(),
            rbp: dice.word(),
            ..Self::default()
        };
        if dice.one_in(256) {
            registers.flags |= TRAP;
        }
        registers
    }
}

/// Makes a system call.
pub fn system_call(registers: &mut Registers, calls: &AtomicU64) {
    calls.store(calls.load(Relaxed) + 1, Relaxed);
    // SAFETY: the function preserves what the C ABI asks for. What the kernel and other threads
    // do to this thread meanwhile is the storm's business.
    unsafe { storm_system_call(registers) }
}

/// Writes `bytes` and a return to the thread's code pages and calls them.
pub fn execute(pages: &CodePages, bytes: &[u8]) {
    const RETURN: u8 = 0xc3;
    pages.write(0, bytes.iter().copied().chain([RETURN]));
    let code = pages.0.as_ptr();
    // SAFETY: not needed: the thread has nothing to lose that is not the storm's. If the code
    // breaks it, it faults and is started anew.
    unsafe {
        let call: extern "C" fn() = core::mem::transmute(code);
        call();
    }
}

/// Lets the `bytes` bytes at `code` be executed as they are now: the processor sees to that by itself.
pub fn synchronise(_code: u64, _bytes: usize) {}
