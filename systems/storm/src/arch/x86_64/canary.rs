//! Registers of the canary, and the second pointer that each thread has of its own.

use core::arch::asm;

use sandglass::abi::context::x86_64 as register;
use sandglass::abi::syscall::Syscall;
use sandglass::println;

use crate::canary::pattern;

/// Registers around the system call that ends a job.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Registers {
    /// rax, rbx, rbp, rsi, rdi, r8, r9, r10, r12, r13, r15.
    general: [u64; 11],
    flags: u64,
    /// ss, ds, es, fs, gs.
    selectors: [u32; 5],
    /// As FXSAVE stores it.
    fpu: FpuImage,
}

/// The state of the FPU.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq)]
struct FpuImage {
    control: u16,
    status: u16,
    tags: u16,
    opcode: u16,
    instruction: u64,
    data: u64,
    mxcsr: u32,
    mxcsr_mask: u32,
    /// Each in the first ten bytes.
    x87: [[u8; 16]; 8],
    xmm: [[u64; 2]; 16],
    /// Not of the state.
    unused: [u64; 12],
}
const _: () = assert!(size_of::<FpuImage>() == 512);

core::arch::global_asm!(
    // rdi: the registers to load; rsi: where to store what they are behind the system call in rdx.
    "storm_canary_call:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 24",
    "mov [rsp], rsi",
    "stmxcsr [rsp + 8]",
    "fnstcw [rsp + 12]",
    "mov r14, rsp",
    "fxrstor64 [rdi + {fpu}]",
    "push qword ptr [rdi + {flags}]",
    "mov rax, [rdi]",
    "mov rbx, [rdi + 8]",
    "mov rbp, [rdi + 16]",
    "mov rsi, [rdi + 24]",
    "mov r8, [rdi + 40]",
    "mov r9, [rdi + 48]",
    "mov r10, [rdi + 56]",
    "mov r12, [rdi + 64]",
    "mov r13, [rdi + 72]",
    "mov r15, [rdi + 80]",
    "mov rdi, [rdi + 32]",
    "popfq",
    "syscall",
    "mov rsp, r14",
    "pushfq",
    "mov rcx, [rsp + 8]",
    "pop qword ptr [rcx + {flags}]",
    "mov [rcx], rax",
    "mov [rcx + 8], rbx",
    "mov [rcx + 16], rbp",
    "mov [rcx + 24], rsi",
    "mov [rcx + 32], rdi",
    "mov [rcx + 40], r8",
    "mov [rcx + 48], r9",
    "mov [rcx + 56], r10",
    "mov [rcx + 64], r12",
    "mov [rcx + 72], r13",
    "mov [rcx + 80], r15",
    "mov [rcx + {selectors}], ss",
    "mov [rcx + {selectors} + 4], ds",
    "mov [rcx + {selectors} + 8], es",
    "mov [rcx + {selectors} + 12], fs",
    "mov [rcx + {selectors} + 16], gs",
    "fxsave64 [rcx + {fpu}]",
    "push 0x202",
    "popfq",
    "fninit",
    "ldmxcsr [rsp + 8]",
    "fldcw [rsp + 12]",
    "add rsp, 24",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    flags = const core::mem::offset_of!(Registers, flags),
    selectors = const core::mem::offset_of!(Registers, selectors),
    fpu = const core::mem::offset_of!(Registers, fpu),
);

extern "C" {
    fn storm_canary_call(load: *const Registers, store: *mut Registers, number: u64);
}

impl Registers {
    /// What the canary has while it waits: no register is as it would be at a thread's start.
    pub fn pattern() -> Self {
        /// Carry, parity, adjust, sign, direction, overflow, alignment check, identification.
        const FLAGS: u64 = 0x1 | 0x4 | 0x10 | 0x80 | 0x400 | 0x800 | 0x4_0000 | 0x20_0000;
        const FIXED_FLAGS: u64 = 0x202;
        /// The significand's first bit, and an exponent: a number.
        const NUMBER: [u8; 3] = [0x80, 0xff, 0x3f];
        let word = |i: usize| pattern(i).to_le_bytes();
        let x87 = core::array::from_fn(|i| {
            let mut register = [0; 16];
            register[..7].copy_from_slice(&word(i)[..7]);
            register[7..10].copy_from_slice(&NUMBER);
            register
        });
        let registers = Self {
            general: core::array::from_fn(pattern),
            flags: FLAGS | FIXED_FLAGS,
            selectors: [0; 5],
            fpu: FpuImage {
                // All exceptions masked, as at the start, but other precision and rounding.
                control: 0x0e7f,
                status: 0,
                tags: 0xff,
                opcode: 0,
                instruction: 0,
                data: 0,
                mxcsr: 0x7f80,
                mxcsr_mask: 0,
                x87,
                xmm: core::array::from_fn(|i| [pattern(64 + i), pattern(128 + i)]),
                unused: [0; 12],
            },
        };
        // As the processor has them: with a system call that changes nothing.
        registers.around(Syscall::Yield)
    }

    /// What these registers are behind a system call.
    pub fn around(&self, call: Syscall) -> Self {
        let mut after = self.clone();
        // SAFETY: the function preserves what the C ABI asks for.
        unsafe { storm_canary_call(self, &mut after, call.raw()) };
        after
    }

    /// What differs from `before`, if anything.
    pub fn difference(&self, before: &Self) -> Option<&'static str> {
        if self.general != before.general {
            return Some("a general register");
        }
        if self.flags != before.flags {
            println!("\nflags {:#x} instead of {:#x}", self.flags, before.flags);
            return Some("the flags");
        }
        if self.fpu != before.fpu {
            return Some("the FPU's state");
        }
        if self.selectors[0] != before.selectors[0] {
            return Some("the stack segment");
        }
        None
    }
}

/// What points at the pattern.
pub const SECOND_POINTER: &str = "the GS base";
pub const SECOND_POINTER_REGISTER: usize = register::GS_BASE;

/// What it points at: a fault, if it points nowhere.
pub fn second_pointer_target() -> u64 {
    let first;
    // SAFETY: the GS base is the pattern's address; if not, the fault shows.
    unsafe { asm!("mov {}, gs:[0]", out(reg) first, options(nostack, readonly)) };
    first
}
