//! Copies of memory that users may write at the same time, on another core: outside of what the
//! compiler may assume about memory, as volatile accesses are.

/// Copies `words` words, each of them read once and written once, in order.
///
/// # Safety
/// As many words are readable at `from` and writable at `to`, aligned, apart from each other, and no
/// reference to any of them exists.
#[cfg(target_os = "none")]
#[inline(always)]
pub unsafe fn copy_words(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: the caller's. The direction flag is clear, as everywhere in the kernel.
    unsafe {
        core::arch::asm!("rep movsq",
            inout("rcx") words => _, inout("rsi") from => _, inout("rdi") to => _,
            options(nostack, preserves_flags));
    }
}

/// As on the bare machine, for hosts of any kind.
///
/// # Safety
/// As there.
#[cfg(not(target_os = "none"))]
pub unsafe fn copy_words(from: *const u64, to: *mut u64, words: usize) {
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
