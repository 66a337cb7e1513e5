//! Copies of memory that users may write at the same time, and values of which the compiler knows nothing, as each
//! architecture has them on the bare machine: for hosts of any kind.

/// Copies `words` words, at most `MOST`, one after the other.
///
/// # Safety
/// As many words are readable at `from` and writable at `to`, aligned, apart from each other, and no
/// reference to any of them exists.
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
pub fn opaque(value: u32) -> u32 {
    core::hint::black_box(value)
}

/// The same of a word.
pub fn opaque_word(value: u64) -> u64 {
    core::hint::black_box(value)
}

/// `pointer`; on a bare machine, the compiler knows nothing of it from here on.
#[inline(always)]
pub fn opaque_pointer<T>(pointer: *mut T) -> *mut T {
    pointer
}

/// `number` with the first bit of `bits` behind its own, and the bits behind that.
pub fn append_first_bit(number: u64, bits: u64) -> (u64, u64) {
    (number << 1 | bits >> 63, bits << 1)
}
