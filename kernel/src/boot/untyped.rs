//! The initial untyped memory: every physical address that is nobody's, in the order and cut as
//! the ABI says (06, section 5).

use sandglass_abi::object::{MAX_UNTYPED_BITS, MIN_UNTYPED_BITS};

use super::{List, Range, MAX_RAM, MAX_RESERVED};
use crate::arch::abi::boot::ALIAS;

/// Most ranges between which there are gaps: RAM, what the machine reserves, the root task.
const MAX_TAKEN: usize = MAX_RAM + MAX_RESERVED + 1;

/// Cuts a range of physical addresses into naturally aligned powers of two, ascending.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    rest: Range,
}

impl Pieces {
    pub fn of(range: Range) -> Self {
        Pieces { rest: range }
    }
}

/// A piece: its start, and log2 of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub start: u64,
    pub bits: u8,
}

impl Iterator for Pieces {
    type Item = Piece;

    /// Ends: each step makes the rest shorter by its largest aligned power of two.
    #[inline(never)]
    fn next(&mut self) -> Option<Piece> {
        while let Some(largest) = self
            .rest
            .end
            .saturating_sub(self.rest.start)
            .checked_ilog2()
        {
            let start = self.rest.start;
            let bits = largest
                .min(start.wrapping_add(ALIAS).trailing_zeros())
                .min(MAX_UNTYPED_BITS);
            self.rest.start = start.wrapping_add(1 << bits);
            if bits >= MIN_UNTYPED_BITS {
                return Some(Piece {
                    start,
                    bits: bits as u8,
                });
            }
        }
        None
    }
}

/// The gaps between what is taken, ascending, up to the end of what is handed out.
pub struct Gaps {
    taken: List<Range, MAX_TAKEN>,
    from: u64,
    top: u64,
}

impl Gaps {
    /// The addresses below `top` that are in none of the ranges `taken`.
    pub fn between(taken: impl Iterator<Item = Range>, top: u64) -> Self {
        let mut list = List::new();
        for range in taken {
            // There is room for all that the boot finds.
            list.push(range).unwrap_or(());
        }
        Gaps {
            taken: list,
            from: 0,
            top,
        }
    }
}

impl Iterator for Gaps {
    type Item = Range;

    /// Ends: each step passes at least one of the taken ranges, or reaches the top.
    fn next(&mut self) -> Option<Range> {
        while self.from < self.top {
            let next = self.taken.iter().filter(|range| range.end > self.from);
            let next = next.min_by_key(|range| range.start);
            let (gap_end, next_from) = match next {
                Some(range) => (range.start.min(self.top), range.end),
                None => (self.top, self.top),
            };
            let gap = Range {
                start: self.from,
                end: gap_end,
            };
            self.from = next_from;
            if !gap.is_empty() {
                return Some(gap);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn pieces(start: u64, end: u64) -> Vec<(u64, u8)> {
        Pieces::of(Range { start, end })
            .map(|piece| (piece.start, piece.bits))
            .collect()
    }

    /// The lists of the ABI page (06, sections 5 and 5.1).
    #[test]
    fn ranges_are_cut_as_the_abi_says() {
        assert_eq!(pieces(0, 1 << 20), [(0, 20)]);
        assert_eq!(
            pieces(0xfee0_1000, 0xff00_0000)[..4],
            [
                (0xfee0_1000, 12),
                (0xfee0_2000, 13),
                (0xfee0_4000, 14),
                (0xfee0_8000, 15)
            ]
        );
        let msi = pieces(0xffff_f000, 0xffff_fff8);
        assert_eq!(msi.first(), Some(&(0xffff_f000, 11)));
        assert_eq!(
            msi.last(),
            Some(&(0xffff_ffe0, 4)),
            "the last 8 bytes are dropped"
        );
        assert_eq!(
            pieces(0x40_0000_0000, 1 << 47),
            [
                (0x40_0000_0000, 38),
                (0x80_0000_0000, 46),
                (0x4080_0000_0000, 45),
                (0x6080_0000_0000, 44),
                (0x7080_0000_0000, 43),
                (0x7880_0000_0000, 42),
                (0x7c80_0000_0000, 41),
                (0x7e80_0000_0000, 40),
                (0x7f80_0000_0000, 39),
            ]
        );
    }

    /// Nothing is lost but what is below the least size, at either end.
    #[test]
    fn pieces_cover_a_range() {
        for (start, end) in [
            (0, 0),
            (8, 24),
            (8, 40),
            (0x1010, 0x7_fff8),
            (1 << 20, 0x1fff_d000),
        ] {
            let mut at = u64::next_multiple_of(start, 16);
            for (piece, bits) in pieces(start, end) {
                assert_eq!((piece, piece % (1 << bits)), (at, 0));
                at += 1 << bits;
            }
            assert_eq!(at.max(16), (end & !15).max(16), "{start:#x}..{end:#x}");
        }
    }

    #[test]
    fn gaps_are_what_nobody_has() {
        let taken = [
            (0x3000, 0x4000),
            (0x1000, 0x2000),
            (0x3800, 0x5000),
            (0x9000, 0x9000),
        ];
        let taken = taken.map(|(start, end)| Range { start, end });
        let gaps: Vec<_> = Gaps::between(taken.into_iter(), 0x6000)
            .map(|gap| (gap.start, gap.end))
            .collect();
        assert_eq!(gaps, [(0, 0x1000), (0x2000, 0x3000), (0x5000, 0x6000)]);
        assert_eq!(Gaps::between([].into_iter(), 16).count(), 1);
    }
}
