//! 03, section 8.3: Page_Map, Page_Unmap and Page_GetAddress.

use crate::page03::common::{
    refuses_other_labels, truncated, works_in_first_phase, works_without_answer,
};
use crate::page03::levels::{root_above, LEVELS, VADDR};
use crate::page03::pages::{self, frame, map, scenes, unmap, SIZES};
use crate::page03::stale::{replaced_root, stale_root};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/8.3/other-labels", other_labels),
    check("03/8.3/map-1-truncated", pages::map_truncated),
    check("03/8.3/map-2-no-assigned-root", pages::map_no_root),
    check("03/8.3/map-3-of-a-mapped-page", map_mapped),
    check("03/8.3/map-3-addresses", map_addresses),
    check("03/8.3/map-4-stale-identifiers", map_stale),
    check("03/8.3/map-5-alignment", pages::map_alignment),
    check("03/8.3/map-6-missing-tables", map_missing),
    check("03/8.3/map-7-tables-in-the-way", map_in_the_way),
    check("03/8.3/map-order-of-the-checks", map_order),
    check("03/8.3/map-overwrites-another-page", pages::map_overwrites),
    check("03/8.3/map-again-changes-the-rights", pages::map_again),
    check("03/8.3/unmap-always-succeeds", pages::unmap_succeeds),
    check("03/8.3/unmap-leaves-another-page", pages::unmap_other),
    check("03/8.3/get-address", pages::get_address),
    check("03/8.3/by-send-and-in-a-first-phase", without_answer),
];

fn other_labels(f: &mut Fixture) -> TestResult {
    let own = [
        arch_label::PAGE_MAP,
        arch_label::PAGE_UNMAP,
        // A number that no message has, where the profile has none.
        arch_label::PAGE_MAP_IO,
        arch_label::PAGE_GET_ADDRESS,
    ];
    for (_, map) in scenes(f)? {
        refuses_other_labels(&map, &own)?;
    }
    Ok(())
}

fn map_mapped(f: &mut Fixture) -> TestResult {
    for (bits, map) in scenes(f)? {
        map.expect_ok(&[])?;
        let other = f.vspace()?.root();
        let elsewhere = map.with_cap(0, other);
        elsewhere.expect_error(InvalidCapability, &[1])?;
        // Before the address.
        elsewhere
            .with_word(0, VADDR + 1)
            .expect_error(InvalidCapability, &[1])?;
        for vaddr in [VADDR + (1 << bits), VADDR + 1, 0, u64::MAX] {
            map.with_word(0, vaddr)
                .expect_error(InvalidArgument, &[0])?;
        }
        // A copy is not mapped.
        let copy = f.copy(map.cap)?;
        map.on(copy).expect_ok(&[])?;
    }
    Ok(())
}

fn map_addresses(f: &mut Fixture) -> TestResult {
    const END: u64 = 1 << 47;
    for (bits, map) in scenes(f)? {
        let size = 1 << bits;
        let beyond = [
            END,
            1 << 63,
            u64::MAX,
            u64::MAX - size + 1,
            END - size,
            END - 1,
        ];
        for vaddr in beyond {
            map.with_word(0, vaddr)
                .expect_error(InvalidArgument, &[0])?;
        }
        // The last address for a page of this size; its tables are missing.
        let missing = LookupFailureType::MissingCapability as u64;
        map.with_word(0, END - 2 * size)
            .expect_error(FailedLookup, &[0, missing, 39])?;
        map.with_word(0, END - size - 1)
            .expect_error(AlignmentError, &[])?;
    }
    Ok(())
}

fn map_stale(f: &mut Fixture) -> TestResult {
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    let (stale, replaced) = (stale_root(f)?, replaced_root(f)?);
    for (_, map) in scenes(f)? {
        // `replaced_root` gave the number of the pool to another.
        let map = map.with_cap(0, stale);
        map.expect_error(InvalidCapability, &[1])?;
        map.with_cap(0, replaced)
            .expect_error(InvalidCapability, &[1])?;
        let gone = map.with_cap(0, stale_root(f)?);
        gone.expect_error(FailedLookup, &[0, invalid_root])?;
        // After the address, before the alignment.
        gone.with_word(0, 1 << 47)
            .expect_error(InvalidArgument, &[0])?;
        gone.with_word(0, VADDR + 1)
            .expect_error(FailedLookup, &[0, invalid_root])?;
    }
    Ok(())
}

fn map_missing(f: &mut Fixture) -> TestResult {
    let missing = LookupFailureType::MissingCapability as u64;
    for (kind, _, levels) in SIZES {
        let frame = frame(f, kind)?;
        for (present, first_missing) in LEVELS[..levels].iter().enumerate() {
            let map = map(frame, root_above(f, present)?);
            let bits = u64::from(first_missing.coverage);
            map.expect_error(FailedLookup, &[0, missing, bits])?;
        }
    }
    // A larger page where a table should be.
    for (large, small, levels, bits) in [
        (ObjectType::LargePage, ObjectType::Page, 2, 21),
        (ObjectType::HugePage, ObjectType::Page, 1, 30),
        (ObjectType::HugePage, ObjectType::LargePage, 1, 30),
    ] {
        let root = root_above(f, levels)?;
        map(frame(f, large)?, root).expect_ok(&[])?;
        map(frame(f, small)?, root).expect_error(FailedLookup, &[0, missing, bits])?;
    }
    // The same for a page table, and a directory.
    let root = root_above(f, 1)?;
    map(frame(f, ObjectType::HugePage)?, root).expect_ok(&[])?;
    LEVELS[2]
        .map(f, root)?
        .expect_error(FailedLookup, &[0, missing, 30])?;
    LEVELS[1].map(f, root)?.expect_error(DeleteFirst, &[])
}

fn map_in_the_way(f: &mut Fixture) -> TestResult {
    for (kind, levels) in [(ObjectType::LargePage, 3), (ObjectType::HugePage, 2)] {
        let root = root_above(f, levels)?;
        map(frame(f, kind)?, root).expect_error(DeleteFirst, &[])?;
    }
    Ok(())
}

fn map_order(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        // Misaligned and beyond the end; misaligned and without tables.
        map.with_word(0, (1 << 47) + 1)
            .expect_error(InvalidArgument, &[0])?;
        map.with_word(0, (1 << 39) + 1)
            .expect_error(AlignmentError, &[])?;
        let all = map.with_cap(0, f.me).with_word(0, u64::MAX);
        all.expect_error(InvalidCapability, &[1])?;
        truncated(&all)?;
    }
    Ok(())
}

fn without_answer(f: &mut Fixture) -> TestResult {
    for (bits, map) in scenes(f)? {
        let unmap = unmap(map.cap);
        // A mapped page is refused another address.
        let is_mapped = move |map: &Invocation| {
            let elsewhere = map.with_word(0, VADDR + (1 << bits)).call();
            elsewhere.label == InvalidArgument as u64
        };
        let mapped = |_: &mut Fixture| {
            let mapped = is_mapped(&map);
            unmap.expect_ok(&[])?;
            Ok(mapped)
        };
        works_without_answer(f, &map, mapped)?;
        works_in_first_phase(f, &map, mapped)?;
        let unmapped = |_: &mut Fixture| {
            let unmapped = map.with_word(0, VADDR + 1).call().label == AlignmentError as u64;
            map.expect_ok(&[])?;
            Ok(unmapped)
        };
        map.expect_ok(&[])?;
        works_without_answer(f, &unmap, unmapped)?;
        works_in_first_phase(f, &unmap, unmapped)?;
    }
    Ok(())
}
