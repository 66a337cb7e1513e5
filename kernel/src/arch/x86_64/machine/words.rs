//! Copies of memory that users may write at the same time, on another core: outside of what the
//! compiler may assume about memory, as volatile accesses are.

/// As on the bare machine, for hosts of any kind.
///
/// # Safety
/// As there.
#[cfg(not(target_os = "none"))]
pub unsafe fn copy_words<const MOST: u64>(from: *const u64, to: *mut u64, words: usize) {
    assert!(
        words as u64 <= MOST,
        "{words} words where {MOST} are the most"
    );
    for i in 0..words {
        // SAFETY: the caller's.
        unsafe {
            to.wrapping_add(i)
                .write_volatile(from.wrapping_add(i).read_volatile())
        }
    }
}

/// `value`, which the compiler knows nothing about from here on.
#[cfg(target_os = "none")]
#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    let mut value = value;
    // SAFETY: no instruction; `black_box` would go through memory.
    unsafe {
        core::arch::asm!("/* {0:e} */", inout(reg) value,
            options(pure, nomem, nostack, preserves_flags));
    }
    value
}

/// As on the bare machine, for hosts of any kind.
#[cfg(not(target_os = "none"))]
pub fn opaque(value: u32) -> u32 {
    core::hint::black_box(value)
}
