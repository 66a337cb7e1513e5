//! What the memory-type range registers (MTRRs) make of physical memory, from the first MiB on (Intel's manual, volume 3,
//! chapter "Memory cache control"; AMD's volume 2 likewise). Pure numbers: whoever asks brings the registers.
//!
//! Firmware sets the registers, on all cores alike. The kernel changes none: page tables can make memory less cached than
//! they do, but not more.

use crate::arch::bounds::turns;

/// The registers that are read.
pub const CAPABILITIES: u32 = 0xfe;
pub const DEFAULT: u32 = 0x2ff;
/// Those of the first variable range: where it begins, with its type, and which bits of an address count. The next follow.
pub const BASE: u32 = 0x200;
pub const MASK: u32 = 0x201;

/// Of [`CAPABILITIES`]: how many variable ranges there are.
const RANGES: u64 = 0xff;
/// Of [`DEFAULT`] and [`BASE`]: the type.
const TYPE: u64 = 0xff;
const WRITE_BACK: u64 = 6;
/// Of [`DEFAULT`]: the registers are in use. If not, all memory is uncached.
const ENABLED: u64 = 1 << 11;
/// Of [`MASK`]: the range is in use.
const VALID: u64 = 1 << 11;
const ADDRESS: u64 = !0xfff;

/// Most stretches of one type that a piece of RAM is looked at in; there are two for each range.
const MOST_STRETCHES: u64 = 1024;

/// Whether the registers are in use.
pub fn are_on(register: &impl Fn(u32) -> u64) -> bool {
    register(DEFAULT) & ENABLED != 0
}

/// Whether the memory from physical address `start`, not below 1 MiB, to `end` is write-back, where the registers are on.
/// Not, if a range's mask has holes.
#[inline(never)]
pub fn are_write_back(register: &impl Fn(u32) -> u64, start: u64, end: u64) -> bool {
    let mut at = start;
    for _ in turns::<MOST_STRETCHES, _>(0..MOST_STRETCHES) {
        if at >= end {
            return true;
        }
        match write_back_until(register, at) {
            Some(next) => at = next,
            None => return false,
        }
    }
    false
}

/// Up to where at least the memory from `at` on is write-back, if it is. Where ranges overlap, that takes that all of them say
/// so: another one of them wins, or the result is undefined.
#[inline(never)]
fn write_back_until(register: &impl Fn(u32) -> u64, at: u64) -> Option<u64> {
    let mut until = u64::MAX;
    let mut is_covered = false;
    let ranges = register(CAPABILITIES) & RANGES;
    for range in turns::<RANGES, _>(0..ranges as u32) {
        let place = range.wrapping_mul(2);
        let mask = register(MASK.wrapping_add(place));
        if mask & VALID == 0 {
            continue;
        }
        let base = register(BASE.wrapping_add(place));
        let (covers, distance) = covers(base & mask & ADDRESS, mask & ADDRESS, at)?;
        if covers && base & TYPE != WRITE_BACK {
            return None;
        }
        is_covered |= covers;
        until = until.min(at.saturating_add(distance));
    }
    (is_covered || register(DEFAULT) & TYPE == WRITE_BACK).then_some(until)
}

/// Whether the range of the addresses that agree with `base` in the bits of `mask` has `at`, and the bytes from there to
/// where that changes. `None` if the mask's bits are not all side by side. Bits above them do not count, so that the range
/// comes again and again.
fn covers(base: u64, mask: u64, at: u64) -> Option<(bool, u64)> {
    if mask == 0 {
        return Some((true, u64::MAX));
    }
    let size = 1 << mask.trailing_zeros();
    let period = mask.wrapping_add(size);
    if period & mask != 0 {
        return None;
    }
    let into = at.wrapping_sub(base) & period.wrapping_sub(1);
    let covers = into < size;
    let end = if covers { size } else { period };
    Some((covers, end.wrapping_sub(into)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const UNCACHED: u64 = 0;
    const WRITE_THROUGH: u64 = 4;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    /// A range of an address space of 39 bits: its type, where it begins, and its length, a power of two.
    fn range(kind: u64, base: u64, length: u64) -> [u64; 2] {
        [base | kind, ((1 << 39) - length) | VALID]
    }

    fn registers(default: u64, ranges: &[[u64; 2]]) -> impl Fn(u32) -> u64 {
        let mut registers = BTreeMap::from([
            (CAPABILITIES, 0x500 | ranges.len() as u64),
            (DEFAULT, default | ENABLED),
        ]);
        for (i, &[base, mask]) in (0..).zip(ranges) {
            registers.insert(BASE + 2 * i, base);
            registers.insert(MASK + 2 * i, mask);
        }
        move |number| registers[&number]
    }

    #[test]
    fn a_default_of_write_back_has_holes() {
        let pci = range(UNCACHED, 3 * GIB, GIB);
        let of = registers(WRITE_BACK, &[pci]);
        assert!(are_write_back(&of, MIB, 3 * GIB));
        assert!(are_write_back(&of, 4 * GIB, 500 * GIB));
        assert!(!are_write_back(&of, MIB, 3 * GIB + 1));
        assert!(!are_write_back(&of, 4 * GIB - 4096, 5 * GIB));
        assert!(!are_write_back(&of, 3 * GIB + 4096, 3 * GIB + 8192));
    }

    #[test]
    fn a_default_of_uncached_is_covered_piece_by_piece() {
        let of = registers(
            UNCACHED,
            &[
                range(WRITE_BACK, 0, 2 * GIB),
                range(WRITE_BACK, 2 * GIB, GIB),
                [WRITE_BACK, (1 << 39) - GIB],
                range(WRITE_BACK, 4 * GIB, 4 * GIB),
                // The system management's: the last 8 MiB.
                range(UNCACHED, 3 * GIB - 8 * MIB, 8 * MIB),
            ],
        );
        assert!(are_write_back(&of, MIB, 3 * GIB - 8 * MIB));
        assert!(are_write_back(&of, 4 * GIB, 8 * GIB));
        for (start, end) in [
            (MIB, 3 * GIB),
            (3 * GIB, 4 * GIB),
            (4 * GIB, 8 * GIB + 1),
            (3 * GIB - MIB, 3 * GIB),
        ] {
            assert!(!are_write_back(&of, start, end), "{start:#x} {end:#x}");
        }
    }

    #[test]
    fn ranges_that_overlap_must_agree() {
        let all = range(WRITE_BACK, 0, 8 * GIB);
        for other in [UNCACHED, 1, WRITE_THROUGH, 5, 7] {
            let of = registers(WRITE_BACK, &[all, range(other, GIB, GIB)]);
            assert!(!are_write_back(&of, MIB, 8 * GIB), "type {other}");
            assert!(are_write_back(&of, 2 * GIB, 8 * GIB), "type {other}");
        }
        let of = registers(UNCACHED, &[all, range(WRITE_BACK, GIB, GIB)]);
        assert!(are_write_back(&of, MIB, 8 * GIB));
    }

    #[test]
    fn a_mask_decides_as_the_processor_does() {
        // Too short: bit 36 and those above do not count.
        let of = registers(WRITE_BACK, &[[3 * GIB, ((1 << 36) - GIB) | VALID]]);
        assert!(!are_write_back(&of, 67 * GIB, 67 * GIB + 1));
        assert!(are_write_back(&of, 4 * GIB, 67 * GIB));
        // Of everything, and of nothing that can be told.
        let of = registers(UNCACHED, &[[WRITE_BACK, VALID]]);
        assert!(are_write_back(&of, MIB, 1 << 47));
        let holes = [WRITE_BACK, (1 << 38 | 1 << 30) | VALID];
        assert!(!are_write_back(
            &registers(WRITE_BACK, &[holes]),
            MIB,
            2 * MIB
        ));
        // The rest of the page does not count.
        let odd = [WRITE_BACK | 0xf00, ((1 << 39) - GIB) | 0x7ff | VALID];
        assert!(are_write_back(&registers(UNCACHED, &[odd]), MIB, GIB));
    }

    /// Each range, and each address, by the rule itself.
    #[test]
    fn what_is_found_of_stretches_holds_for_each_of_their_pages() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        let (mut good, mut bad) = (0, 0);
        for _ in 0..2000 {
            let mut ranges = Vec::new();
            for _ in 0..next(4) {
                let kind = if next(3) == 0 { UNCACHED } else { WRITE_BACK };
                let length = 4096 << next(5);
                let mask = (4096 << 6) - length;
                ranges.push([next(64) << 12 | kind, mask | VALID]);
            }
            let default = if next(2) == 0 { UNCACHED } else { WRITE_BACK };
            let start = (64 + next(64)) << 12;
            let end = start + (next(64) << 12);
            let is_right = |at: u64| {
                let covers = |&&[base, mask]: &&[u64; 2]| (at ^ base) & mask & ADDRESS == 0;
                let kinds: Vec<u64> = ranges
                    .iter()
                    .filter(covers)
                    .map(|[base, _]| base & TYPE)
                    .collect();
                kinds.iter().all(|&kind| kind == WRITE_BACK)
                    && (!kinds.is_empty() || default == WRITE_BACK)
            };
            let expected = (start..end).step_by(4096).all(is_right);
            let found = are_write_back(&registers(default, &ranges), start, end);
            assert_eq!(found, expected, "{default} {ranges:x?} {start:#x} {end:#x}");
            *if expected { &mut good } else { &mut bad } += 1;
        }
        assert!(good > 300 && bad > 300, "{good} {bad}");
    }

    #[test]
    fn registers_that_are_off_are_told() {
        assert!(are_on(&registers(UNCACHED, &[])));
        assert!(!are_on(&|_| WRITE_BACK | 1 << 10));
    }
}
