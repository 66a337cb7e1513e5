//! aarch64.

use sandglass::cap::{IrqControl, Slot};
use sandglass::context::UserContext;
use sandglass::error::Result;

pub use sandglass::arch::label as arch_label;
pub use sandglass::arch::object as arch_object;

/// Indices in the user context, by role and else by the names of x86_64 (ABI 07, section 1.1).
pub mod order {
    use sandglass::abi::context::aarch64 as registers;
    pub use sandglass::abi::context::aarch64::{
        COUNT, FRAME_COUNT, MESSAGE_REGISTERS, SYSCALL_INSTRUCTION_BYTES, TIMEOUT_REPLY_ORDER,
        UNKNOWN_SYSCALL_ORDER,
    };

    pub const RIP: usize = registers::PC;
    pub const RSP: usize = registers::SP;
    pub const RFLAGS: usize = registers::SPSR;
    pub const INITIAL_RFLAGS: u64 = 0;
    pub const RDI: usize = registers::X0;
    pub const RSI: usize = registers::X1;
    pub const R10: usize = registers::X2;
    pub const R8: usize = registers::X3;
    pub const R9: usize = registers::X4;
    pub const R15: usize = registers::X5;
    pub const R12: usize = registers::X6;
    pub const RDX: usize = registers::X7;
    pub const R13: usize = registers::X8;
    pub const RAX: usize = registers::X9;
    pub const RBX: usize = registers::X10;
    pub const RCX: usize = registers::X11;
    pub const RBP: usize = registers::X12;
    pub const R14: usize = registers::X13;
    pub const R11: usize = registers::X14;
    pub const FS_BASE: usize = registers::TPIDR_EL0;
    pub const GS_BASE: usize = registers::TPIDRRO_EL0;
}

/// SVC #0, then UDF #0.
pub const SYSCALL_THEN_STOP: [u8; 8] = [0x01, 0, 0, 0xd4, 0, 0, 0, 0];
/// UDF #0.
pub const STOP: [u8; 4] = [0; 4];
/// LDR X9, [X0]; UDF #0.
pub const LOAD_THEN_STOP: [u8; 8] = [0x09, 0x00, 0x40, 0xf9, 0, 0, 0, 0];
/// STR X9, [X0]; UDF #0.
pub const STORE_THEN_STOP: [u8; 8] = [0x09, 0x00, 0x00, 0xf9, 0, 0, 0, 0];

/// BR X0; UDF #0.
pub const JUMP_THEN_STOP: [u8; 8] = [0x00, 0x00, 0x1f, 0xd6, 0, 0, 0, 0];

/// LDR X9, [X0], and its bytes, of which a store has as many.
pub const LOAD: [u8; 4] = [0x09, 0x00, 0x40, 0xf9];
pub const ACCESS_BYTES: u64 = 4;
/// SVC #0.
pub const SYSCALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];
/// An endless loop.
pub const SPIN: [u8; 4] = [0x00, 0x00, 0x00, 0x14];
/// `ldr x9, [x0]; str x9, [x1]; yield; b` to the beginning.
pub const READ_LOOP: [u8; 16] = [
    0x09, 0x00, 0x40, 0xf9, 0x29, 0x00, 0x00, 0xf9, 0x3f, 0x20, 0x03, 0xd5, 0xfd, 0xff, 0xff, 0x17,
];
/// `str x9, [x0]; add x9, x9, #1; yield; b` to the beginning.
pub const WRITE_LOOP: [u8; 16] = [
    0x09, 0x00, 0x00, 0xf9, 0x29, 0x05, 0x00, 0x91, 0x3f, 0x20, 0x03, 0xd5, 0xfd, 0xff, 0xff, 0x17,
];
/// `add x9, x9, #1; yield; b` to the beginning; behind it, the same with X10.
pub const COUNT_LOOPS: [u8; 24] = [
    0x29, 0x05, 0x00, 0x91, 0x3f, 0x20, 0x03, 0xd5, 0xfe, 0xff, 0xff, 0x17, //
    0x4a, 0x05, 0x00, 0x91, 0x3f, 0x20, 0x03, 0xd5, 0xfe, 0xff, 0xff, 0x17,
];
/// Where the second of them begins.
pub const SECOND_LOOP: u64 = 12;

/// The status of a fault is ESR (05, section 2.5): what it says in the bits of x86_64's.
pub mod status {
    pub const PRESENT: u64 = 1 << 0;
    pub const WRITE: u64 = 1 << 1;
    pub const USER: u64 = 1 << 2;

    /// What ESR says of an access.
    pub const fn of_access(status: u64) -> u64 {
        // Permission faults, at whatever level; and of data, whether it was written.
        let present = if status & 0x3c == 0x0c { PRESENT } else { 0 };
        let write = if !is_fetch(status) && status & 1 << 6 != 0 {
            WRITE
        } else {
            0
        };
        USER | present | write
    }

    pub const fn is_fetch(status: u64) -> bool {
        status >> 26 == 0x20
    }
}

/// Makes a handler for an interrupt that nothing raises, of those that an ABI's programs number by `vector`: a shared one.
pub fn issue_irq(control: IrqControl, vector: u64, slot: Slot) -> Result<()> {
    control.get(32 + vector, slot)
}

/// Number of the user exception of an undefined instruction.
pub const INVALID_OPCODE: u64 = 0x0200_0000;

/// The flags in SPSR.
const FLAGS: u64 = 0xf000_0000;

/// An undefined instruction.
#[inline(always)]
pub fn stop() {
    // SAFETY: a fault, which its handler answers.
    unsafe { core::arch::asm!("udf #0") }
}

/// A breakpoint: reported at its instruction.
#[inline(always)]
pub fn breakpoint() {
    // SAFETY: a fault, which its handler answers.
    unsafe { core::arch::asm!("brk #0") }
}

/// A number that each core has for itself, not the kernel's. User level does not see one.
pub fn here() -> u64 {
    0
}

/// What the registers are to be after a return from a system call, if they were `before`: the same (ABI 01, section 4.3).
pub fn returned(before: &UserContext, ip: u64) -> UserContext {
    let mut expected = *before;
    expected.set(order::RIP, ip);
    expected
}

/// `seen` after a return, without what is the kernel's: all of SPSR but the flags.
pub fn normalised(seen: &UserContext, _before: &UserContext) -> UserContext {
    let mut seen = *seen;
    seen.set(order::RFLAGS, seen.get(order::RFLAGS) & FLAGS);
    seen
}
