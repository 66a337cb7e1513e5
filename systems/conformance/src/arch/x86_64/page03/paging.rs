//! 03, sections 8.1 and 8.2: the root and the paging structures below it.

use crate::prelude::*;

use super::common::{refuses_other_labels, truncated, works_in_first_phase, works_without_answer};
use super::stale::{replaced_root, stale_root};

pub const CHECKS: &[Check] = &[
    check("03/8.1/every-label-is-illegal", root_labels),
    check("03/8.2/map-1-other-labels", other_labels),
    check("03/8.2/map-2-truncated", map_truncated),
    check("03/8.2/map-3-already-mapped", map_mapped),
    check("03/8.2/map-4-no-assigned-root", map_no_root),
    check("03/8.2/map-5-addresses", map_addresses),
    check("03/8.2/map-6-stale-identifiers", map_stale),
    check("03/8.2/map-7-missing-parents", map_missing),
    check("03/8.2/map-8-entry-in-use", map_in_use),
    check("03/8.2/map-order-of-the-checks", map_order),
    check("03/8.2/unmap-wants-the-final-capability", unmap_copies),
    check("03/8.2/unmap-removes-and-clears", unmap_clears),
    check("03/8.2/unmap-of-what-is-not-mapped", unmap_unmapped),
    check("03/8.2/unmap-leaves-a-successor", unmap_successor),
    check("03/8.2/by-send-and-in-a-first-phase", without_answer),
];

/// A kind of paging structure.
#[derive(Clone, Copy)]
pub struct Level {
    pub kind: ObjectType,
    pub map: u64,
    pub unmap: u64,
    /// Log2 of the bytes that one covers.
    pub coverage: u32,
}

/// From the root down.
pub const LEVELS: [Level; 3] = [
    Level {
        kind: ObjectType::Pdpt,
        map: arch_label::PDPT_MAP,
        unmap: arch_label::PDPT_UNMAP,
        coverage: 39,
    },
    Level {
        kind: ObjectType::PageDirectory,
        map: arch_label::PAGE_DIRECTORY_MAP,
        unmap: arch_label::PAGE_DIRECTORY_UNMAP,
        coverage: 30,
    },
    Level {
        kind: ObjectType::PageTable,
        map: arch_label::PAGE_TABLE_MAP,
        unmap: arch_label::PAGE_TABLE_UNMAP,
        coverage: 21,
    },
];

/// Where the checks map, aligned for every level.
pub const VADDR: u64 = 0x1280_0000_0000;

impl Level {
    /// Maps a new structure at [`VADDR`].
    pub fn map(self, f: &mut Fixture, root: CPtr) -> Result<Invocation, Failure> {
        let structure: CPtr = f.make(self.kind)?;
        Ok(Invocation::new(structure, self.map, &[VADDR, 0], &[root]))
    }

    fn unmap(self, structure: CPtr) -> Invocation {
        Invocation::new(structure, self.unmap, &[], &[])
    }
}

/// A root whose structures above `depth` levels are there at [`VADDR`].
pub fn root_above(f: &mut Fixture, depth: usize) -> Result<CPtr, Failure> {
    let root = f.vspace()?.root().cptr();
    for level in &LEVELS[..depth] {
        level.map(f, root)?.expect_ok(&[])?;
    }
    Ok(root)
}

/// For each level: Map of a new structure that nothing keeps from being mapped.
fn scenes(f: &mut Fixture) -> Result<Vec<(Level, Invocation)>, Failure> {
    let mut scenes = vec![];
    for (depth, level) in LEVELS.into_iter().enumerate() {
        let root = root_above(f, depth)?;
        scenes.push((level, level.map(f, root)?));
    }
    Ok(scenes)
}

fn root_labels(f: &mut Fixture) -> TestResult {
    let roots = [f.vspace()?.root(), f.pml4()?];
    for root in roots {
        let any = Invocation::new(root, label::INVALID, &[VADDR, 3, 0], &[root.cptr(); 3]);
        refuses_other_labels(&any, &[])?;
    }
    Ok(())
}

fn other_labels(f: &mut Fixture) -> TestResult {
    for (level, map) in scenes(f)? {
        refuses_other_labels(&map, &[level.map, level.unmap])?;
    }
    Ok(())
}

fn map_truncated(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        truncated(&map)?;
        map.expect_ok(&[])?;
        // Before it is mapped already.
        truncated(&map)?;
    }
    Ok(())
}

fn map_mapped(f: &mut Fixture) -> TestResult {
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

/// What is no root with an identifier.
pub fn no_roots(f: &mut Fixture) -> Result<[CPtr; 4], Failure> {
    Ok([
        f.null()?,
        f.pml4()?.cptr(),
        f.make(ObjectType::Pdpt)?,
        f.me.cptr(),
    ])
}

fn map_no_root(f: &mut Fixture) -> TestResult {
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

fn map_stale(f: &mut Fixture) -> TestResult {
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

fn unmap_copies(f: &mut Fixture) -> TestResult {
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

fn unmap_clears(f: &mut Fixture) -> TestResult {
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

fn unmap_unmapped(f: &mut Fixture) -> TestResult {
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
fn unmap_successor(f: &mut Fixture) -> TestResult {
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

fn without_answer(f: &mut Fixture) -> TestResult {
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
