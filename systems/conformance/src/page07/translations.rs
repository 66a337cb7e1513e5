//! 07, section 9: what a thread sees at once when translations change that it has just used.

use sandglass::cap::Pml4;

use super::scene::{
    add_table, add_tables, frame_of, map, map_at, marked, spaces, unmap, unmap_table, READ, SIZES,
    VADDR,
};
use super::visitor::{absent, forbidden, Seen, Visitor, WRITE};
use crate::page03::levels::LEVELS;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/9/after-unmap-accesses-fault", unmapped),
    check("07/9/after-deletion-accesses-fault", deleted),
    check("07/9/after-revocation-accesses-fault", revoked),
    check(
        "07/9/after-revoking-the-memory-accesses-fault",
        memory_revoked,
    ),
    check("07/9/fewer-rights-hold-at-once", fewer_rights),
    check("07/9/more-rights-hold-at-once", more_rights),
    check("07/9/an-overwritten-page-is-seen-at-once", overwritten),
    check("07/9/a-new-mapping-is-seen-at-once", new_mapping),
    check(
        "07/9/without-a-structure-accesses-fault",
        structures_unmapped,
    ),
    check(
        "07/9/a-structure-goes-with-its-last-capability",
        structures_deleted,
    ),
    check(
        "07/9/a-replaced-structure-is-seen-at-once",
        structures_replaced,
    ),
    check("07/9/one-page-goes-alone", one_page),
    check(
        "07/9/a-page-goes-with-the-capability-that-mapped-it",
        per_capability,
    ),
];

/// A frame of one of the sizes that is mapped, and a visitor that has just used the mapping.
struct Scene {
    root: Pml4,
    frame: Frame,
    vaddr: u64,
    size: FrameSize,
    visitor: Visitor,
}

impl Scene {
    fn new(f: &mut Fixture, root: Pml4, size: FrameSize, depth: usize) -> Result<Self, Failure> {
        // A PDPT of its own for each size.
        let vaddr = VADDR + ((3 - depth as u64) << 39);
        for &level in &LEVELS[..depth] {
            add_table(f, level, root, vaddr)?;
        }
        let frame = frame_of(f, size)?;
        // What is mapped is a copy, so that the original can revoke it.
        let frame = f.copy(frame)?;
        map_at(frame, root, vaddr).expect_ok(&[])?;
        let visitor = Visitor::new(f, root)?;
        let scene = Self {
            root,
            frame,
            vaddr,
            size,
            visitor,
        };
        scene.expect_there(f)?;
        Ok(scene)
    }

    fn last(&self) -> u64 {
        self.vaddr + self.size.bytes() - 8
    }

    /// Fails unless loads and stores succeed.
    fn expect_there(&self, f: &Fixture) -> TestResult {
        for address in [self.vaddr, self.last()] {
            let seen = self.visitor.load(f, address)?;
            ensure!(matches!(seen, Seen::Word(_)), "{:?}: {seen:x?}", self.size);
            ensure_eq!(self.visitor.store(f, address, 3)?, Seen::Word(3));
        }
        Ok(())
    }

    /// Fails unless loads and stores find nothing mapped.
    fn expect_gone(&self, f: &Fixture) -> TestResult {
        for address in [self.vaddr, self.last()] {
            ensure_eq!(self.visitor.load(f, address)?, absent(address, 0));
            ensure_eq!(self.visitor.store(f, address, 4)?, absent(address, WRITE));
        }
        Ok(())
    }
}

/// For each size, in the check's own address space and in another.
fn scenes(f: &mut Fixture) -> Result<Vec<Scene>, Failure> {
    let mut scenes = vec![];
    for root in spaces(f)? {
        for (size, depth) in SIZES {
            scenes.push(Scene::new(f, root, size, depth)?);
        }
    }
    Ok(scenes)
}

fn unmapped(f: &mut Fixture) -> TestResult {
    for scene in scenes(f)? {
        for _ in 0..2 {
            unmap(scene.frame).expect_ok(&[])?;
            scene.expect_gone(f)?;
            map_at(scene.frame, scene.root, scene.vaddr).expect_ok(&[])?;
            scene.expect_there(f)?;
        }
    }
    Ok(())
}

fn deleted(f: &mut Fixture) -> TestResult {
    for scene in scenes(f)? {
        f.slot_of(scene.frame).delete()?;
        scene.expect_gone(f)?;
    }
    Ok(())
}

fn revoked(f: &mut Fixture) -> TestResult {
    for root in spaces(f)? {
        add_tables(f, root, 3)?;
        let original = marked(f, 5)?;
        let frame = f.copy(original)?;
        map(frame, root).expect_ok(&[])?;
        map_at(original, root, VADDR + 0x1000).expect_ok(&[])?;
        let visitor = Visitor::new(f, root)?;
        for address in [VADDR, VADDR + 0x1000] {
            ensure_eq!(visitor.load(f, address)?, Seen::Word(5));
        }
        f.slot_of(original).revoke()?;
        ensure_eq!(visitor.load(f, VADDR)?, absent(VADDR, 0));
        // The revoked-from capability keeps its own mapping.
        ensure_eq!(visitor.load(f, VADDR + 0x1000)?, Seen::Word(5));
    }
    Ok(())
}

fn memory_revoked(f: &mut Fixture) -> TestResult {
    const PAGES: u64 = 4;
    for root in spaces(f)? {
        add_tables(f, root, 3)?;
        let memory = f.untyped(14)?;
        let slots = f.empty_slots(PAGES)?;
        memory.retype(ObjectType::Page, slots, PAGES)?;
        let visitor = Visitor::new(f, root)?;
        for i in 0..PAGES {
            let slot = boot::CNODE.slot(slots.index() + i);
            let address = VADDR + i * 0x1000;
            map_at(slot.capability(), root, address).expect_ok(&[])?;
            ensure_eq!(visitor.store(f, address, i)?, Seen::Word(i));
        }
        f.slot_of(memory).revoke()?;
        for address in (0..PAGES).map(|i| VADDR + i * 0x1000) {
            ensure_eq!(visitor.load(f, address)?, absent(address, 0));
        }
    }
    Ok(())
}

fn fewer_rights(f: &mut Fixture) -> TestResult {
    for scene in scenes(f)? {
        let map = map_at(scene.frame, scene.root, scene.vaddr);
        for address in [scene.vaddr, scene.last()] {
            map.expect_ok(&[])?;
            scene.expect_there(f)?;
            map.with_word(1, READ).expect_ok(&[])?;
            let store = scene.visitor.store(f, address, 6)?;
            ensure_eq!(store, forbidden(address, WRITE));
            let load = scene.visitor.load(f, address)?;
            ensure!(matches!(load, Seen::Word(_)), "{load:x?}");
            map.with_word(1, 0).expect_ok(&[])?;
            ensure_eq!(scene.visitor.load(f, address)?, forbidden(address, 0));
        }
    }
    Ok(())
}

fn more_rights(f: &mut Fixture) -> TestResult {
    for scene in scenes(f)? {
        let map = map_at(scene.frame, scene.root, scene.vaddr);
        map.with_word(1, 0).expect_ok(&[])?;
        let load = scene.visitor.load(f, scene.vaddr)?;
        ensure_eq!(load, forbidden(scene.vaddr, 0));
        map.with_word(1, READ).expect_ok(&[])?;
        let load = scene.visitor.load(f, scene.vaddr)?;
        ensure!(matches!(load, Seen::Word(_)), "{load:x?}");
        let store = scene.visitor.store(f, scene.vaddr, 1)?;
        ensure_eq!(store, forbidden(scene.vaddr, WRITE));
        map.expect_ok(&[])?;
        scene.expect_there(f)?;
    }
    Ok(())
}

fn overwritten(f: &mut Fixture) -> TestResult {
    for root in spaces(f)? {
        for (size, depth) in [(FrameSize::Small, 3), (FrameSize::Large, 2)] {
            let scene = Scene::new(f, root, size, depth)?;
            let address = scene.last();
            ensure_eq!(scene.visitor.store(f, address, 1)?, Seen::Word(1));
            let other = frame_of(f, size)?;
            map_at(other, root, scene.vaddr).expect_ok(&[])?;
            ensure_eq!(scene.visitor.load(f, address)?, Seen::Word(0));
            ensure_eq!(scene.visitor.store(f, address, 2)?, Seen::Word(2));
            // And back: each kept what was written to it.
            for (frame, word) in [(scene.frame, 1), (other, 2), (scene.frame, 1)] {
                map_at(frame, root, scene.vaddr).expect_ok(&[])?;
                ensure_eq!(scene.visitor.load(f, address)?, Seen::Word(word));
            }
            // The overwritten one's unmapping and deletion take nothing away.
            unmap(other).expect_ok(&[])?;
            f.slot_of(other).delete()?;
            ensure_eq!(scene.visitor.load(f, address)?, Seen::Word(1));
        }
    }
    Ok(())
}

fn new_mapping(f: &mut Fixture) -> TestResult {
    for root in spaces(f)? {
        let visitor = Visitor::new(f, root)?;
        // With each of the structures, the faults stay the same.
        for level in LEVELS {
            ensure_eq!(visitor.load(f, VADDR)?, absent(VADDR, 0));
            add_table(f, level, root, VADDR)?;
        }
        ensure_eq!(visitor.store(f, VADDR, 1)?, absent(VADDR, WRITE));
        map(marked(f, 8)?, root).expect_ok(&[])?;
        ensure_eq!(visitor.load(f, VADDR)?, Seen::Word(8));
    }
    Ok(())
}

/// Structures of all levels with a page at the first and the last address that they cover, and a
/// visitor that has just used them.
fn structures(f: &mut Fixture, root: Pml4) -> Result<(Vec<Invocation>, Visitor), Failure> {
    let tables = add_tables(f, root, 3)?;
    map(marked(f, 1)?, root).expect_ok(&[])?;
    map_at(marked(f, 2)?, root, LAST).expect_ok(&[])?;
    let visitor = Visitor::new(f, root)?;
    for (address, word) in [(VADDR, 1), (LAST, 2)] {
        ensure_eq!(visitor.load(f, address)?, Seen::Word(word));
    }
    Ok((tables, visitor))
}

const LAST: u64 = VADDR + 0x1f_f000;

fn structures_unmapped(f: &mut Fixture) -> TestResult {
    for level in 0..LEVELS.len() {
        for root in spaces(f)? {
            let (tables, visitor) = structures(f, root)?;
            unmap_table(&tables[level]).expect_ok(&[])?;
            for address in [VADDR, LAST] {
                ensure_eq!(visitor.load(f, address)?, absent(address, 0));
            }
            // It was zeroed: its return brings nothing back.
            tables[level].expect_ok(&[])?;
            for address in [VADDR, LAST] {
                ensure_eq!(visitor.load(f, address)?, absent(address, 0));
            }
            f.slot_of(tables[0].cap).delete()?;
        }
    }
    Ok(())
}

fn structures_deleted(f: &mut Fixture) -> TestResult {
    for level in 0..LEVELS.len() {
        for root in spaces(f)? {
            let (tables, visitor) = structures(f, root)?;
            let copy = f.copy(tables[level].cap)?;
            for (last, cap) in [(false, tables[level].cap), (true, copy)] {
                f.slot_of(cap).delete()?;
                for (address, word) in [(VADDR, 1), (LAST, 2)] {
                    let expected = if last {
                        absent(address, 0)
                    } else {
                        Seen::Word(word)
                    };
                    ensure_eq!(visitor.load(f, address)?, expected);
                }
            }
            f.slot_of(tables[0].cap).delete()?;
        }
    }
    Ok(())
}

fn structures_replaced(f: &mut Fixture) -> TestResult {
    for level in 0..LEVELS.len() {
        for root in spaces(f)? {
            let (tables, visitor) = structures(f, root)?;
            unmap_table(&tables[level]).expect_ok(&[])?;
            let mut tops = vec![tables[0].cap];
            for &below in &LEVELS[level..] {
                tops.push(add_table(f, below, root, VADDR)?.cap);
            }
            map(marked(f, 3)?, root).expect_ok(&[])?;
            ensure_eq!(visitor.load(f, VADDR)?, Seen::Word(3));
            ensure_eq!(visitor.load(f, LAST)?, absent(LAST, 0));
            // The old ones' deletion takes nothing of the new ones away.
            for table in &tables[level..] {
                f.slot_of(table.cap).delete()?;
            }
            ensure_eq!(visitor.load(f, VADDR)?, Seen::Word(3));
            // Room for the next, in the check's own address space.
            for cap in tops {
                f.slot_of(cap).delete()?;
            }
        }
    }
    Ok(())
}

fn one_page(f: &mut Fixture) -> TestResult {
    for root in spaces(f)? {
        add_tables(f, root, 3)?;
        let visitor = Visitor::new(f, root)?;
        let mut frames = vec![];
        for i in 0..4 {
            let frame = marked(f, i)?;
            map_at(frame, root, VADDR + i * 0x1000).expect_ok(&[])?;
            frames.push(frame);
        }
        unmap(frames[1]).expect_ok(&[])?;
        f.slot_of(frames[2]).delete()?;
        for i in 0..4 {
            let address = VADDR + i * 0x1000;
            let expected = match i {
                1 | 2 => absent(address, 0),
                _ => Seen::Word(i),
            };
            ensure_eq!(visitor.load(f, address)?, expected);
        }
    }
    Ok(())
}

fn per_capability(f: &mut Fixture) -> TestResult {
    for root in spaces(f)? {
        add_tables(f, root, 3)?;
        let frame = marked(f, 9)?;
        let (first, second) = (f.copy(frame)?, f.copy(frame)?);
        let elsewhere = VADDR + 0x3000;
        map(first, root).expect_ok(&[])?;
        map_at(second, root, elsewhere).expect_ok(&[])?;
        let visitor = Visitor::new(f, root)?;
        // The original has no mapping: it takes none away.
        unmap(frame).expect_ok(&[])?;
        for address in [VADDR, elsewhere] {
            ensure_eq!(visitor.load(f, address)?, Seen::Word(9));
        }
        f.slot_of(first).delete()?;
        ensure_eq!(visitor.load(f, VADDR)?, absent(VADDR, 0));
        ensure_eq!(visitor.load(f, elsewhere)?, Seen::Word(9));
        unmap(second).expect_ok(&[])?;
        ensure_eq!(visitor.load(f, elsewhere)?, absent(elsewhere, 0));
    }
    Ok(())
}
