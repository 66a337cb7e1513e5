//! The system calls themselves: one inline stub per shape, registers as in ABI 01, section 4, for each architecture.
//!
//! The stubs neither read nor write the IPC buffer; they are compiled as if they did (no
//! `nomem`), so accesses to it are not moved across them.

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;

pub use crate::arch::{call, send, send_receive, simple, trace};
pub(crate) use crate::arch::{is_answered, INSTRUCTION};

/// Message registers 0 to 3.
pub type Registers = [u64; 4];

/// What a receiving system call leaves in the registers.
#[derive(Clone, Copy, Debug)]
pub struct RawReceived {
    pub badge: u64,
    pub info: MessageInfo,
    pub registers: Registers,
}

/// Gives up the remaining budget of the current replenishment (ABI 04, section 9.1).
#[inline(always)]
pub fn yield_now() {
    simple(Syscall::Yield, 0);
}

/// Prints one byte on the kernel's console. Debug kernels only: elsewhere it is a fault.
#[inline(always)]
pub fn debug_put_char(byte: u8) {
    simple(Syscall::DebugPutChar, u64::from(byte));
}

/// Stops the machine. Debug kernels only: elsewhere it is a fault.
#[inline(always)]
pub fn debug_halt() {
    simple(Syscall::DebugHalt, 0);
}

/// The kind of a capability as a number of [`sandglass_abi::cap_identify`]. Debug kernels only.
#[inline(always)]
pub fn debug_cap_identify(cap: u64) -> u64 {
    simple(Syscall::DebugCapIdentify, cap)
}
