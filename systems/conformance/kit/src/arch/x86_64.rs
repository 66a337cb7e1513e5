//! x86_64.

use core::arch::x86_64::__cpuid;

use sandglass::cap::{IoApicPin, IrqControl, Slot};
use sandglass::context::UserContext;
use sandglass::error::Result;

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

/// MOV RAX, [RDI], and its bytes, of which a store has as many.
pub const LOAD: [u8; 3] = [0x48, 0x8b, 0x07];
pub const ACCESS_BYTES: u64 = 3;
/// SYSCALL.
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// An endless loop.
pub const SPIN: [u8; 2] = [0xeb, 0xfe];
/// `mov rax, [rdi]; mov [rsi], rax; pause; jmp` to the beginning.
pub const READ_LOOP: [u8; 10] = [0x48, 0x8b, 0x07, 0x48, 0x89, 0x06, 0xf3, 0x90, 0xeb, 0xf6];
/// `mov [rdi], rax; inc rax; pause; jmp` to the beginning.
pub const WRITE_LOOP: [u8; 10] = [0x48, 0x89, 0x07, 0x48, 0xff, 0xc0, 0xf3, 0x90, 0xeb, 0xf6];
/// `inc rax; pause; jmp` to the beginning; behind it, the same with RBX.
pub const COUNT_LOOPS: [u8; 14] = [
    0x48, 0xff, 0xc0, 0xf3, 0x90, 0xeb, 0xf9, //
    0x48, 0xff, 0xc3, 0xf3, 0x90, 0xeb, 0xf9,
];
/// Where the second of them begins.
pub const SECOND_LOOP: u64 = 7;

/// Bits of the status of a fault (05, section 2.5).
pub mod status {
    pub const PRESENT: u64 = 1 << 0;
    pub const WRITE: u64 = 1 << 1;
    pub const USER: u64 = 1 << 2;
    const FETCH: u64 = 1 << 4;

    /// A status without its fetch bit, which not every processor sets.
    pub const fn of_access(status: u64) -> u64 {
        status & !FETCH
    }

    pub const fn is_fetch(status: u64) -> bool {
        status & FETCH != 0
    }
}

/// Makes a handler for an interrupt that nothing raises, of those that an ABI's programs number by `vector`.
pub fn issue_irq(control: IrqControl, vector: u64, slot: Slot) -> Result<()> {
    let unused = IoApicPin {
        ioapic: 0,
        pin: 22,
        level: false,
        active_low: false,
        vector,
    };
    control.get_ioapic(unused, slot)
}

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
