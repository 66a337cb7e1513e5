//! `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp`, which compiled code calls.
//!
//! On the target of x86_64 they come from the C library, which user programs do not have; on that of aarch64 from the
//! compiler's own library, which is slow. They are in assembly because a compiler may turn a loop that copies into a call of
//! `memcpy`: see [`crate::arch`]. Blocks of 16 bytes go through vector registers; a rest is covered by a block that overlaps
//! the one before, loaded before anything is stored, so that overlapping operands are right.

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    crate::memory_functions!("sandglass_test_");

    extern "C" {
        fn sandglass_test_memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
        fn sandglass_test_memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8;
        fn sandglass_test_memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32;
    }

    const LEN: usize = 160;

    fn pattern() -> Vec<u8> {
        (0..LEN as u32).map(|i| (i * 37 + 11) as u8).collect()
    }

    #[test]
    fn moves_of_every_length_and_overlap_are_exact() {
        for len in 0..=80 {
            for from in (0..80).step_by(3) {
                for to in 0..=LEN - 80 {
                    let mut moved = pattern();
                    let mut expected = pattern();
                    expected.copy_within(from..from + len, to);
                    // SAFETY: both ranges are inside the vector.
                    let result = unsafe {
                        let base = moved.as_mut_ptr();
                        sandglass_test_memmove(base.add(to), base.add(from), len) == base.add(to)
                    };
                    assert!(result && moved == expected, "len {len} from {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn fills_touch_exactly_their_range() {
        for len in 0..=80 {
            for at in 0..20 {
                let mut filled = pattern();
                let mut expected = pattern();
                expected[at..at + len].fill(0xa5);
                // SAFETY: the range is inside the vector. Only the low byte counts.
                unsafe { sandglass_test_memset(filled.as_mut_ptr().add(at), 0x1a5, len) };
                assert_eq!(filled, expected, "len {len} at {at}");
            }
        }
    }

    #[test]
    fn comparisons_have_the_sign_of_the_first_difference() {
        for len in 0..=40usize {
            let a = pattern();
            // SAFETY: the ranges are inside the vectors.
            let compare =
                |b: &[u8]| unsafe { sandglass_test_memcmp(a.as_ptr(), b.as_ptr(), len).signum() };
            assert_eq!(compare(&a), 0);
            for at in 0..len {
                let mut b = a.clone();
                b[at] = !a[at];
                // Later differences must not matter.
                b[at + 1..].reverse();
                assert_eq!(
                    compare(&b),
                    if a[at] < b[at] { -1 } else { 1 },
                    "len {len} at {at}"
                );
            }
        }
    }
}
