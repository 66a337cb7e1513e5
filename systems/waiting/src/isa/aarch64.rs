//! aarch64.

use sandglass::{Process, SetupError};

/// Neither is when the task's jobs end judged, nor what it pays: QEMU's `virt` has no timer that expires again and again,
/// without which the emulator leaves the task now and then for an attacker that is alone in the kernel, until the task's budget
/// is over, while virtual time passes for both.
pub const JUDGES_TIMES: bool = false;

/// There is no such timer.
pub fn tick(_process: &mut Process) -> Result<(), SetupError> {
    Ok(())
}
