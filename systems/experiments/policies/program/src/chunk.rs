//! What is executed: chunks of a fixed number of instructions, which are counted.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::time;

const CALIBRATION: u64 = 500;
const TRIES: usize = 8;

/// Executes so many chunks, and counts them.
#[inline(never)]
pub fn execute(counted: &AtomicU64, chunks: u64) {
    for _ in 0..chunks {
        // Straight on, which an emulator executes many times as fast as a loop.
        // SAFETY: nothing is done, a hundred times.
        unsafe {
            asm!(
                ".rept 100",
                "nop",
                ".endr",
                options(nomem, nostack, preserves_flags),
            );
        }
        // Nobody else writes it.
        counted.store(counted.load(Relaxed) + 1, Relaxed);
    }
}

/// Ticks of a chunk. In virtual time every chunk takes the same, and the shortest of several tries is one that nobody
/// has interrupted.
pub fn calibrate() -> u64 {
    let scratch = AtomicU64::new(0);
    let shortest = |chunks| {
        let tries = (0..TRIES).map(|_| {
            let start = time::ticks();
            execute(&scratch, chunks);
            time::ticks() - start
        });
        tries.min().unwrap_or(0)
    };
    // What is around the chunks takes the same time in both.
    ((shortest(2 * CALIBRATION) - shortest(CALIBRATION)) / CALIBRATION).max(1)
}
