//! x86_64.

use core::arch::x86_64::__cpuid;

use sandglass::context::UserContext;

pub use sandglass::abi::context::x86_64 as order;
pub use sandglass::abi::invocation::x86_64 as arch_label;
pub use sandglass::abi::object::x86_64 as arch_object;

/// SYSCALL, then UD2.
pub const SYSCALL_THEN_STOP: [u8; 4] = [0x0f, 0x05, 0x0f, 0x0b];
/// UD2.
pub const STOP: [u8; 2] = [0x0f, 0x0b];
/// MOV RAX, [RDI]; UD2.
pub const LOAD_THEN_STOP: [u8; 5] = [0x48, 0x8b, 0x07, 0x0f, 0x0b];
/// MOV [RDI], RAX; UD2.
pub const STORE_THEN_STOP: [u8; 5] = [0x48, 0x89, 0x07, 0x0f, 0x0b];

/// JMP RDI; UD2.
pub const JUMP_THEN_STOP: [u8; 4] = [0xff, 0xe7, 0x0f, 0x0b];

/// Number of the user exception of an undefined instruction.
pub const INVALID_OPCODE: u64 = 6;

/// RFLAGS bit that a processor may set in the flags that an exception saves.
const RESUME_FLAG: u64 = 1 << 16;

/// An undefined instruction.
#[inline(always)]
pub fn stop() {
    // SAFETY: a fault, which its handler answers.
    unsafe { core::arch::asm!("ud2") }
}

/// A breakpoint: reported behind its instruction.
#[inline(always)]
pub fn breakpoint() {
    // SAFETY: a fault, which its handler answers.
    unsafe { core::arch::asm!("int3") }
}

/// A number that each core has for itself, not the kernel's.
pub fn here() -> u64 {
    // Leaf 1 is there on every processor of this architecture.
    u64::from(__cpuid(1).ebx >> 24)
}

/// What the registers are to be after a return from a system call, if they were `before` (ABI 01, section 4.1): the return
/// address is in RCX, RFLAGS are in R11.
pub fn returned(before: &UserContext, ip: u64) -> UserContext {
    let mut expected = *before;
    expected.set(order::RIP, ip);
    expected.set(order::RCX, ip);
    expected.set(order::R11, before.get(order::RFLAGS));
    expected
}

/// `seen` after a return, without what the ABI leaves open: RSP is 0 or what it was.
pub fn normalised(seen: &UserContext, before: &UserContext) -> UserContext {
    let mut seen = *seen;
    seen.set(order::RFLAGS, seen.get(order::RFLAGS) & !RESUME_FLAG);
    if seen.get(order::RSP) == 0 {
        seen.set(order::RSP, before.get(order::RSP));
    }
    seen
}
