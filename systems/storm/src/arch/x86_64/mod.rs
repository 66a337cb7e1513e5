//! x86_64.

pub mod canary;
pub mod code;
mod compose;
pub mod deeds;
pub mod gate;
pub mod instructions;
pub mod operations;
pub mod witness;

use sandglass::{exit, Process, SetupError};

pub use compose::lend;
pub use sandglass::abi::fault::unknown_syscall;

/// The instruction.
pub const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// Lets [`end`] end the machine.
pub fn use_end(process: &mut Process) -> Result<(), SetupError> {
    process.use_exit_port()
}

/// Ends the machine with a status.
pub fn end(status: u8) -> ! {
    exit::exit(status)
}
