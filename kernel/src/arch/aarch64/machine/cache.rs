//! Maintenance of caches (07, section 9), by the addresses of the window. Caches of data are found by physical addresses, so
//! that another address of the same memory does as well.

use core::arch::asm;

use super::cpu;
use super::layout::WINDOW_SIZE;
use super::paging::in_window;
use crate::arch::abi::devices::{Maintenance, MAINTENANCE_BYTES};
use crate::arch::bounds::turns;

/// The shortest line that is used, in bytes: no processor is known that has a shorter one, and the longest path of the
/// kernel would be that through lines of four bytes, which the architecture allows.
const SHORTEST_LINE: u64 = 64;
/// Bytes of a word, of which the register tells how many a line has.
const WORD: u64 = 4;
/// Most lines of a piece.
const MOST_LINES: u64 = MAINTENANCE_BYTES / SHORTEST_LINE + 1;

/// Bytes of the shortest line of any cache of data.
fn line() -> u64 {
    WORD << (cpu::cache_type() >> 16 & 0xf)
}

/// Whether no line is shorter than the shortest one that is used.
pub fn has_usable_lines() -> bool {
    line() >= SHORTEST_LINE
}

/// Does `what` to the `bytes` at the physical address `start`, of which there are at most [`MAINTENANCE_BYTES`]: whoever has more goes through them in steps. Nothing to what the window
/// does not show: no data of that is in any cache.
pub fn maintain(what: Maintenance, start: u64, bytes: u64) {
    let Some(end) = start.checked_add(bytes.min(MAINTENANCE_BYTES)) else {
        return;
    };
    if bytes == 0 || end > WINDOW_SIZE || !is_ram(start) {
        return;
    }
    let line = line();
    let first = start & !line.wrapping_sub(1);
    let lines = end.wrapping_sub(first).div_ceil(line);
    for number in turns::<MOST_LINES, _>(0..lines) {
        let at = first.wrapping_add(number.wrapping_mul(line));
        let is_whole = at >= start && at.wrapping_add(line) <= end;
        one(what, is_whole, in_window(at));
    }
    // The maintenance is complete, for all observers, when the operation ends.
    // SAFETY: barriers change no memory.
    unsafe {
        asm!("dsb sy", options(nostack, preserves_flags));
        if what == Maintenance::Unify {
            // Instructions are forgotten after the data has got to where they are fetched from, on all cores of the
            // system, and no instruction that this core has fetched before is executed. All are forgotten: caches of
            // instructions need not be found by physical addresses.
            asm!(
                "ic ialluis",
                "dsb ish",
                "isb",
                options(nostack, preserves_flags)
            );
        }
    }
}

/// Does `what` to the line at `address`.
#[inline(always)]
fn one(what: Maintenance, is_whole: bool, address: u64) {
    // SAFETY: the window maps it. What is written back is what users have stored; what is forgotten is theirs to lose: a line
    // of which only a part is meant is written back as well.
    unsafe {
        match what {
            Maintenance::Clean => {
                asm!("dc cvac, {}", in(reg) address, options(nostack, preserves_flags));
            }
            Maintenance::Unify => {
                asm!("dc cvau, {}", in(reg) address, options(nostack, preserves_flags));
            }
            Maintenance::Invalidate if is_whole => {
                asm!("dc ivac, {}", in(reg) address, options(nostack, preserves_flags));
            }
            Maintenance::Invalidate | Maintenance::CleanInvalidate => {
                asm!("dc civac, {}", in(reg) address, options(nostack, preserves_flags));
            }
        }
    }
}

/// Whether the window shows what is at the physical address `paddr`: the processor is asked for the translation.
fn is_ram(paddr: u64) -> bool {
    let result: u64;
    // SAFETY: it only asks. ISB: the answer is there when it is read.
    unsafe {
        asm!("at s1e1r, {}", "isb", "mrs {}, par_el1", in(reg) in_window(paddr), out(reg) result,
             options(nostack, preserves_flags));
    }
    result & 1 == 0
}
