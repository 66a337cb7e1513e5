//! The cost of a path: pieces of code that ran, each counted once.
//!
//! The kernel is built so that every piece of its code calls a function here (LLVM's
//! SanitizerCoverage, "trace-pc-guard", nothing pruned). It is no number of instructions of the
//! bare kernel, but grows with it, and is the same each time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Pieces of code that the kernel has.
static PIECES: AtomicU32 = AtomicU32::new(0);

/// Those that ran since the kernel was entered, or last looked for interrupts.
static STRETCH: AtomicU64 = AtomicU64::new(0);
/// The most that ran in a row in measurements; and whether that is asked for.
static LONGEST: AtomicU64 = AtomicU64::new(0);
static MEASURES: AtomicU32 = AtomicU32::new(0);

/// Called by the code that the compiler adds, before all else, with its table of guards.
///
/// # Safety
/// `start..end` are words that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn __sanitizer_cov_trace_pc_guard_init(start: *mut u32, end: *mut u32) {
    // SAFETY: both lie in the table.
    let count = unsafe { end.offset_from(start) };
    PIECES.store(count as u32, Relaxed);
}

/// Called by the code that the compiler adds, at each piece of the kernel.
#[no_mangle]
pub extern "C" fn __sanitizer_cov_trace_pc_guard(_guard: *mut u32) {
    // One thread counts.
    STRETCH.store(STRETCH.load(Relaxed) + 1, Relaxed);
}

/// Whether the kernel is built so that it counts.
pub fn is_counted() -> bool {
    PIECES.load(Relaxed) > 0
}

/// Forgets what was measured.
pub fn reset() {
    LONGEST.store(0, Relaxed);
}

/// A measurement begins.
pub fn begin() {
    MEASURES.store(1, Relaxed);
}

/// It ends.
pub fn end() {
    MEASURES.store(0, Relaxed);
}

/// The kernel is entered, looks for interrupts, or is left: a stretch ends, and another begins.
pub fn mark() {
    let stretch = STRETCH.swap(0, Relaxed);
    if MEASURES.load(Relaxed) != 0 {
        LONGEST.fetch_max(stretch, Relaxed);
    }
}

/// The longest stretch of all measurements since [`reset`].
pub fn longest() -> u64 {
    LONGEST.load(Relaxed)
}
