//! 02, sections 6.1 and 6.2: what data does to a capability, and what can be derived.

use conformance_kit::arch;
use sandglass::cap::Pml4;

use super::support::{
    alive, delete, free_bytes, kind_of, operation, originals, unmapped_pages, Kind,
};
use crate::page03::levels::LEVELS;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/6.1/mint-ignores-data-of-other-kinds", mint_data_ignored),
    check("02/6.1/mutate-moves-other-kinds", mutate_others),
    check("02/6.1/a-badge-is-set-once", badge_once),
    check(
        "02/6.1/endpoints-and-notifications-are-not-mutated",
        no_mutation,
    ),
    check(
        "02/6.1/endpoints-and-notifications-are-not-rotated",
        no_rotation,
    ),
    check("02/6.1/mint-and-mutate-replace-the-guard", guards_replaced),
    check("02/6.1/copy-keeps-the-guard", guards_kept),
    check("02/6.1/copy-keeps-the-badge", badges_kept),
    check("02/6.2/irq-and-port-controls-are-not-derived", controls),
    check(
        "02/6.2/an-untyped-with-children-is-not-derived",
        untyped_with_children,
    ),
    check("02/6.2/copying-an-untyped-uses-it-up", untyped_copy),
    check("02/6.2/frames-are-copied-unmapped", frames),
    check(
        "02/6.2/paging-structures-are-derived-when-mapped",
        paging_structures,
    ),
    check("02/6.2/a-vspace-is-derived-when-it-has-an-asid", vspaces),
    check("02/6.2/all-other-kinds-are-copied-as-they-are", other_kinds),
];

fn mint_data_ignored(f: &mut Fixture) -> TestResult {
    let uses_data = [Kind::Endpoint, Kind::Notification, Kind::CNode];
    for (kind, original) in originals(f, 0)? {
        if uses_data.contains(&kind) {
            continue;
        }
        let slot = f.empty_slot()?;
        let mint = operation(
            label::CNODE_MINT,
            slot,
            f.slot_of(original),
            &[15, u64::MAX],
        );
        mint.expect_ok(&[])?;
        ensure_eq!(kind_of(f, slot.capability::<CPtr>())?, kind);
    }
    Ok(())
}

fn mutate_others(f: &mut Fixture) -> TestResult {
    let uses_data = [Kind::Endpoint, Kind::Notification, Kind::CNode];
    for (kind, original) in originals(f, 0)? {
        if uses_data.contains(&kind) {
            continue;
        }
        let slot = f.empty_slot()?;
        let mutate = operation(label::CNODE_MUTATE, slot, f.slot_of(original), &[u64::MAX]);
        mutate.expect_ok(&[])?;
        ensure_eq!(kind_of(f, slot.capability::<CPtr>())?, kind);
        ensure_eq!(alive(f, [original])?, [false]);
    }
    // Also what cannot be derived.
    let memory = f.untyped(5)?;
    let (child, slot) = (f.empty_slot()?, f.empty_slot()?);
    memory.retype(ObjectType::Reply, child, 1)?;
    operation(label::CNODE_MUTATE, slot, f.slot_of(memory), &[9]).expect_ok(&[])?;
    slot.revoke()?;
    ensure!(f.is_empty(child)?);
    Ok(())
}

fn badge_once(f: &mut Fixture) -> TestResult {
    for original in [f.endpoint()?.cptr(), f.notification()?.cptr()] {
        let badged = f.badged(original, 5)?;
        let copy = f.copy(badged)?;
        let slot = f.empty_slot()?;
        for source in [badged, copy] {
            for data in [0, 5, 6, u64::MAX] {
                let mint = operation(label::CNODE_MINT, slot, f.slot_of(source), &[15, data]);
                mint.expect_error(IllegalOperation, &[])?;
            }
        }
        // Minted without a badge, it has none yet.
        let unbadged = f.badged(original, 0)?;
        f.badged(unbadged, 6)?;
    }
    Ok(())
}

fn no_mutation(f: &mut Fixture) -> TestResult {
    for original in [f.endpoint()?.cptr(), f.notification()?.cptr()] {
        let badged = f.badged(original, 5)?;
        let slot = f.empty_slot()?;
        for source in [original, badged] {
            for data in [0, 5, u64::MAX] {
                let mutate = operation(label::CNODE_MUTATE, slot, f.slot_of(source), &[data]);
                mutate.expect_error(IllegalOperation, &[])?;
            }
        }
        ensure_eq!(
            alive(f, [original, badged, slot.capability()])?,
            [true, true, false]
        );
    }
    Ok(())
}

fn no_rotation(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    for cap in [f.endpoint()?.cptr(), f.notification()?.cptr()] {
        let destination = f.empty_slot()?;
        for (pivot, source) in [(cap, tcb.cptr()), (tcb.cptr(), cap)] {
            for destination in [destination, f.slot_of(source)] {
                let words = [
                    destination.index(),
                    64,
                    0,
                    pivot.raw(),
                    64,
                    0,
                    source.raw(),
                    64,
                ];
                let roots = [boot::CNODE.cptr(); 2];
                let rotate = Invocation::new(boot::CNODE, label::CNODE_ROTATE, &words, &roots);
                rotate.expect_error(IllegalOperation, &[])?;
            }
        }
        ensure_eq!(alive(f, [cap, tcb.cptr()])?, [true, true]);
    }
    Ok(())
}

/// Whether the CNode has this guard, its radix being 1.
fn has_guard(cnode: CNode, guard: u64, size: u32) -> bool {
    cnode.slot_at(guard << 1, (size + 1) as u8).delete().is_ok()
}

fn guards_replaced(f: &mut Fixture) -> TestResult {
    let cnode = f.cnode(1)?;
    let minted = f.badged(cnode, GuardData::new(5, 3).raw())?;
    ensure!(has_guard(minted, 5, 3));
    let without = f.badged(minted, 0)?;
    ensure!(has_guard(without, 0, 0));
    let mutated: CNode = f.null()?;
    f.slot_of(mutated)
        .mutate_from(f.slot_of(minted), GuardData::new(9, 7))?;
    ensure!(has_guard(mutated, 9, 7));
    let back: CNode = f.null()?;
    f.slot_of(back)
        .mutate_from(f.slot_of(mutated), GuardData(0))?;
    ensure!(has_guard(back, 0, 0));
    Ok(())
}

fn guards_kept(f: &mut Fixture) -> TestResult {
    let cnode = f.cnode(1)?;
    let minted = f.badged(cnode, GuardData::new(5, 3).raw())?;
    let copy = f.copy(minted)?;
    ensure!(has_guard(copy, 5, 3));
    let moved: CNode = f.null()?;
    f.slot_of(moved).move_from(f.slot_of(copy))?;
    ensure!(has_guard(moved, 5, 3));
    Ok(())
}

fn badges_kept(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 12)?;
    let copy = f.copy(badged)?;
    let moved: Notification = f.null()?;
    f.slot_of(moved).move_from(f.slot_of(copy))?;
    moved.signal();
    ensure_eq!(notification.poll(), 12);
    Ok(())
}

fn controls(f: &mut Fixture) -> TestResult {
    for control in arch::underivable() {
        let slot = f.empty_slot()?;
        let source = f.slot_of(control);
        let copy = operation(label::CNODE_COPY, slot, source, &[15]);
        copy.expect_error(IllegalOperation, &[])?;
        let mint = operation(label::CNODE_MINT, slot, source, &[15, 0]);
        mint.expect_error(IllegalOperation, &[])?;
        ensure!(f.is_empty(slot)?);
    }
    Ok(())
}

fn untyped_with_children(f: &mut Fixture) -> TestResult {
    let memory = f.untyped(6)?;
    let (child, slot) = (f.empty_slot()?, f.empty_slot()?);
    memory.retype(ObjectType::Reply, child, 1)?;
    let copy = operation(label::CNODE_COPY, slot, f.slot_of(memory), &[15]);
    copy.expect_error(RevokeFirst, &[])?;
    let mint = operation(label::CNODE_MINT, slot, f.slot_of(memory), &[15, 0]);
    mint.expect_error(RevokeFirst, &[])?;
    child.delete()?;
    copy.expect_ok(&[])?;
    // A copy is a child, too.
    let other = f.empty_slot()?;
    copy.with_word(0, other.index())
        .expect_error(RevokeFirst, &[])
}

fn untyped_copy(f: &mut Fixture) -> TestResult {
    let memory = f.untyped(8)?;
    let copy = f.copy(memory)?;
    ensure_eq!(free_bytes(f, memory)?, 0);
    ensure_eq!(free_bytes(f, copy)?, 0x100);
    let slot = f.empty_slot()?;
    copy.retype(ObjectType::Reply, slot, 1)?;
    ensure_eq!(free_bytes(f, copy)?, 0x100 - 0x20);
    ensure_eq!(free_bytes(f, memory)?, 0);
    // Without the copy, its object is the child.
    delete(f, copy)?;
    ensure_eq!(free_bytes(f, memory)?, 0);
    slot.delete()?;
    ensure_eq!(free_bytes(f, memory)?, 0x100);
    Ok(())
}

fn frames(f: &mut Fixture) -> TestResult {
    let frame = f.frame(FrameSize::Small)?;
    let address = unmapped_pages(f, 2)?;
    let space = f.process.space.vspace();
    let map = |f: &mut Fixture, frame: Frame, address: u64| {
        let resources = &mut f.process.resources;
        space.map(
            resources,
            frame,
            address,
            Rights::ALL,
            Attributes::WriteBack,
        )
    };
    map(f, frame, address)?;
    let copy = f.copy(frame)?;
    // The mapped one cannot go elsewhere; the copy can.
    let elsewhere = Invocation::new(
        frame,
        arch_label::PAGE_MAP,
        &[address + 0x1000, 3, 0],
        &[space.root().cptr()],
    );
    elsewhere.expect_error(InvalidArgument, &[0])?;
    elsewhere.on(copy).expect_ok(&[])?;
    // Unmapping the copy leaves the original's mapping.
    copy.unmap()?;
    // SAFETY: the frame is mapped there.
    unsafe { (address as *mut u64).write_volatile(1) };
    let prober = f.prober()?;
    ensure!(!prober.can_load(f, address + 0x1000)?);
    ensure_eq!(copy.physical_address()?, frame.physical_address()?);
    Ok(())
}

fn paging_structures(f: &mut Fixture) -> TestResult {
    let root = f.vspace()?.root();
    for level in LEVELS {
        let cap: CPtr = f.make(level.kind)?;
        let (map, unmap) = (level.map, level.unmap);
        let slot = f.empty_slot()?;
        let copy = operation(label::CNODE_COPY, slot, f.slot_of(cap), &[15]);
        copy.expect_error(IllegalOperation, &[])?;
        let map = Invocation::new(cap, map, &[0, 0], &[root.cptr()]);
        map.expect_ok(&[])?;
        copy.expect_ok(&[])?;
        // The copy is mapped where the original is; neither is the only one.
        let copied: CPtr = slot.capability();
        map.on(copied).expect_error(InvalidCapability, &[0])?;
        let unmap = Invocation::new(cap, unmap, &[], &[]);
        unmap.expect_error(RevokeFirst, &[])?;
        unmap.on(copied).expect_error(RevokeFirst, &[])?;
        delete(f, cap)?;
        unmap.on(copied).expect_ok(&[])?;
        map.on(copied).expect_ok(&[])?;
    }
    Ok(())
}

fn vspaces(f: &mut Fixture) -> TestResult {
    let root: Pml4 = f.pml4()?;
    let slot = f.empty_slot()?;
    let copy = operation(label::CNODE_COPY, slot, f.slot_of(root), &[15]);
    copy.expect_error(IllegalOperation, &[])?;
    boot::ASID_POOL.assign(root)?;
    copy.expect_ok(&[])?;
    // It is the same address space.
    let copied: Pml4 = slot.capability();
    for level in LEVELS {
        let table: CPtr = f.make(level.kind)?;
        Invocation::new(table, level.map, &[0, 0], &[copied.cptr()]).expect_ok(&[])?;
    }
    let last = LEVELS[2];
    let second: CPtr = f.make(last.kind)?;
    Invocation::new(second, last.map, &[0, 0], &[root.cptr()]).expect_error(DeleteFirst, &[])
}

fn other_kinds(f: &mut Fixture) -> TestResult {
    for (kind, original) in originals(f, 0)? {
        let copy = f.copy(original)?;
        let copied = kind_of(f, copy)?;
        ensure!(
            copied == kind,
            "the copy of a {kind:?} behaves as {copied:?}"
        );
    }
    for (original, kind) in [
        (f.control.cptr(), Kind::SchedControl),
        (boot::DOMAIN.cptr(), Kind::Domain),
        (boot::ASID_CONTROL.cptr(), Kind::AsidControl),
    ] {
        let copy = f.copy(original)?;
        ensure_eq!(kind_of(f, copy)?, kind);
    }
    Ok(())
}
