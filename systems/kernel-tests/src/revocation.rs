//! Revocation leaves no derived capability alive, and what was revoked can be used again
//! (ABI 02, sections 5 to 7, ABI 03, section 3).

use alloc::vec::Vec;

use sandglass::cap::{
    Attributes, CNode, Endpoint, Frame, FrameSize, ObjectType, Rights, Slot, Tcb, Untyped,
};
use sandglass::fault::Fault;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, ensure_eq, ErrorKind, SetupError};

use crate::fixture::{Fixture, FULL};

const PAGE: u64 = 4096;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "revocation",
        &[
            ("takes_every_copy_and_no_other", copies),
            ("of_a_badge_takes_that_badge_alone", badges),
            ("of_a_copy_takes_nothing", of_copy),
            ("reaches_capabilities_in_other_cnodes", other_cnodes),
            ("takes_random_derivations", random),
            ("of_untyped_memory_takes_every_object", untyped),
            ("makes_memory_usable_again_and_zero", reusable),
            ("unmaps_frames", unmaps),
            ("restarts_threads_that_wait_there", waiters),
            ("deletion_of_the_last_capability_ends_the_object", last),
            ("an_untyped_with_children_cannot_be_copied", untyped_copy),
        ],
    );
}

fn slots(fixture: &mut Fixture, count: usize) -> Result<Vec<Slot>, SetupError> {
    (0..count)
        .map(|_| fixture.process.resources.allocate_slot())
        .collect()
}

/// Which of the slots are empty.
fn emptied(fixture: &mut Fixture, slots: &[Slot]) -> Result<Vec<bool>, SetupError> {
    slots.iter().map(|&slot| fixture.is_empty(slot)).collect()
}

fn copies(fixture: &mut Fixture) -> TestResult {
    let endpoint = fixture.process.resources.endpoint()?;
    let other = fixture.process.resources.endpoint()?;
    let original = fixture.process.resources.slot_of(endpoint);
    let s = slots(fixture, 5)?;
    s[0].copy_from(original, Rights::ALL)?;
    s[1].mint_from(original, Rights::ALL, 7)?;
    s[2].copy_from(s[1], Rights::WRITE)?;
    s[3].copy_from(s[0], Rights::READ)?;
    let foreign = fixture.process.resources.slot_of(other);
    s[4].copy_from(foreign, Rights::ALL)?;
    original.revoke()?;
    ensure_eq!(emptied(fixture, &s)?, [true, true, true, true, false]);
    ensure!(!fixture.is_empty(original)?);
    Ok(())
}

fn badges(fixture: &mut Fixture) -> TestResult {
    let endpoint = fixture.process.resources.endpoint()?;
    let original = fixture.process.resources.slot_of(endpoint);
    let s = slots(fixture, 5)?;
    s[0].mint_from(original, Rights::ALL, 1)?;
    s[1].mint_from(original, Rights::ALL, 2)?;
    s[2].copy_from(s[0], Rights::ALL)?;
    s[3].copy_from(s[1], Rights::ALL)?;
    s[4].mint_from(original, Rights::ALL, 1)?;
    s[0].revoke()?;
    // The other capability with the same badge was minted by itself.
    ensure_eq!(emptied(fixture, &s)?, [false, false, true, false, false]);
    original.revoke()?;
    ensure_eq!(emptied(fixture, &s)?, [true; 5]);
    Ok(())
}

fn of_copy(fixture: &mut Fixture) -> TestResult {
    let endpoint = fixture.process.resources.endpoint()?;
    let original = fixture.process.resources.slot_of(endpoint);
    let s = slots(fixture, 2)?;
    s[0].copy_from(original, Rights::ALL)?;
    s[1].copy_from(s[0], Rights::ALL)?;
    s[0].revoke()?;
    ensure_eq!(emptied(fixture, &s)?, [false, false]);
    Ok(())
}

const RADIX: u32 = 6;

fn inner(cnode: CNode, index: u64) -> Slot {
    cnode.slot_at(index, RADIX as u8)
}

fn other_cnodes(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let cnode = resources.cnode(RADIX)?;
    let endpoint = resources.endpoint()?;
    let original = resources.slot_of(endpoint);
    inner(cnode, 3).copy_from(original, Rights::ALL)?;
    inner(cnode, 4).mint_from(inner(cnode, 3), Rights::ALL, 8)?;
    // A thread's slots hold capabilities too.
    let tcb = resources.tcb()?;
    tcb.set_timeout_endpoint(Some(endpoint))?;
    original.revoke()?;
    for index in [3, 4] {
        ensure!(fixture.is_empty(inner(cnode, index))?, "slot {index}");
    }
    // The copy in the thread is gone: the endpoint's capability is the last, so deleting it
    // frees all its memory, which revocation of a copy would not notice otherwise.
    let before = original;
    before.delete()?;
    ensure!(fixture.is_empty(before)?);
    Ok(())
}

/// Copies and badged copies of copies, at random, over two CNodes; then the original is revoked.
fn random(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let cnodes = [resources.cnode(RADIX)?, resources.cnode(RADIX)?];
    let endpoint = resources.endpoint()?;
    let original = resources.slot_of(endpoint);
    let all: Vec<Slot> = (0..64)
        .flat_map(|index| cnodes.map(|cnode| inner(cnode, index)))
        .collect();
    for seed in 1..=3u64 {
        let mut random = seed;
        let mut next = move |bound: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % bound
        };
        let mut filled = alloc::vec![original];
        for &slot in &all {
            let source = filled[next(filled.len())];
            match next(3) {
                0 => slot.copy_from(source, Rights::ALL)?,
                // A badged capability cannot be badged again: then it is copied.
                1 => slot
                    .mint_from(source, Rights::ALL, next(5) as u64 + 1)
                    .or_else(|_| slot.copy_from(source, Rights::ALL))?,
                _ => {
                    let from = filled.len() - 1;
                    if from == 0 {
                        continue;
                    }
                    slot.move_from(filled[from])?;
                    filled.pop();
                }
            }
            filled.push(slot);
        }
        // Deletions in between do not lose anything.
        for _ in 0..20 {
            filled[1 + next(filled.len() - 1)].delete()?;
        }
        original.revoke()?;
        for (index, &slot) in all.iter().enumerate() {
            ensure!(
                fixture.is_empty(slot)?,
                "slot {index} of seed {seed} survived"
            );
        }
    }
    Ok(())
}

/// One object of every kind, with copies, in use by each other.
fn untyped(fixture: &mut Fixture) -> TestResult {
    let memory = fixture.process.resources.untyped(17)?;
    let s = slots(fixture, 14)?;
    let kinds = [
        ObjectType::Tcb,
        ObjectType::Endpoint,
        ObjectType::Notification,
        ObjectType::CNode(4),
        ObjectType::SchedContext(8),
        ObjectType::Reply,
        ObjectType::Page,
        ObjectType::PageTable,
        ObjectType::Pml4,
        ObjectType::Untyped(13),
    ];
    for (&slot, kind) in s.iter().zip(kinds) {
        memory.retype(kind, slot, 1)?;
    }
    let inner: Untyped = s[9].capability();
    inner.retype(ObjectType::Notification, s[10], 1)?;
    s[11].copy_from(s[1], Rights::ALL)?;
    s[12].mint_from(s[2], Rights::ALL, 3)?;
    let cnode: CNode = s[3].capability();
    cnode.slot_at(5, 4).copy_from(s[0], Rights::ALL)?;
    let tcb: Tcb = s[0].capability();
    tcb.bind_notification(s[2].capability())?;
    tcb.set_timeout_endpoint(Some(s[1].capability()))?;
    let context: sandglass::cap::SchedContext = s[4].capability();
    fixture.control.configure(context, FULL)?;
    context.bind(tcb)?;
    let frame: Frame = s[6].capability();
    s[13].copy_from(fixture.process.resources.slot_of(frame), Rights::ALL)?;
    let address = fixture.process.space.reserve(PAGE, 12)?;
    let vspace = fixture.process.space.vspace();
    vspace.map(
        &mut fixture.process.resources,
        frame,
        address,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )?;
    fixture.process.resources.slot_of(memory).revoke()?;
    for (index, &slot) in s.iter().enumerate() {
        ensure!(fixture.is_empty(slot)?, "capability {index} survived");
    }
    // All of it is free.
    memory.retype(ObjectType::Untyped(17), s[0], 1)?;
    Ok(())
}

fn reusable(fixture: &mut Fixture) -> TestResult {
    const PAGES: u64 = 16;
    let memory = fixture.process.resources.untyped(16)?;
    let first = fixture.process.resources.allocate_slots(PAGES)?;
    let frame = |index: u64| Frame::at(first.index() + index);
    for round in 0..2 {
        memory.retype(ObjectType::Page, first, PAGES)?;
        let full = memory.retype(ObjectType::Endpoint, first, 1);
        ensure!(full.is_err());
        for index in 0..PAGES {
            let mut dirty = 0;
            let process = &mut fixture.process;
            process
                .space
                .fill_frame(&mut process.resources, frame(index), |page| {
                    dirty = page.iter().filter(|&&byte| byte != 0).count();
                    page.fill(0xa5);
                })?;
            ensure!(
                dirty == 0,
                "round {round}: {dirty} bytes of page {index} are not zero"
            );
        }
        fixture.process.resources.slot_of(memory).revoke()?;
    }
    // In other pieces: nothing of what was there is found by the objects.
    memory.retype(ObjectType::Tcb, first, 2)?;
    let tcb: Tcb = first.capability();
    let context = tcb.read_registers(false)?;
    ensure_eq!(context, sandglass::context::UserContext::default());
    memory
        .retype(
            ObjectType::CNode(8),
            first.root().slot(first.index() + 2),
            1,
        )
        .map_err(SetupError::from)?;
    let cnode = CNode::at(first.index() + 2);
    for index in 0..256 {
        ensure!(fixture.is_empty(cnode.slot_at(index, 8))?);
    }
    Ok(())
}

/// A thread that reads a page finds it gone.
fn unmaps(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let memory = resources.untyped(12)?;
    let slot = resources.allocate_slot()?;
    let handler = resources.endpoint()?;
    let reply = resources.reply()?;
    memory.retype(ObjectType::Page, slot, 1)?;
    let process = &mut fixture.process;
    let address = process.space.map_frame(
        &mut process.resources,
        slot.capability(),
        FrameSize::Small,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )?;
    // SAFETY: just mapped.
    unsafe { (address as *mut u8).write_volatile(1) };
    process.resources.slot_of(memory).revoke()?;
    let context = fixture.context(FULL)?;
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..ThreadParams::new(100, context)
    };
    fixture.spawn(params, move || {
        // SAFETY: faults for good.
        unsafe { (address as *const u8).read_volatile() };
    })?;
    let fault = Fault::decode(&handler.recv(reply).message);
    ensure!(
        matches!(fault, Some(Fault::Memory { address: at, .. }) if at == address),
        "{fault:?}"
    );
    Ok(())
}

/// Threads that wait at an endpoint that is deleted try again, and find nothing there.
fn waiters(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let memory = resources.untyped(12)?;
    let slot = resources.allocate_slot()?;
    let handler = resources.endpoint()?;
    let reply = resources.reply()?;
    memory.retype(ObjectType::Endpoint, slot, 1)?;
    let endpoint: Endpoint = slot.capability();
    for _ in 0..3 {
        let context = fixture.context(FULL)?;
        let params = ThreadParams {
            fault_handler: Some(handler),
            ..ThreadParams::new(100, context)
        };
        fixture.spawn(params, move || {
            endpoint.wait();
        })?;
    }
    fixture.settle();
    fixture.process.resources.slot_of(memory).revoke()?;
    for _ in 0..3 {
        let fault = Fault::decode(&handler.recv(reply).message);
        ensure!(
            matches!(fault, Some(Fault::Capability { address, in_receive_phase: true, .. })
                if address == endpoint.address()),
            "{fault:?}"
        );
    }
    Ok(())
}

/// A context whose last capability goes leaves its thread without time.
fn last(fixture: &mut Fixture) -> TestResult {
    let context = fixture.context(FULL)?;
    let copy = fixture.process.resources.copy(context, Rights::ALL)?;
    let go = fixture.process.resources.notification()?;
    let count: &core::sync::atomic::AtomicU64 = sandglass::testing::shared();
    fixture.spawn(ThreadParams::new(100, context), move || loop {
        go.wait();
        count.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    })?;
    let seen = || count.load(core::sync::atomic::Ordering::Relaxed);
    fixture.settle();
    fixture.process.resources.delete(context)?;
    go.signal();
    fixture.settle();
    ensure_eq!(seen(), 1);
    fixture.process.resources.delete(copy)?;
    go.signal();
    fixture.settle();
    ensure_eq!(seen(), 1);
    Ok(())
}

fn untyped_copy(fixture: &mut Fixture) -> TestResult {
    let memory = fixture.process.resources.untyped(14)?;
    let s = slots(fixture, 2)?;
    memory.retype(ObjectType::Endpoint, s[0], 1)?;
    let original = fixture.process.resources.slot_of(memory);
    let refused = s[1].copy_from(original, Rights::ALL).err();
    ensure!(refused.is_some_and(|error| error.kind == ErrorKind::RevokeFirst));
    s[0].delete()?;
    s[1].copy_from(original, Rights::ALL)?;
    // Now the original has a child, which owns the memory.
    let refused = memory.retype(ObjectType::Endpoint, s[0], 1).err();
    ensure!(refused.is_some_and(|error| matches!(error.kind, ErrorKind::NotEnoughMemory { .. })));
    original.revoke()?;
    ensure!(fixture.is_empty(s[1])?);
    memory.retype(ObjectType::Endpoint, s[0], 1)?;
    Ok(())
}
