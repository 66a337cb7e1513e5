//! Copies of memory that users may write at the same time, on another core: outside of what the
//! compiler may assume about memory, as volatile accesses are.

use crate::arch::bounds::kind;

/// Copies `words` words, at most `MOST`: outside of what the compiler may assume about memory, as volatile accesses are,
/// since users may write them at the same time, on another core. Each is read once and written once: of a pair, either word
/// by itself.
///
/// # Safety
/// As many words are readable at `from` and writable at `to`, aligned, apart from each other, and no
/// reference to any of them exists.
#[inline(always)]
pub unsafe fn copy_words<const MOST: u64>(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: the caller's. No order between the copies is needed but that of one word's load and store: whoever writes the
    // words meanwhile gets what he deserves.
    unsafe {
        core::arch::asm!(
            "subs {words}, {words}, #2",
            "b.lo 3f",
            "2: ldp {a}, {b}, [{from}], #16",
            ".pushsection .sandglass.wcet, \"\", @progbits",
            ".quad 2b, {kind}, {turns}",
            ".popsection",
            "subs {words}, {words}, #2",
            "stp {a}, {b}, [{to}], #16",
            "b.hs 2b",
            // What is left has the same lowest bit.
            "3: tbz {words}, #0, 4f",
            "ldr {a}, [{from}]",
            "str {a}, [{to}]",
            "4:",
            words = inout(reg) words => _, from = inout(reg) from => _, to = inout(reg) to => _,
            a = out(reg) _, b = out(reg) _,
            kind = const kind::TURNS, turns = const MOST / 2,
            options(nostack));
    }
}

/// `value`, which the compiler knows nothing about from here on.
#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    let mut value = value;
    // SAFETY: no instruction; `black_box` would go through memory.
    unsafe {
        core::arch::asm!("/* {0:w} */", inout(reg) value,
            options(pure, nomem, nostack, preserves_flags));
    }
    value
}

/// `number` with the first bit of `bits` behind its own, and the bits behind that: by the carry, of which the compiler
/// makes shifts.
#[inline(always)]
pub fn append_first_bit(number: u64, bits: u64) -> (u64, u64) {
    let (mut number, mut bits) = (number, bits);
    // SAFETY: arithmetic on two registers.
    unsafe {
        core::arch::asm!("adds {bits}, {bits}, {bits}", "adc {number}, {number}, {number}",
            bits = inout(reg) bits, number = inout(reg) number,
            options(pure, nomem, nostack));
    }
    (number, bits)
}
