//! x86_64.

use sandglass::{Process, SetupError};

/// When the task's jobs end is judged, and what it pays.
pub const JUDGES_TIMES: bool = true;

/// Ports of the interval timer's first channel and of its commands; the command for a count of two bytes
/// that begins anew when it has ended; and a count, at 1.19 MHz.
const PIT_CHANNEL: u16 = 0x40;
const PIT_COMMAND: u16 = 0x43;
const RATE_GENERATOR: u8 = 0x34;
const PIT_COUNT: u16 = 12;

/// Lets a timer of the machine expire every 10 µs, whose interrupt nobody takes.
///
/// The emulator stays with a core until that pauses, or until a timer expires; then it goes on with the
/// first. Without this it would, once in each job, leave the task in its user code for an attacker that is
/// alone in the kernel, until the task's budget is over: while virtual time passes for both of them.
pub fn tick(process: &mut Process) -> Result<(), SetupError> {
    let ports = process.resources.io_ports(PIT_CHANNEL, PIT_COMMAND)?;
    ports.out8(PIT_COMMAND, RATE_GENERATOR)?;
    for byte in PIT_COUNT.to_le_bytes() {
        ports.out8(PIT_CHANNEL, byte)?;
    }
    Ok(())
}
