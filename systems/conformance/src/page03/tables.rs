//! 03, sections 8.2 and 9.2: what paging structures have in common on every architecture; the checks are listed in `arch`.

use crate::prelude::*;

use super::common::{refuses_other_labels, truncated, works_in_first_phase, works_without_answer};
use super::levels::{no_roots, root_above, Level, LEVELS, VADDR};
use super::stale::{replaced_root, stale_root};

/// For each level: Map of a new structure that nothing keeps from being mapped.
pub fn scenes(f: &mut Fixture) -> Result<Vec<(Level, Invocation)>, Failure> {
    let mut scenes = vec![];
    for (depth, level) in LEVELS.into_iter().enumerate() {
        let root = root_above(f, depth)?;
        scenes.push((level, level.map(f, root)?));
    }
    Ok(scenes)
}

pub fn other_labels(f: &mut Fixture) -> TestResult {
    for (level, map) in scenes(f)? {
        refuses_other_labels(&map, &[level.map, level.unmap])?;
    }
    Ok(())
}

pub fn map_truncated(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        truncated(&map)?;
        map.expect_ok(&[])?;
        // Before it is mapped already.
        truncated(&map)?;
    }
    Ok(())
}

pub fn map_mapped(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        map.expect_ok(&[])?;
        map.expect_error(InvalidCapability, &[0])?;
        map.with_word(0, VADDR + (1 << 39))
            .expect_error(InvalidCapability, &[0])?;
        // Before the root.
        map.with_cap(0, f.me)
            .expect_error(InvalidCapability, &[0])?;
    }
    Ok(())
}

pub fn map_no_root(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        for root in no_roots(f)? {
            let map = map.with_cap(0, root);
            map.expect_error(InvalidCapability, &[1])?;
            // Before the address.
            map.with_word(0, u64::MAX)
                .expect_error(InvalidCapability, &[1])?;
        }
        map.expect_ok(&[])?;
    }
    Ok(())
}

pub fn map_stale(f: &mut Fixture) -> TestResult {
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    for level in LEVELS {
        let stale = stale_root(f)?;
        let map = level.map(f, stale)?;
        map.expect_error(FailedLookup, &[0, invalid_root])?;
        // After the address.
        map.with_word(0, 1 << 47)
            .expect_error(InvalidArgument, &[0])?;
        let replaced = replaced_root(f)?;
        map.with_cap(0, replaced)
            .expect_error(InvalidCapability, &[1])?;
    }
    Ok(())
}

pub fn unmap_copies(f: &mut Fixture) -> TestResult {
    for (level, map) in scenes(f)? {
        map.expect_ok(&[])?;
        let copy = f.copy(map.cap)?;
        for cap in [map.cap, copy] {
            level.unmap(cap).expect_error(RevokeFirst, &[])?;
        }
        f.slot_of(copy).delete()?;
        level.unmap(map.cap).expect_ok(&[])?;
        map.expect_ok(&[])?;
    }
    Ok(())
}

pub fn unmap_clears(f: &mut Fixture) -> TestResult {
    let missing = LookupFailureType::MissingCapability as u64;
    for (depth, (level, map)) in scenes(f)?.into_iter().enumerate() {
        let root = map.caps[0];
        map.expect_ok(&[])?;
        let below: Vec<Invocation> = LEVELS[depth + 1..]
            .iter()
            .map(|below| below.map(f, root))
            .collect::<Result<_, Failure>>()?;
        for map in &below {
            map.expect_ok(&[])?;
        }
        let page = f.frame(FrameSize::Small)?;
        let page = Invocation::new(page, arch_label::PAGE_MAP, &[VADDR, 3, 0], &[root]);
        page.expect_ok(&[])?;
        level.unmap(map.cap).expect_ok(&[])?;
        let bits = u64::from(level.coverage);
        page.expect_error(FailedLookup, &[0, missing, bits])?;
        // Mapped again, it is empty.
        map.expect_ok(&[])?;
        if let Some(next) = LEVELS.get(depth + 1) {
            let bits = u64::from(next.coverage);
            page.expect_error(FailedLookup, &[0, missing, bits])?;
        }
    }
    Ok(())
}

pub fn unmap_unmapped(f: &mut Fixture) -> TestResult {
    for (level, map) in scenes(f)? {
        level.unmap(map.cap).expect_ok(&[])?;
        map.expect_ok(&[])?;
        level.unmap(map.cap).expect_ok(&[])?;
        level.unmap(map.cap).expect_ok(&[])?;
        // Elsewhere, and in another address space.
        let other = root_above(f, 2)?;
        if level.coverage == 21 {
            map.with_cap(0, other).expect_ok(&[])?;
        }
    }
    Ok(())
}

/// Unmapping the structure above leaves the capability of the one below mapped, as it says; its
/// own Unmap must not take away what is mapped in its place since.
pub fn unmap_successor(f: &mut Fixture) -> TestResult {
    let root = root_above(f, 1)?;
    let directory = LEVELS[1].map(f, root)?;
    directory.expect_ok(&[])?;
    let (old, new) = (LEVELS[2].map(f, root)?, LEVELS[2].map(f, root)?);
    old.expect_ok(&[])?;
    LEVELS[1].unmap(directory.cap).expect_ok(&[])?;
    directory.expect_ok(&[])?;
    old.expect_error(InvalidCapability, &[0])?;
    new.expect_ok(&[])?;
    LEVELS[2].unmap(old.cap).expect_ok(&[])?;
    old.expect_error(DeleteFirst, &[])
}

pub fn without_answer(f: &mut Fixture) -> TestResult {
    for (level, map) in scenes(f)? {
        let unmap = level.unmap(map.cap);
        let mapped = |_: &mut Fixture| {
            let again = map.call();
            unmap.expect_ok(&[])?;
            Ok(again.label == InvalidCapability as u64)
        };
        works_without_answer(f, &map, mapped)?;
        works_in_first_phase(f, &map, mapped)?;
        map.expect_ok(&[])?;
        let unmapped = |_: &mut Fixture| Ok(map.call().label == 0);
        works_without_answer(f, &unmap, unmapped)?;
        works_in_first_phase(f, &unmap, unmapped)?;
    }
    Ok(())
}
