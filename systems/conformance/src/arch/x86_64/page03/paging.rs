//! 03, sections 8.1 and 8.2: the root and the paging structures below it.

use crate::page03::common::{refuses_other_labels, truncated};
use crate::page03::levels::{root_above, LEVELS, VADDR};
use crate::page03::stale::stale_root;
use crate::page03::tables::{self, scenes};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/8.1/every-label-is-illegal", root_labels),
    check("03/8.2/map-1-other-labels", tables::other_labels),
    check("03/8.2/map-2-truncated", tables::map_truncated),
    check("03/8.2/map-3-already-mapped", tables::map_mapped),
    check("03/8.2/map-4-no-assigned-root", tables::map_no_root),
    check("03/8.2/map-5-addresses", map_addresses),
    check("03/8.2/map-6-stale-identifiers", tables::map_stale),
    check("03/8.2/map-7-missing-parents", map_missing),
    check("03/8.2/map-8-entry-in-use", map_in_use),
    check("03/8.2/map-order-of-the-checks", map_order),
    check(
        "03/8.2/unmap-wants-the-final-capability",
        tables::unmap_copies,
    ),
    check("03/8.2/unmap-removes-and-clears", tables::unmap_clears),
    check("03/8.2/unmap-of-what-is-not-mapped", tables::unmap_unmapped),
    check("03/8.2/unmap-leaves-a-successor", tables::unmap_successor),
    check(
        "03/8.2/by-send-and-in-a-first-phase",
        tables::without_answer,
    ),
];

fn root_labels(f: &mut Fixture) -> TestResult {
    let roots = [f.vspace()?.root(), f.pml4()?];
    for root in roots {
        let any = Invocation::new(root, label::INVALID, &[VADDR, 3, 0], &[root.cptr(); 3]);
        refuses_other_labels(&any, &[])?;
    }
    Ok(())
}

fn map_addresses(f: &mut Fixture) -> TestResult {
    for (level, map) in scenes(f)? {
        for vaddr in [1 << 47, (1 << 47) + 1, 1 << 63, u64::MAX] {
            map.with_word(0, vaddr)
                .expect_error(InvalidArgument, &[0])?;
        }
        // Any address that is covered will do.
        let last = VADDR + (1 << level.coverage) - 1;
        map.with_word(0, last).expect_ok(&[])?;
        level.map(f, map.caps[0])?.expect_error(DeleteFirst, &[])?;
    }
    // Up to the last address of users.
    let root = root_above(f, 0)?;
    let pdpt = LEVELS[0].map(f, root)?;
    pdpt.with_word(0, (1 << 47) - 1).expect_ok(&[])
}

fn map_missing(f: &mut Fixture) -> TestResult {
    let missing = LookupFailureType::MissingCapability as u64;
    for (depth, level) in LEVELS.into_iter().enumerate() {
        for (present, first_missing) in LEVELS[..depth].iter().enumerate() {
            let root = root_above(f, present)?;
            let bits = u64::from(first_missing.coverage);
            level
                .map(f, root)?
                .expect_error(FailedLookup, &[0, missing, bits])?;
        }
    }
    Ok(())
}

fn map_in_use(f: &mut Fixture) -> TestResult {
    for (level, map) in scenes(f)? {
        map.expect_ok(&[])?;
        level.map(f, map.caps[0])?.expect_error(DeleteFirst, &[])?;
    }
    // A large page is in the way of a page table.
    let (root, page) = (root_above(f, 2)?, f.frame(FrameSize::Large)?);
    Invocation::new(page, arch_label::PAGE_MAP, &[VADDR, 3, 0], &[root]).expect_ok(&[])?;
    LEVELS[2].map(f, root)?.expect_error(DeleteFirst, &[])
}

fn map_order(f: &mut Fixture) -> TestResult {
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    let missing = LookupFailureType::MissingCapability as u64;
    // A structure that is mapped, and a root that is none, and a wrong address.
    for (_, map) in scenes(f)? {
        map.expect_ok(&[])?;
        let all = map.with_cap(0, f.me).with_word(0, u64::MAX);
        all.expect_error(InvalidCapability, &[0])?;
        truncated(&all)?;
    }
    // The identifier before the parents.
    let stale = stale_root(f)?;
    LEVELS[2]
        .map(f, stale)?
        .expect_error(FailedLookup, &[0, invalid_root])?;
    // The first missing parent.
    let empty = root_above(f, 0)?;
    LEVELS[2]
        .map(f, empty)?
        .expect_error(FailedLookup, &[0, missing, 39])
}
