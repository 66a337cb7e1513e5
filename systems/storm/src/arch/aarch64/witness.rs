//! What the witness looks at: its read-only thread pointer, which is 0, as it is of most threads, while those of others are
//! not; and the FPU's control and status, which it has never set.

use core::arch::asm;

use sandglass::{Process, SetupError};

/// For messages.
pub const LOOKED_AT: &str = "read-only thread pointer, or another mode or status of its FPU";

/// Before the witnesses start.
pub fn prepare(_process: &mut Process) -> Result<(), SetupError> {
    Ok(())
}

/// Whether all is as it was.
pub fn look() -> bool {
    let (pointer, control, status): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!("mrs {}, tpidrro_el0", "mrs {}, fpcr", "mrs {}, fpsr",
             out(reg) pointer, out(reg) control, out(reg) status, options(nomem, nostack));
    }
    (pointer, control, status) == (0, 0, 0)
}
