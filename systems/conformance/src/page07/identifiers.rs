//! 07, section 8: address-space identifiers, and threads whose address space is gone.

use sandglass::cap::{AsidPool, Pml4};

use super::scene::{add_tables, map, map_at, marked, unmap, unmap_table, VADDR};
use super::visitor::{absent, Seen, Visitor};
use crate::page03::stale::pool;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/8/the-initial-pool-has-510-more", initial_pool),
    check("07/8/there-are-no-more-pools-than-the-abi-has", all_pools),
    check("07/8/the-lowest-free-identifier-is-assigned", lowest),
    check("07/8/the-lowest-free-pool-is-made", lowest_pool),
    check("07/8/only-the-final-root-frees-it", final_root),
    check("07/8/a-root-keeps-its-stale-identifier", stale_assign),
    check("07/8/a-deleted-pool-takes-all-away", deleted_pool),
    check("07/8/a-copy-of-a-pool-keeps-it", copied_pool),
    check("07/8/threads-without-a-pool-fault", threads_of_a_pool),
    check("07/8/threads-without-a-root-fault", threads_of_a_root),
    check("07/8/a-stale-space-stays-empty-in-a-new-pool", replaced),
    check("07/8/mappings-are-forgotten-in-silence", silent),
];

fn invalid_root() -> [u64; 2] {
    [0, LookupFailureType::InvalidRoot as u64]
}

fn assign(pool: AsidPool, root: Pml4) -> Invocation {
    let label = arch_label::ASID_POOL_ASSIGN;
    Invocation::new(pool, label, &[], &[root.cptr()])
}

/// A new root with an identifier of this pool.
fn root_of(f: &mut Fixture, pool: AsidPool) -> Result<Pml4, Failure> {
    let root = f.pml4()?;
    pool.assign(root)?;
    Ok(root)
}

/// A new frame that is mapped below this root.
fn mapped(f: &mut Fixture, root: Pml4) -> Result<Frame, Failure> {
    add_tables(f, root, 3)?;
    let frame = f.frame(FrameSize::Small)?;
    map(frame, root).expect_ok(&[])?;
    Ok(frame)
}

/// Whether a mapped frame's identifier is that of this root: the capability remembers it, also
/// when the address space is gone.
fn names(frame: Frame, root: Pml4) -> Result<bool, Failure> {
    let answer = map_at(frame, root, VADDR + 0x1000).call();
    match (ErrorNumber::from_raw(answer.label), &answer.words[..]) {
        (Some(InvalidArgument), [0]) => Ok(true),
        (Some(InvalidCapability), [1]) => Ok(false),
        _ => Err(Failure::from(format!("Map answered {answer}"))),
    }
}

fn initial_pool(f: &mut Fixture) -> TestResult {
    // Number 0 is none, 1 is the check's own address space.
    for number in 2..512 {
        let assign = assign(boot::ASID_POOL, f.pml4()?);
        let answer = assign.call();
        ensure!(answer.label == 0, "the root {number} is refused: {answer}");
    }
    assign(boot::ASID_POOL, f.pml4()?).expect_error(DeleteFirst, &[])
}

fn all_pools(f: &mut Fixture) -> TestResult {
    let mut pools = vec![];
    // That of the boot is there.
    for _ in 1..conformance_kit::arch::ASID_POOLS {
        pools.push(pool(f)?);
    }
    let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
    let make = Invocation::new(
        boot::ASID_CONTROL,
        arch_label::ASID_CONTROL_MAKE_POOL,
        &[slot.index(), 64],
        &[memory.cptr(), boot::CNODE.cptr()],
    );
    let step = pools.len() / 7;
    for pool in pools.into_iter().step_by(step) {
        make.expect_error(DeleteFirst, &[])?;
        f.slot_of(pool).delete()?;
        make.expect_ok(&[])?;
        make.expect_error(DeleteFirst, &[])?;
        // Deleting it makes the untyped free again.
        slot.delete()?;
        make.expect_ok(&[])?;
        slot.delete()?;
        let again = self::pool(f)?;
        root_of(f, again)?;
    }
    Ok(())
}

fn lowest(f: &mut Fixture) -> TestResult {
    let pool = pool(f)?;
    let mut spaces = vec![];
    for _ in 0..4 {
        let root = root_of(f, pool)?;
        spaces.push((root, mapped(f, root)?));
    }
    for gone in [2, 1] {
        f.slot_of(spaces[gone].0).delete()?;
    }
    let new = [root_of(f, pool)?, root_of(f, pool)?, root_of(f, pool)?];
    let seen = [
        names(spaces[1].1, new[0])?,
        names(spaces[2].1, new[1])?,
        names(spaces[1].1, new[1])?,
        names(spaces[2].1, new[2])?,
        names(spaces[3].1, new[2])?,
    ];
    ensure_eq!(seen, [true, true, false, false, false]);
    Ok(())
}

fn lowest_pool(f: &mut Fixture) -> TestResult {
    let pools = [pool(f)?, pool(f)?, pool(f)?];
    let mut frames = vec![];
    for pool in pools {
        let root = root_of(f, pool)?;
        frames.push(mapped(f, root)?);
    }
    for gone in [1, 0] {
        f.slot_of(pools[gone]).delete()?;
    }
    let mut new = vec![];
    for _ in 0..3 {
        let pool = pool(f)?;
        new.push(root_of(f, pool)?);
    }
    let mut seen = vec![];
    for &root in &new {
        for &frame in &frames {
            seen.push(names(frame, root)?);
        }
    }
    // The third has a number of its own.
    ensure_eq!(
        seen,
        [true, false, false, false, true, false, false, false, false]
    );
    Ok(())
}

fn final_root(f: &mut Fixture) -> TestResult {
    let pool = pool(f)?;
    let root = root_of(f, pool)?;
    let frame = mapped(f, root)?;
    let copy = f.copy(root)?;
    f.slot_of(root).delete()?;
    let next = root_of(f, pool)?;
    ensure!(!names(frame, next)?, "a copy does not keep the identifier");
    ensure!(names(frame, copy)?, "a copy is of another address space");
    map(frame, copy).expect_ok(&[])?;
    f.slot_of(copy).delete()?;
    let next = root_of(f, pool)?;
    ensure!(names(frame, next)?, "the identifier is not free");
    Ok(())
}

fn stale_assign(f: &mut Fixture) -> TestResult {
    let (first, second) = (pool(f)?, pool(f)?);
    let root = root_of(f, first)?;
    for _ in 0..2 {
        for pool in [second, boot::ASID_POOL] {
            assign(pool, root).expect_error(InvalidCapability, &[1])?;
        }
        f.slot_of(first).delete()?;
    }
    // Copies of it too.
    let copy = f.copy(root)?;
    assign(second, copy).expect_error(InvalidCapability, &[1])
}

fn deleted_pool(f: &mut Fixture) -> TestResult {
    for revoked in [false, true] {
        let memory = f.untyped(12)?;
        let slot = f.empty_slot()?;
        boot::ASID_CONTROL.make_pool(memory, slot)?;
        let pool: AsidPool = slot.capability();
        let mut maps = vec![];
        for _ in 0..3 {
            let root = root_of(f, pool)?;
            let frame = mapped(f, root)?;
            maps.push(map(frame, root));
            let new = f.frame(FrameSize::Small)?;
            maps.push(map(new, root));
            let table: CPtr = f.make(ObjectType::PageTable)?;
            let words = [VADDR, 0];
            let caps = [root.cptr()];
            maps.push(Invocation::new(
                table,
                arch_label::PAGE_TABLE_MAP,
                &words,
                &caps,
            ));
        }
        if revoked {
            f.slot_of(memory).revoke()?;
        } else {
            slot.delete()?;
        }
        for map in maps {
            map.expect_error(FailedLookup, &invalid_root())?;
        }
    }
    Ok(())
}

fn copied_pool(f: &mut Fixture) -> TestResult {
    let pool = pool(f)?;
    let root = root_of(f, pool)?;
    let frame = mapped(f, root)?;
    let copy = f.copy(pool)?;
    f.slot_of(pool).delete()?;
    map(frame, root).expect_ok(&[])?;
    let next = root_of(f, copy)?;
    mapped(f, next)?;
    f.slot_of(copy).delete()?;
    map(frame, root).expect_error(FailedLookup, &invalid_root())
}

/// A visitor of an address space of this pool, with a page that it can load.
fn visitor_of(f: &mut Fixture, pool: AsidPool) -> Result<(Pml4, Visitor), Failure> {
    let root = root_of(f, pool)?;
    add_tables(f, root, 3)?;
    map(marked(f, 7)?, root).expect_ok(&[])?;
    let visitor = Visitor::new(f, root)?;
    ensure_eq!(visitor.load(f, VADDR)?, Seen::Word(7));
    Ok((root, visitor))
}

fn threads_of_a_pool(f: &mut Fixture) -> TestResult {
    let pools = [pool(f)?, pool(f)?];
    let mut visitors = vec![];
    for pool in [pools[0], pools[0], pools[1]] {
        visitors.push(visitor_of(f, pool)?.1);
    }
    f.slot_of(pools[0]).delete()?;
    for gone in &visitors[..2] {
        // Twice: the fault changes nothing.
        for _ in 0..2 {
            let first_fetch = absent(gone.code, 0);
            ensure_eq!(gone.load(f, VADDR)?, first_fetch);
        }
    }
    ensure_eq!(visitors[2].load(f, VADDR)?, Seen::Word(7));
    Ok(())
}

fn threads_of_a_root(f: &mut Fixture) -> TestResult {
    let pool = pool(f)?;
    let (root, visitor) = visitor_of(f, pool)?;
    let other = visitor_of(f, pool)?.1;
    // The thread's own capability keeps the address space.
    let copy = f.copy(root)?;
    f.slot_of(copy).delete()?;
    ensure_eq!(visitor.load(f, VADDR)?, Seen::Word(7));
    // Revocation takes it too.
    f.slot_of(root).revoke()?;
    ensure_eq!(visitor.load(f, VADDR)?, absent(visitor.code, 0));
    ensure_eq!(other.load(f, VADDR)?, Seen::Word(7));
    // The root is there still, and so are its mappings.
    visitor.enter(root)?;
    ensure_eq!(visitor.load(f, VADDR)?, Seen::Word(7));
    Ok(())
}

fn replaced(f: &mut Fixture) -> TestResult {
    let first = pool(f)?;
    let (root, visitor) = visitor_of(f, first)?;
    let frame = f.frame(FrameSize::Small)?;
    f.slot_of(first).delete()?;
    // The same number, with another root behind the same index.
    let second = pool(f)?;
    let other = visitor_of(f, second)?.1;
    ensure_eq!(visitor.load(f, VADDR)?, absent(visitor.code, 0));
    map(frame, root).expect_error(InvalidCapability, &[1])?;
    let table: CPtr = f.make(ObjectType::PageTable)?;
    Invocation::new(
        table,
        arch_label::PAGE_TABLE_MAP,
        &[VADDR, 0],
        &[root.cptr()],
    )
    .expect_error(InvalidCapability, &[1])?;
    // The end of the old root takes nothing from the new one.
    f.slot_of(root).revoke()?;
    f.slot_of(root).delete()?;
    ensure_eq!(other.load(f, VADDR)?, Seen::Word(7));
    let next = root_of(f, second)?;
    mapped(f, next)?;
    Ok(())
}

fn silent(f: &mut Fixture) -> TestResult {
    for of_pool in [true, false] {
        for deleted in [true, false] {
            let pool = pool(f)?;
            let root = root_of(f, pool)?;
            let tables = add_tables(f, root, 3)?;
            let frame = f.frame(FrameSize::Small)?;
            map(frame, root).expect_ok(&[])?;
            if of_pool {
                f.slot_of(pool).delete()?;
            } else {
                f.slot_of(root).delete()?;
            }
            let gone = tables.iter().map(|map| map.cap).chain([frame.cptr()]);
            if deleted {
                for cap in gone {
                    let slot = f.slot_of(cap);
                    slot.delete()?;
                    ensure!(f.is_empty(slot)?);
                }
                continue;
            }
            unmap(frame).expect_ok(&[])?;
            for map in &tables {
                unmap_table(map).expect_ok(&[])?;
            }
            // All may be mapped again, elsewhere.
            let root = f.vspace()?.root();
            for map in &tables {
                map.with_cap(0, root).expect_ok(&[])?;
            }
            map(frame, root).expect_ok(&[])?;
        }
    }
    Ok(())
}
