//! Registers of the canary, and the second pointer that each thread has of its own.

use core::arch::asm;

use sandglass::abi::context::aarch64 as register;
use sandglass::abi::syscall::Syscall;
use sandglass::println;

use crate::canary::pattern;

/// Registers around the system call that ends a job.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Registers {
    /// x0 to x30; x7, the system call's number, is not looked at.
    general: [u64; 31],
    /// N, Z, C and V.
    flags: u64,
    vectors: [[u64; 2]; 32],
    /// Control and status of the FPU.
    fpcr: u64,
    fpsr: u64,
}

core::arch::global_asm!(
    // x0: the registers to load; x1: where to store what they are behind the system call in x2.
    "storm_canary_call:",
    "stp x29, x30, [sp, #-176]!",
    "stp x19, x20, [sp, #16]",
    "stp x21, x22, [sp, #32]",
    "stp x23, x24, [sp, #48]",
    "stp x25, x26, [sp, #64]",
    "stp x27, x28, [sp, #80]",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    "stp x1, x2, [sp, #160]",
    "ldr x3, [x0, #{flags}]",
    "msr nzcv, x3",
    "ldr x3, [x0, #{fpcr}]",
    "msr fpcr, x3",
    "ldr x3, [x0, #{fpsr}]",
    "msr fpsr, x3",
    "add x3, x0, #{vectors}",
    ".irp n,0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30",
    "ldr q\\n, [x3, #\\n * 16]",
    ".endr",
    ".irp n,1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31",
    "ldr q\\n, [x3, #\\n * 16]",
    ".endr",
    ".irp n,1,2,3,4,5,6,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30",
    "ldr x\\n, [x0, #\\n * 8]",
    ".endr",
    "ldr x7, [sp, #168]",
    "ldr x0, [x0]",
    "svc #0",
    "str x7, [sp, #168]",
    "ldr x7, [sp, #160]",
    ".irp n,0,1,2,3,4,5,6,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30",
    "str x\\n, [x7, #\\n * 8]",
    ".endr",
    "mrs x3, nzcv",
    "str x3, [x7, #{flags}]",
    "mrs x3, fpcr",
    "str x3, [x7, #{fpcr}]",
    "mrs x3, fpsr",
    "str x3, [x7, #{fpsr}]",
    "add x3, x7, #{vectors}",
    ".irp n,0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30",
    "str q\\n, [x3, #\\n * 16]",
    ".endr",
    ".irp n,1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31",
    "str q\\n, [x3, #\\n * 16]",
    ".endr",
    "msr fpcr, xzr",
    "msr fpsr, xzr",
    "ldp x19, x20, [sp, #16]",
    "ldp x21, x22, [sp, #32]",
    "ldp x23, x24, [sp, #48]",
    "ldp x25, x26, [sp, #64]",
    "ldp x27, x28, [sp, #80]",
    "ldp d8, d9, [sp, #96]",
    "ldp d10, d11, [sp, #112]",
    "ldp d12, d13, [sp, #128]",
    "ldp d14, d15, [sp, #144]",
    "ldp x29, x30, [sp], #176",
    "ret",
    flags = const core::mem::offset_of!(Registers, flags),
    fpcr = const core::mem::offset_of!(Registers, fpcr),
    fpsr = const core::mem::offset_of!(Registers, fpsr),
    vectors = const core::mem::offset_of!(Registers, vectors),
);

extern "C" {
    fn storm_canary_call(load: *const Registers, store: *mut Registers, number: u64);
}

impl Registers {
    /// What the canary has while it waits: no register is as it would be at a thread's start.
    pub fn pattern() -> Self {
        /// N, C and V.
        const FLAGS: u64 = 0xb000_0000;
        /// Alternative half precision, default NaN, flush to zero, rounding towards zero.
        const FPCR: u64 = 0x07c0_0000;
        /// Saturation, and all exceptions, which are masked.
        const FPSR: u64 = 0x0800_009f;
        let registers = Self {
            general: core::array::from_fn(pattern),
            flags: FLAGS,
            vectors: core::array::from_fn(|i| [pattern(64 + i), pattern(128 + i)]),
            fpcr: FPCR,
            fpsr: FPSR,
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
        if self.vectors != before.vectors {
            return Some("a register of the FPU");
        }
        if (self.fpcr, self.fpsr) != (before.fpcr, before.fpsr) {
            return Some("control or status of the FPU");
        }
        None
    }
}

/// What points at the pattern.
pub const SECOND_POINTER: &str = "the read-only thread pointer";
pub const SECOND_POINTER_REGISTER: usize = register::TPIDRRO_EL0;

/// What it points at: a fault, if it points nowhere.
pub fn second_pointer_target() -> u64 {
    let first;
    // SAFETY: it is the pattern's address; if not, the fault shows.
    unsafe {
        asm!("mrs {0}, tpidrro_el0", "ldr {0}, [{0}]", out(reg) first, options(nostack, readonly));
    }
    first
}
