//! What differs between architectures.

use core::arch::asm;

/// Goes round so many times, at least once, with two instructions.
#[cfg(target_arch = "aarch64")]
pub fn go_round(mut rounds: u64) {
    // SAFETY: counts a register down.
    unsafe {
        asm!(
            "2: sub {0}, {0}, #1",
            "cbnz {0}, 2b",
            inout(reg) rounds,
            options(nomem, nostack)
        );
    }
    let _ = rounds;
}

/// Goes round so many times, at least once, with two instructions.
#[cfg(target_arch = "x86_64")]
pub fn go_round(mut rounds: u64) {
    // SAFETY: counts a register down.
    unsafe {
        asm!(
            "2: dec {0}",
            "jnz 2b",
            inout(reg) rounds,
            options(nomem, nostack)
        );
    }
    let _ = rounds;
}
