//! Which memory the kernel can hand out, of what a device tree tells: ranges of any alignment, in any order, that may
//! overlap.

use super::PAGE_SIZE;
use crate::arch::Range;

/// The first page: nothing of the kernel's is at address 0, which names nothing, and so it has no use for the page.
pub const FIRST_PAGE: Range = Range {
    start: 0,
    end: PAGE_SIZE,
};

/// The whole pages inside `piece` below `limit`, but for [`FIRST_PAGE`].
pub fn whole_pages(piece: Range, limit: u64) -> Range {
    let start = piece.start.checked_next_multiple_of(PAGE_SIZE);
    Range {
        start: start.unwrap_or(u64::MAX).max(FIRST_PAGE.end),
        end: piece.end.min(limit) & !(PAGE_SIZE - 1),
    }
}

/// The whole pages around `range`.
pub fn around(range: Range) -> Range {
    Range {
        start: range.start & !(PAGE_SIZE - 1),
        end: range
            .end
            .checked_next_multiple_of(PAGE_SIZE)
            .unwrap_or(!(PAGE_SIZE - 1)),
    }
}

/// The lowest range from `from` on that is in `pieces` and in none of `holes`, as long as it is without a break; so that each
/// address comes once, when the end of one is where the next begins to be looked for.
///
/// Of `pieces` and `holes`, those that are empty count for nothing.
pub fn lowest(pieces: &[Range], holes: &[Range], from: u64) -> Option<Range> {
    let mut start = from;
    // Each turn but the last goes on behind a piece or a hole.
    loop {
        let found = least(pieces, |piece| piece.end > start)?.max(start);
        let hole = holes
            .iter()
            .find(|hole| hole.start <= found && found < hole.end);
        match hole {
            Some(hole) => start = hole.end,
            None => {
                start = found;
                break;
            }
        }
    }
    let mut end = start;
    // Each turn but the last goes on to the end of another piece.
    while let Some(piece) = pieces
        .iter()
        .find(|piece| piece.start <= end && end < piece.end)
    {
        end = piece.end;
    }
    let cut = least(holes, |hole| hole.start > start);
    Some(Range {
        start,
        end: cut.map_or(end, |cut| end.min(cut)),
    })
}

/// Where the first of the `ranges` begins that are not empty and `counts`.
fn least(ranges: &[Range], counts: impl Fn(&Range) -> bool) -> Option<u64> {
    let counted = ranges.iter().filter(|it| !it.is_empty() && counts(it));
    counted.map(|it| it.start).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    fn range((start, length): (u64, u64)) -> Range {
        Range {
            start,
            end: start + length,
        }
    }

    fn all(pieces: &[Range], holes: &[Range]) -> Vec<Range> {
        let mut from = 0;
        let mut found = Vec::new();
        while let Some(next) = lowest(pieces, holes, from) {
            from = next.end;
            found.push(next);
        }
        found
    }

    proptest! {
        /// Whatever the pieces and holes are: what comes out ascends, does not overlap, and is what is in a piece and in
        /// no hole.
        #[test]
        fn each_address_of_a_piece_that_is_in_no_hole_comes_once(
            pieces in prop::collection::vec((0u64..50, 0u64..12), 0..6),
            holes in prop::collection::vec((0u64..50, 0u64..6), 0..6),
        ) {
            let pieces: Vec<Range> = pieces.into_iter().map(range).collect();
            let holes: Vec<Range> = holes.into_iter().map(range).collect();
            let has = |list: &[Range], at: u64| list.iter().any(|it| it.start <= at && at < it.end);
            let right: Vec<u64> = (0..64).filter(|&at| has(&pieces, at) && !has(&holes, at)).collect();
            let found: Vec<u64> = all(&pieces, &holes).iter().flat_map(|it| it.start..it.end).collect();
            prop_assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
            prop_assert_eq!(found, right);
        }
    }

    #[test]
    fn pages_are_whole_below_the_limit_and_not_at_address_0() {
        const PAGE: u64 = PAGE_SIZE;
        const LIMIT: u64 = 9 * PAGE;
        let pages = |start, end| whole_pages(Range { start, end }, LIMIT + 1);
        let range = |start, end| Range { start, end };
        assert_eq!(pages(PAGE + 1, 4 * PAGE - 1), range(2 * PAGE, 3 * PAGE));
        assert_eq!(pages(0, 4 * PAGE), range(PAGE, 4 * PAGE));
        assert!(pages(0, PAGE).is_empty());
        assert!(pages(PAGE + 1, 2 * PAGE).is_empty());
        assert_eq!(pages(0, u64::MAX), range(PAGE, LIMIT));
        assert!(pages(u64::MAX - 1, u64::MAX).is_empty());
    }
}
