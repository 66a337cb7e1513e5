//! aarch64.

pub mod canary;
pub mod code;
mod compose;
pub mod deeds;
pub mod gate;
pub mod instructions;
pub mod operations;
pub mod witness;

use sandglass::{exit, println, Process, SetupError};

pub use compose::lend;
pub use sandglass::abi::fault::unknown_syscall_aarch64 as unknown_syscall;

/// The instruction SVC #0.
pub const SYSTEM_CALL: [u8; 4] = 0xd400_0001u32.to_le_bytes();

/// Nothing to take: the host ends the machine when it reads what [`end`] prints. A program ends a machine by
/// semihosting otherwise, which the storm's threads must not have: by it, they could reach the host.
pub fn use_end(_process: &mut Process) -> Result<(), SetupError> {
    Ok(())
}

/// Ends the machine with a status.
pub fn end(status: u8) -> ! {
    println!("\nstorm-end {status}");
    exit::stop()
}
