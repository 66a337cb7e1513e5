//! The storm of instructions: aarch64.

pub mod class;
mod grammar;
pub mod low;
mod summit;

use sandglass::abi::fault::{self, unknown_syscall_aarch64, user_exception, vm_fault};
use sandglass::message::Message;

use crate::instructions::thread;
pub use grammar::Composer;

/// Of the flags: none traps that user level can set.
pub const TRAP_FLAG: u64 = 0;

core::arch::global_asm!(
    // Where a thread starts, and starts anew: its area's address is in x0.
    "storm_instructions:",
    "msr fpcr, xzr",
    "mov x29, xzr",
    "mov x30, xzr",
    "bl {thread}",
    "udf #0",
    thread = sym thread,
);

extern "C" {
    /// Code, not data: only its address is used.
    static storm_instructions: u8;
}

/// Where a thread starts, with its area's address in x0 and a stack.
pub fn entry_address() -> u64 {
    &raw const storm_instructions as u64
}

/// Instruction, stack pointer and flags of the thread that faulted, as far as the fault tells.
pub fn registers(message: &Message) -> (u64, u64, u64) {
    let word = |index| message.word(index);
    match message.label() {
        fault::USER_EXCEPTION => (
            word(user_exception::FAULT_IP),
            word(user_exception::SP),
            word(user_exception::FLAGS),
        ),
        fault::UNKNOWN_SYSCALL => (
            word(unknown_syscall_aarch64::FAULT_IP),
            word(unknown_syscall_aarch64::SP),
            word(unknown_syscall_aarch64::SPSR),
        ),
        _ => (word(vm_fault::IP), 0, 0),
    }
}
