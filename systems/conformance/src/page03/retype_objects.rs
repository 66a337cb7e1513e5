//! 03, section 3, effect of Untyped_Retype: the state of new objects and their place among the
//! derived capabilities.

use conformance_kit::arch::order::{COUNT, RFLAGS};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/4.0/new-tcb", new_tcb),
    check("03/3/new-endpoint", new_endpoint),
    check("03/3/new-notification", new_notification),
    check("03/3/new-cnode", new_cnode),
    check("03/3/new-scheduling-context", new_context),
    check("03/3/new-reply", new_reply),
    check("03/3/new-frame", new_frame),
    check("03/3/new-device-frame", new_device_frame),
    check("03/3/new-paging-structures", new_paging_structures),
    check("03/3/new-untyped", new_untyped),
    check("03/3/new-device-untyped", new_device_untyped),
    check("03/3/new-capabilities-are-children", children),
    check("03/3/new-capabilities-are-originals", originals),
];

fn new_tcb(f: &mut Fixture) -> TestResult {
    let (tcb, context) = (f.tcb()?, f.context(FULL)?);
    let invoke = |label, words: &[u64]| Invocation::new(tcb, label, words, &[]);
    let mut registers = [0; COUNT];
    registers[RFLAGS] = sanitised(RFLAGS, 0);
    invoke(label::TCB_READ_REGISTERS, &[0, COUNT as u64]).expect_ok(&registers)?;
    invoke(label::TCB_SET_FLAGS, &[0, 0]).expect_ok(&[0])?;
    invoke(label::TCB_UNBIND_NOTIFICATION, &[]).expect_error(IllegalOperation, &[])?;
    // Its MCP.
    let set = Invocation::new(f.tcb()?, label::TCB_SET_PRIORITY, &[1], &[tcb.cptr()]);
    set.expect_error(RangeError, &[0, 0])?;
    // It has no context.
    context.bind(tcb)?;
    Ok(())
}

fn new_endpoint(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    ensure_eq!(endpoint.nb_recv(reply).badge, 0);
    endpoint.nb_send(Message::new(7, [1]));
    ensure_eq!(endpoint.nb_recv(reply).message.len(), 0);
    // All rights: it can be a fault handler, cancel sends, be sent to and received from.
    Invocation::new(
        boot::CNODE,
        label::CNODE_CANCEL_BADGED_SENDS,
        &[endpoint.address(), 64],
        &[],
    )
    .expect_ok(&[])?;
    f.helper(100, move || {
        endpoint.send(Message::new(7, [5]));
    })?;
    f.settle()?;
    let received = endpoint.recv(reply);
    ensure_eq!((received.badge, received.message.word(0)), (0, 5));
    f.badged(endpoint, 5)?;
    Ok(())
}

fn new_notification(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    ensure_eq!(notification.poll(), 0);
    // Badge 0: signals set no flag, and a badge can be given.
    notification.signal();
    ensure_eq!(notification.wait(), 0);
    f.badged(notification, 6)?.signal();
    ensure_eq!(notification.poll(), 6);
    // Not bound to any thread or context.
    let tcb = f.tcb()?;
    tcb.bind_notification(notification)?;
    f.context(FULL)?.bind_notification(notification)?;
    Ok(())
}

fn new_cnode(f: &mut Fixture) -> TestResult {
    const RADIX: u64 = 3;
    let cnode = f.cnode(RADIX as u32)?;
    for index in 0..1 << RADIX {
        let slot = cnode.slot_at(index, RADIX as u8);
        ensure!(f.is_empty(slot)?, "slot {index} is not empty");
    }
    // A guard of size 0: the radix is all that is resolved.
    let depth_mismatch = LookupFailureType::DepthMismatch as u64;
    let delete = Invocation::new(cnode, label::CNODE_DELETE, &[0, RADIX], &[]);
    delete.expect_ok(&[])?;
    delete
        .with_word(1, RADIX + 1)
        .expect_error(FailedLookup, &[0, depth_mismatch, 1, 0])?;
    delete
        .with_word(1, RADIX - 1)
        .expect_error(FailedLookup, &[0, depth_mismatch, RADIX - 1, RADIX])
}

fn new_context(f: &mut Fixture) -> TestResult {
    let context = f.unconfigured_context(7)?;
    let consumed = Invocation::new(context, label::SCHED_CONTEXT_CONSUMED, &[], &[]);
    consumed.expect_ok(&[0])?;
    // Bound to a thread, it does not let it run; not before it is configured.
    let done = f.done;
    let tcb = f.spawn(f.passive(253), move || done.signal())?;
    context.bind(tcb)?;
    f.settle()?;
    ensure_eq!(done.poll(), 0);
    f.control.configure(context, FULL)?;
    done.wait();
    Ok(())
}

fn new_reply(f: &mut Fixture) -> TestResult {
    let reply = f.reply()?;
    // Unused: an answer goes nowhere.
    let answer = Invocation::new(reply, 7, &[1, 2], &[]).call();
    ensure_eq!((answer.label, answer.words.len()), (0, 0));
    // With the right to grant: an answer may carry a capability.
    let (endpoint, gift, done) = (f.endpoint()?, f.endpoint()?, f.done);
    let slot = f.empty_slot()?;
    f.helper(100, move || {
        sandglass::thread_block::set_receive_slot(slot);
        endpoint.call(Message::EMPTY);
        done.signal();
    })?;
    endpoint.recv(reply);
    reply.send(Message::EMPTY.with_caps(&[gift.cptr()]));
    done.wait();
    ensure!(!f.is_empty(slot)?, "no capability came with the answer");
    Ok(())
}

fn new_frame(f: &mut Fixture) -> TestResult {
    let sizes = [
        (FrameSize::Small, 0x48_0000_0000),
        (FrameSize::Large, 0x48_4000_0000),
    ];
    for (size, vaddr) in sizes {
        let frame = f.frame(size)?;
        // Not mapped: it can be mapped anywhere, and unmapping it does nothing.
        frame.unmap()?;
        let process = &mut f.process;
        process.space.vspace().map(
            &mut process.resources,
            frame,
            vaddr,
            Rights::ALL,
            Attributes::WriteBack,
        )?;
        // SAFETY: mapped to fresh memory, and used by nobody else.
        let word = unsafe { &mut *(vaddr as *mut u64) };
        ensure_eq!(*word, 0);
        *word = 1;
    }
    Ok(())
}

fn new_device_frame(f: &mut Fixture) -> TestResult {
    let device = f.device_untyped(12)?;
    let frame = f.empty_slot()?;
    device.retype(ObjectType::Page, frame, 1)?;
    let set = Invocation::new(
        f.tcb()?,
        label::TCB_SET_IPC_BUFFER,
        &[0x1000],
        &[frame.capability()],
    );
    set.expect_error(IllegalOperation, &[])?;
    let ram = f.frame(FrameSize::Small)?;
    set.with_cap(0, ram).expect_ok(&[])
}

/// Those that are not mapped, or have no ASID, cannot be copied (02, section 6.2).
fn new_paging_structures(f: &mut Fixture) -> TestResult {
    for kind in [
        ObjectType::Pml4,
        ObjectType::Pdpt,
        ObjectType::PageDirectory,
        ObjectType::PageTable,
    ] {
        let (structure, free): (CPtr, Slot) = (f.make(kind)?, f.empty_slot()?);
        let words = [free.index(), 64, structure.raw(), 64, Rights::ALL.raw()];
        let copy = Invocation::new(
            boot::CNODE,
            label::CNODE_COPY,
            &words,
            &[boot::CNODE.cptr()],
        );
        copy.expect_error(IllegalOperation, &[])?;
        if kind == ObjectType::Pml4 {
            Invocation::new(
                boot::ASID_POOL,
                arch_label::ASID_POOL_ASSIGN,
                &[],
                &[structure],
            )
            .expect_ok(&[])?;
            copy.expect_ok(&[])?;
        }
    }
    Ok(())
}

fn new_untyped(f: &mut Fixture) -> TestResult {
    let parent = f.untyped(14)?;
    let first = f.empty_slots(6)?;
    let slot = |i| boot::CNODE.slot(first.index() + i);
    parent.retype(ObjectType::Untyped(13), slot(0), 1)?;
    let child: Untyped = slot(0).capability();
    let retype = Invocation::new(
        child,
        label::UNTYPED_RETYPE,
        &[object::TCB, 0, 0, 0, slot(1).index(), 5],
        &[boot::CNODE.cptr()],
    );
    retype.expect_error(NotEnoughMemory, &[8192])?;
    retype.with_word(5, 4).expect_ok(&[])
}

fn new_device_untyped(f: &mut Fixture) -> TestResult {
    let device = f.device_untyped(13)?;
    let first = f.empty_slots(2)?;
    device.retype(ObjectType::Untyped(12), first, 1)?;
    let second = boot::CNODE.slot(first.index() + 1);
    let words = [object::ENDPOINT, 0, 0, 0, second.index(), 1];
    let retype = Invocation::new(
        first.capability::<Untyped>(),
        label::UNTYPED_RETYPE,
        &words,
        &[boot::CNODE.cptr()],
    );
    retype.expect_error(InvalidArgument, &[1])?;
    retype.with_word(0, arch_object::PAGE).expect_ok(&[])
}

/// Whatever a Retype made goes when the untyped is revoked, wherever it was moved to.
fn children(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(14)?;
    let first = f.empty_slots(5)?;
    let slot = |i| boot::CNODE.slot(first.index() + i);
    untyped.retype(ObjectType::Endpoint, slot(0), 2)?;
    untyped.retype(ObjectType::Untyped(12), slot(2), 1)?;
    let child: Untyped = slot(2).capability();
    child.retype(ObjectType::Notification, slot(3), 1)?;
    slot(4).move_from(slot(1))?;
    f.slot_of(child).revoke()?;
    for (index, empty) in [(0, false), (2, false), (3, true), (4, false)] {
        ensure_eq!((index, f.is_empty(slot(index))?), (index, empty));
    }
    f.slot_of(untyped).revoke()?;
    for index in 0..5 {
        ensure!(f.is_empty(slot(index))?, "child {index} was not revoked");
    }
    Ok(())
}

/// Revoking what a Retype made takes the copies of this object, and of no other.
fn originals(f: &mut Fixture) -> TestResult {
    let untyped = f.untyped(16)?;
    for kind in [
        ObjectType::Endpoint,
        ObjectType::Notification,
        ObjectType::Tcb,
        ObjectType::CNode(2),
        ObjectType::SchedContext(7),
        ObjectType::Reply,
        ObjectType::Page,
    ] {
        let first = f.empty_slots(3)?;
        untyped.retype(kind, first, 3)?;
        let copies = f.empty_slots(3)?;
        let slot = |of: Slot, i| boot::CNODE.slot(of.index() + i);
        for i in 0..3 {
            slot(copies, i).copy_from(slot(first, i), Rights::ALL)?;
        }
        slot(first, 1).revoke()?;
        for i in 0..3 {
            ensure!(!f.is_empty(slot(first, i))?, "{kind:?} {i} is gone");
            ensure_eq!((kind, i, f.is_empty(slot(copies, i))?), (kind, i, i == 1));
        }
    }
    Ok(())
}
