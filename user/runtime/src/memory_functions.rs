//! `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp`, which compiled code calls.
//!
//! On this target they come from the C library, which user programs do not have. They are in
//! assembly because a compiler may turn a loop that copies into a call of `memcpy`. Blocks of 16
//! bytes go through SSE registers; a rest is covered by a block that overlaps the one before,
//! loaded before anything is stored, so that overlapping operands are right.

/// Defines the memory functions, their names after `$prefix`; used once per program, without
/// prefix, by [`entry!`](crate::entry).
#[doc(hidden)]
#[macro_export]
macro_rules! memory_functions {
    ($prefix:literal) => {
        core::arch::global_asm!(
            ".section .text.memory_functions, \"ax\", @progbits",
            concat!(".globl ", $prefix, "memcpy"),
            concat!(".globl ", $prefix, "memmove"),
            concat!(".type ", $prefix, "memcpy, @function"),
            concat!(".type ", $prefix, "memmove, @function"),
            // rdi destination, rsi source, rdx bytes; returns the destination.
            concat!($prefix, "memcpy:"),
            concat!($prefix, "memmove:"),
            "mov rax, rdi",
            "cmp rdx, 16",
            "jb 20f",
            "mov rcx, rdi",
            "sub rcx, rsi",
            // Destination inside the source's bytes, not at its start: copy backwards.
            "cmp rcx, rdx",
            "jb 12f",
            // Forwards; the last block is loaded first.
            "movups xmm1, [rsi + rdx - 16]",
            "lea r8, [rdx - 16]",
            "xor ecx, ecx",
            "11: movups xmm0, [rsi + rcx]",
            "movups [rdi + rcx], xmm0",
            "add rcx, 16",
            "cmp rcx, r8",
            "jb 11b",
            "movups [rdi + r8], xmm1",
            "ret",
            // Backwards; the first block is loaded first.
            "12: movups xmm1, [rsi]",
            "mov rcx, rdx",
            "13: movups xmm0, [rsi + rcx - 16]",
            "movups [rdi + rcx - 16], xmm0",
            "sub rcx, 16",
            "cmp rcx, 16",
            "ja 13b",
            "movups [rdi], xmm1",
            "ret",
            // Below 16 bytes: everything is loaded before anything is stored.
            "20: cmp edx, 8",
            "jb 21f",
            "mov rcx, [rsi]",
            "mov r8, [rsi + rdx - 8]",
            "mov [rdi], rcx",
            "mov [rdi + rdx - 8], r8",
            "ret",
            "21: cmp edx, 4",
            "jb 22f",
            "mov ecx, [rsi]",
            "mov r8d, [rsi + rdx - 4]",
            "mov [rdi], ecx",
            "mov [rdi + rdx - 4], r8d",
            "ret",
            "22: test edx, edx",
            "jz 23f",
            "movzx ecx, byte ptr [rsi]",
            "movzx r8d, byte ptr [rsi + rdx - 1]",
            "mov r9, rdx",
            "shr r9, 1",
            "movzx r10d, byte ptr [rsi + r9]",
            "mov [rdi], cl",
            "mov [rdi + r9], r10b",
            "mov [rdi + rdx - 1], r8b",
            "23: ret",
            concat!(".globl ", $prefix, "memset"),
            concat!(".type ", $prefix, "memset, @function"),
            // rdi destination, sil byte, rdx bytes; returns the destination.
            concat!($prefix, "memset:"),
            "mov rax, rdi",
            "movzx esi, sil",
            "mov rcx, 0x0101010101010101",
            "imul rsi, rcx",
            "cmp rdx, 16",
            "jb 31f",
            "movq xmm0, rsi",
            "punpcklqdq xmm0, xmm0",
            "lea r8, [rdx - 16]",
            "xor ecx, ecx",
            "30: movups [rdi + rcx], xmm0",
            "add rcx, 16",
            "cmp rcx, r8",
            "jb 30b",
            "movups [rdi + r8], xmm0",
            "ret",
            "31: cmp edx, 8",
            "jb 32f",
            "mov [rdi], rsi",
            "mov [rdi + rdx - 8], rsi",
            "ret",
            "32: cmp edx, 4",
            "jb 33f",
            "mov [rdi], esi",
            "mov [rdi + rdx - 4], esi",
            "ret",
            "33: test edx, edx",
            "jz 34f",
            "mov [rdi], sil",
            "mov [rdi + rdx - 1], sil",
            "shr edx, 1",
            "mov [rdi + rdx], sil",
            "34: ret",
            concat!(".globl ", $prefix, "memcmp"),
            concat!(".globl ", $prefix, "bcmp"),
            concat!(".type ", $prefix, "memcmp, @function"),
            concat!(".type ", $prefix, "bcmp, @function"),
            // rdi, rsi operands, rdx bytes; returns the sign of the first difference.
            concat!($prefix, "memcmp:"),
            concat!($prefix, "bcmp:"),
            "xor ecx, ecx",
            "40: lea r8, [rcx + 8]",
            "cmp r8, rdx",
            "ja 41f",
            "mov rax, [rdi + rcx]",
            "mov r9, [rsi + rcx]",
            "cmp rax, r9",
            "jne 42f",
            "mov rcx, r8",
            "jmp 40b",
            "41: cmp rcx, rdx",
            "jae 43f",
            "movzx eax, byte ptr [rdi + rcx]",
            "movzx r9d, byte ptr [rsi + rcx]",
            "inc rcx",
            "sub eax, r9d",
            "jz 41b",
            "ret",
            // The first byte in memory is the most significant one of the comparison.
            "42: bswap rax",
            "bswap r9",
            "cmp rax, r9",
            "sbb eax, eax",
            "or eax, 1",
            "ret",
            "43: xor eax, eax",
            "ret",
            ".text",
        );
    };
}

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
