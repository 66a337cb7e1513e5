//! The system call with every register under control, and the ways into random code.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::actor::{actor, Dice};
use crate::area::CodePages;

/// What the registers are before a system call, and what they are behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    /// x0: capability, then badge.
    pub cap: u64,
    /// x1.
    pub info: u64,
    /// x2 to x5.
    pub message: [u64; 4],
    /// x6.
    pub reply: u64,
    /// x7.
    pub number: u64,
    /// x8.
    pub destination: u64,
    /// x9, x16, x17, x18, x29, x30.
    pub others: [u64; 6],
    /// The flags N, Z, C and V.
    pub flags: u64,
    /// The thread pointer.
    pub pointer: u64,
}

core::arch::global_asm!(
    // The registers' address is in x0. It stays in x19, which the kernel preserves.
    "storm_system_call:",
    "stp x29, x30, [sp, #-48]!",
    "stp x19, x18, [sp, #16]",
    "mrs x9, tpidr_el0",
    "str x9, [sp, #32]",
    "mov x19, x0",
    "ldp x9, x10, [x19, #120]",
    "msr nzcv, x9",
    "msr tpidr_el0, x10",
    "ldp x9, x16, [x19, #72]",
    "ldp x17, x18, [x19, #88]",
    "ldp x29, x30, [x19, #104]",
    "ldp x0, x1, [x19]",
    "ldp x2, x3, [x19, #16]",
    "ldp x4, x5, [x19, #32]",
    "ldp x6, x7, [x19, #48]",
    "ldr x8, [x19, #64]",
    "svc #0",
    "stp x0, x1, [x19]",
    "stp x2, x3, [x19, #16]",
    "stp x4, x5, [x19, #32]",
    "ldr x9, [sp, #32]",
    "msr tpidr_el0, x9",
    "ldp x19, x18, [sp, #16]",
    "ldp x29, x30, [sp], #48",
    "ret",
    // Where a thread starts: its area's address is in x0.
    "storm_entry:",
    "mov x29, xzr",
    "mov x30, xzr",
    "bl {actor}",
    "udf #0",
    actor = sym actor,
);

extern "C" {
    fn storm_system_call(registers: *mut Registers);
    /// Code, not data: only its address is used.
    static storm_entry: u8;
}
const _: () = assert!(core::mem::offset_of!(Registers, others) == 72);
const _: () = assert!(core::mem::offset_of!(Registers, flags) == 120);

/// Where a thread of the storm starts, with its area's address in x0 and a stack.
pub fn entry_address() -> u64 {
    &raw const storm_entry as u64
}

impl Registers {
    /// With noise in those that no system call reads.
    pub fn noisy(dice: &mut Dice) -> Self {
        let mut registers = Self {
            flags: dice.word() & 0xf000_0000,
            pointer: dice.wild(),
            ..Self::default()
        };
        registers.others.fill_with(|| dice.word());
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
    const RETURN: [u8; 4] = 0xd65f_03c0u32.to_le_bytes();
    pages.write(0, bytes.iter().copied().chain(RETURN));
    let code = pages.0.as_ptr();
    synchronise(code as u64, bytes.len() + RETURN.len());
    // SAFETY: not needed: the thread has nothing to lose that is not the storm's. If the code
    // breaks it, it faults and is started anew.
    unsafe {
        let call: extern "C" fn() = core::mem::transmute(code);
        call();
    }
}

/// Lets the `bytes` bytes at `code` be executed as they are now: instructions are fetched past the caches of data.
pub fn synchronise(code: u64, bytes: usize) {
    /// Bytes of a line of a cache: none is shorter.
    const LINE: usize = 16;
    let lines = || (code & !(LINE as u64 - 1)..code + bytes as u64).step_by(LINE);
    // SAFETY: maintenance changes nothing in memory.
    lines().for_each(|line| unsafe { asm!("dc cvau, {}", in(reg) line) });
    // SAFETY: as above.
    unsafe { asm!("dsb ish") };
    // SAFETY: as above.
    lines().for_each(|line| unsafe { asm!("ic ivau, {}", in(reg) line) });
    // SAFETY: as above.
    unsafe { asm!("dsb ish", "isb") };
}
