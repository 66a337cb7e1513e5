//! 03, section 9.2: page tables.

use crate::page03::common::truncated;
use crate::page03::levels::{root_above, LEVELS, VADDR};
use crate::page03::stale::stale_root;
use crate::page03::tables::{self, scenes};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/9.2/map-1-other-labels", tables::other_labels),
    check("03/9.2/map-2-truncated", tables::map_truncated),
    check("03/9.2/map-3-already-mapped", tables::map_mapped),
    check("03/9.2/map-4-no-assigned-root", tables::map_no_root),
    check("03/9.2/map-5-addresses", map_addresses),
    check("03/9.2/map-6-stale-identifiers", tables::map_stale),
    check("03/9.2/map-7-no-level-left", map_in_use),
    check("03/9.2/map-order-of-the-checks", map_order),
    check(
        "03/9.2/each-is-mapped-at-the-first-missing-level",
        levels_in_order,
    ),
    check(
        "03/9.2/unmap-wants-the-final-capability",
        tables::unmap_copies,
    ),
    check("03/9.2/unmap-removes-and-clears", tables::unmap_clears),
    check("03/9.2/unmap-of-what-is-not-mapped", tables::unmap_unmapped),
    check("03/9.2/unmap-leaves-a-successor", tables::unmap_successor),
    check(
        "03/9.2/by-send-and-in-a-first-phase",
        tables::without_answer,
    ),
];

fn map_addresses(f: &mut Fixture) -> TestResult {
    for (level, map) in scenes(f)? {
        for vaddr in [1 << 47, (1 << 47) + 1, 1 << 63, u64::MAX] {
            map.with_word(0, vaddr)
                .expect_error(InvalidArgument, &[0])?;
        }
        // Any address that is covered will do.
        let last = VADDR + (1 << level.coverage) - 1;
        map.with_word(0, last).expect_ok(&[])?;
    }
    // Up to the last address of users.
    let root = root_above(f, 0)?;
    let table = LEVELS[0].map(f, root)?;
    table.with_word(0, (1 << 47) - 1).expect_ok(&[])
}

/// All three are there, or the entry where the walk ends is a page.
fn map_in_use(f: &mut Fixture) -> TestResult {
    let root = root_above(f, 3)?;
    LEVELS[2].map(f, root)?.expect_error(DeleteFirst, &[])?;
    let (root, page) = (root_above(f, 2)?, f.frame(FrameSize::Large)?);
    Invocation::new(page, arch_label::PAGE_MAP, &[VADDR, 3, 3], &[root]).expect_ok(&[])?;
    LEVELS[2].map(f, root)?.expect_error(DeleteFirst, &[])?;
    // Elsewhere in the same table there is room.
    let next = LEVELS[2].map(f, root)?;
    next.with_word(0, VADDR + (1 << 21)).expect_ok(&[])
}

fn map_order(f: &mut Fixture) -> TestResult {
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    // A table that is mapped, and a root that is none, and a wrong address.
    for (_, map) in scenes(f)? {
        map.expect_ok(&[])?;
        let all = map.with_cap(0, f.me).with_word(0, u64::MAX);
        all.expect_error(InvalidCapability, &[0])?;
        truncated(&all)?;
    }
    // The address before the identifier.
    let stale = stale_root(f)?;
    let map = LEVELS[2].map(f, stale)?;
    map.with_word(0, 1 << 47)
        .expect_error(InvalidArgument, &[0])?;
    map.expect_error(FailedLookup, &[0, invalid_root])
}

/// How far the levels are there is what a page's Map says.
fn levels_in_order(f: &mut Fixture) -> TestResult {
    let missing = LookupFailureType::MissingCapability as u64;
    let (root, frame) = (root_above(f, 0)?, f.frame(FrameSize::Small)?);
    let page = Invocation::new(frame, arch_label::PAGE_MAP, &[VADDR, 3, 3], &[root]);
    for bits in [39, 30, 21] {
        page.expect_error(FailedLookup, &[0, missing, bits])?;
        LEVELS[0].map(f, root)?.expect_ok(&[])?;
    }
    page.expect_ok(&[])
}
