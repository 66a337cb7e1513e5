//! The storm of instructions: x86_64.

pub mod class;
mod grammar;
pub mod low;
mod summit;

use sandglass::abi::context::x86_64::INITIAL_RFLAGS;
use sandglass::abi::fault;
use sandglass::message::Message;

use crate::instructions::thread;
pub use grammar::Composer;

/// Of the flags: traps behind each instruction.
pub const TRAP_FLAG: u64 = 0x100;

core::arch::global_asm!(
    // Where a thread starts, and starts anew: its area's address is in rdi.
    "storm_instructions:",
    "push 0x202",
    "popfq",
    "xor ebp, ebp",
    "call {thread}",
    "ud2",
    thread = sym thread,
);

extern "C" {
    /// Code, not data: only its address is used.
    static storm_instructions: u8;
}

/// Where a thread starts, with its area's address in rdi and a stack.
pub fn entry_address() -> u64 {
    &raw const storm_instructions as u64
}

/// Instruction, stack pointer and flags of the thread that faulted, as far as the fault tells.
pub fn registers(message: &Message) -> (u64, u64, u64) {
    let word = |index| message.word(index);
    match message.label() {
        fault::USER_EXCEPTION => (
            word(fault::user_exception::FAULT_IP),
            word(fault::user_exception::SP),
            word(fault::user_exception::FLAGS),
        ),
        fault::UNKNOWN_SYSCALL => (
            word(fault::unknown_syscall::FAULT_IP),
            word(fault::unknown_syscall::RSP),
            word(fault::unknown_syscall::FLAGS),
        ),
        _ => (word(fault::vm_fault::IP), 0, INITIAL_RFLAGS),
    }
}
