//! 02, section 7.1: what else deletion does, kind by kind.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{PageTable, Pml4};
use sandglass::context::UserContext;

use super::support::{delete, free_bytes, irq_handler, unmapped_pages};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/7.1/a-deleted-thread-leaves-its-queue", tcb_queue),
    check("02/7.1/a-deleted-thread-stops", tcb_stops),
    check("02/7.1/a-deleted-thread-unbinds", tcb_bindings),
    check("02/7.1/a-deleted-thread-ends-yields-to-it", tcb_yield),
    check("02/7.1/a-copy's-deletion-leaves-the-cnode", cnode_copy),
    check("02/7.1/a-deleted-context-unbinds", context_bindings),
    check(
        "02/7.1/a-deleted-irq-handler-frees-its-interrupt",
        irq_handlers,
    ),
    check("02/7.1/a-deleted-asid-pool-empties-its-spaces", asid_pools),
    check("02/7.1/a-deleted-vspace-frees-its-asid", vspace_asid),
    check("02/7.1/a-deleted-page-table-is-unmapped", page_tables),
    check("02/7.1/a-deleted-frame-capability-is-unmapped", frames),
    check("02/7.1/a-replaced-mapping-is-left", replaced_mapping),
    check("02/7.1/a-deleted-untyped-leaves-its-objects", untypeds),
];

fn tcb_queue(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let sender = f.helper(100, move || endpoint.send(Message::new(5, [])))?;
    f.settle()?;
    delete(f, sender)?;
    ensure_eq!(endpoint.nb_wait().message.label(), 0);
    let receiver = f.helper(100, move || {
        endpoint.wait();
    })?;
    let trace = Trace::leak();
    f.helper(99, move || trace.note(endpoint.wait().message.label()))?;
    f.settle()?;
    // The next receiver gets the message.
    delete(f, receiver)?;
    endpoint.nb_send(Message::new(6, []));
    f.settle()?;
    ensure_eq!(trace.events(), [6]);
    Ok(())
}

fn tcb_stops(f: &mut Fixture) -> TestResult {
    let count: &AtomicU64 = shared();
    let tcb = f.helper(100, move || loop {
        count.fetch_add(1, Relaxed);
    })?;
    let copy = f.copy(tcb)?;
    delete(f, tcb)?;
    f.sleep(200)?;
    let before = count.load(Relaxed);
    ensure!(before > 0);
    f.sleep(200)?;
    ensure!(count.load(Relaxed) > before, "a copy's deletion stopped it");
    delete(f, copy)?;
    let before = count.load(Relaxed);
    f.sleep(200)?;
    ensure_eq!(count.load(Relaxed), before);
    Ok(())
}

fn tcb_bindings(f: &mut Fixture) -> TestResult {
    let (tcb, other, notification) = (f.tcb()?, f.tcb()?, f.notification()?);
    let context = f.context(FULL)?;
    tcb.bind_notification(notification)?;
    context.bind(tcb)?;
    let copy = f.copy(tcb)?;
    let bind_notification = Invocation::new(
        other,
        label::TCB_BIND_NOTIFICATION,
        &[],
        &[notification.cptr()],
    );
    let bind = Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[other.cptr()]);
    delete(f, tcb)?;
    bind_notification.expect_error(IllegalOperation, &[])?;
    bind.expect_error(IllegalOperation, &[])?;
    delete(f, copy)?;
    bind_notification.expect_ok(&[])?;
    bind.expect_ok(&[])
}

fn tcb_yield(f: &mut Fixture) -> TestResult {
    let context = f.context(FULL)?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let target = f.spawn(params, || spin())?;
    let trace = Trace::leak();
    let params = ThreadParams {
        mcp: 100,
        ..f.active(100)?
    };
    f.spawn(params, move || {
        let answer = Invocation::new(context, label::SCHED_CONTEXT_YIELD_TO, &[], &[]).call();
        trace.note(answer.label);
        trace.note(answer.words.len() as u64);
    })?;
    f.sleep(300)?;
    delete(f, target)?;
    f.settle()?;
    ensure_eq!(trace.events(), [0, 1]);
    Ok(())
}

fn cnode_copy(f: &mut Fixture) -> TestResult {
    let (cnode, endpoint) = (f.cnode(1)?, f.endpoint()?);
    cnode.slot_at(0, 1).move_from(f.slot_of(endpoint))?;
    // Another guard makes no other CNode.
    let guarded = f.badged(cnode, GuardData::new(1, 1).raw())?;
    delete(f, cnode)?;
    guarded.slot_at(0b10, 2).cancel_badged_sends()?;
    Ok(())
}

fn context_bindings(f: &mut Fixture) -> TestResult {
    let (context, other) = (f.context(FULL)?, f.context(FULL)?);
    let notification = f.notification()?;
    context.bind_notification(notification)?;
    let count: &AtomicU64 = shared();
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let tcb = f.spawn(params, move || loop {
        count.fetch_add(1, Relaxed);
    })?;
    f.sleep(200)?;
    ensure!(count.load(Relaxed) > 0);
    delete(f, context)?;
    let before = count.load(Relaxed);
    f.sleep(200)?;
    ensure_eq!(count.load(Relaxed), before);
    other.bind_notification(notification)?;
    other.bind(tcb)?;
    f.sleep(200)?;
    ensure!(count.load(Relaxed) > before);
    Ok(())
}

fn irq_handlers(f: &mut Fixture) -> TestResult {
    const VECTOR: u64 = 70;
    let trace = Trace::leak();
    let handler = irq_handler(f, VECTOR)?;
    let again = |f: &mut Fixture| {
        let slot = f.empty_slot()?;
        let (label, words) = conformance_kit::arch::get_irq(VECTOR, slot);
        let caps = [boot::CNODE.cptr()];
        Ok::<_, SetupError>(Invocation::new(boot::IRQ_CONTROL, label, &words, &caps))
    };
    let notification = f.notification()?;
    f.helper(100, move || {
        notification.wait();
        trace.note(1);
    })?;
    f.settle()?;
    let set = Invocation::new(
        handler,
        label::IRQ_HANDLER_SET_NOTIFICATION,
        &[],
        &[notification.cptr()],
    );
    set.expect_ok(&[])?;
    let copy = f.copy(handler)?;
    again(f)?.expect_error(RevokeFirst, &[])?;
    delete(f, handler)?;
    again(f)?.expect_error(RevokeFirst, &[])?;
    delete(f, copy)?;
    again(f)?.expect_ok(&[])?;
    ensure_eq!(trace.events(), []);
    notification.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn asid_pools(f: &mut Fixture) -> TestResult {
    let (memory, pool) = (f.untyped(12)?, f.empty_slot()?);
    boot::ASID_CONTROL.make_pool(memory, pool)?;
    let root: Pml4 = f.pml4()?;
    let assign = Invocation::new(
        pool.capability::<CPtr>(),
        arch_label::ASID_POOL_ASSIGN,
        &[],
        &[root.cptr()],
    );
    assign.expect_ok(&[])?;
    let space = sandglass::vspace::VSpace::from_root(root);
    f.code_in(space, 0x1000, &conformance_kit::arch::STOP)?;
    let (handler, reply) = (f.endpoint()?, f.reply()?);
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..f.active(253)?
    };
    let tcb = f.raw_thread(params, &UserContext::start(0x1000, 0, 0, 0))?;
    tcb.set_space(Some(handler), boot::CNODE, GuardData(0), root)?;
    tcb.resume()?;
    let stopped = f.stopped(tcb, handler, reply)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    delete(f, pool.capability::<CPtr>())?;
    // Its address space has lost all translations, and has no ASID to find it by.
    tcb.resume()?;
    let stopped = f.stopped(tcb, handler, reply)?;
    ensure_eq!((stopped.label, stopped.words[1]), (fault::VM_FAULT, 0x1000));
    let frame = f.frame(FrameSize::Small)?;
    let map = Invocation::new(frame, arch_label::PAGE_MAP, &[0x2000, 3, 0], &[root.cptr()]);
    map.expect_error(FailedLookup, &[0, 1])
}

fn vspace_asid(f: &mut Fixture) -> TestResult {
    let first = f.vspace()?;
    let frame = f.code_in(first, 0x1000, &[])?;
    let copy = f.copy(first.root())?;
    delete(f, first.root())?;
    let map = |root: Pml4| {
        let words = [0x1000, 3, 0];
        Invocation::new(frame, arch_label::PAGE_MAP, &words, &[root.cptr()])
    };
    // The frame is mapped in the first, which another capability keeps.
    let second = f.vspace()?;
    map(second.root()).expect_error(InvalidCapability, &[1])?;
    delete(f, copy)?;
    // The lowest free ASID is the one that the frame remembers (07, section 8).
    let third = f.vspace()?;
    map(third.root()).expect_error(FailedLookup, &[0, 2, 39])?;
    map(second.root()).expect_error(InvalidCapability, &[1])
}

fn page_tables(f: &mut Fixture) -> TestResult {
    let space = f.vspace()?;
    f.code_in(space, 0x1000, &[])?;
    let frame = f.frame(FrameSize::Small)?;
    let words = [0x40_1000, 3, 0];
    let map = Invocation::new(frame, arch_label::PAGE_MAP, &words, &[space.root().cptr()]);
    map.expect_error(FailedLookup, &[0, 2, 21])?;
    let table: PageTable = f.make(ObjectType::PageTable)?;
    table.map(space.root(), 0x40_0000, Attributes::WriteBack)?;
    let copy = f.copy(table)?;
    delete(f, table)?;
    map.expect_ok(&[])?;
    delete(f, copy)?;
    map.expect_error(FailedLookup, &[0, 2, 21])
}

fn frames(f: &mut Fixture) -> TestResult {
    let prober = f.prober()?;
    let (frame, address) = (f.frame(FrameSize::Small)?, unmapped_pages(f, 3)?);
    let (first, second) = (f.copy(frame)?, f.copy(frame)?);
    let root = boot::VSPACE;
    for (cap, page) in [(frame, 0), (first, 0x1000), (second, 0x2000)] {
        cap.map(root, address + page, Rights::ALL, Attributes::WriteBack)?;
    }
    let mapped = |f: &Fixture| {
        let can = |page| prober.can_load(f, address + page);
        Ok::<_, Failure>([can(0)?, can(0x1000)?, can(0x2000)?])
    };
    ensure_eq!(mapped(f)?, [true, true, true]);
    delete(f, first)?;
    ensure_eq!(mapped(f)?, [true, false, true]);
    delete(f, frame)?;
    ensure_eq!(mapped(f)?, [false, false, true]);
    delete(f, second)?;
    ensure_eq!(mapped(f)?, [false, false, false]);
    Ok(())
}

fn replaced_mapping(f: &mut Fixture) -> TestResult {
    let prober = f.prober()?;
    let address = unmapped_pages(f, 1)?;
    let (old, new) = (f.frame(FrameSize::Small)?, f.frame(FrameSize::Small)?);
    for frame in [old, new] {
        frame.map(boot::VSPACE, address, Rights::ALL, Attributes::WriteBack)?;
    }
    // The first capability remembers the address, at which there is another frame now.
    delete(f, old)?;
    ensure!(prober.can_load(f, address)?);
    delete(f, new)?;
    ensure!(!prober.can_load(f, address)?);
    Ok(())
}

fn untypeds(f: &mut Fixture) -> TestResult {
    let parent = f.untyped(8)?;
    let (child, slot) = (f.empty_slot()?, f.empty_slot()?);
    parent.retype(ObjectType::Untyped(7), child, 1)?;
    child
        .capability::<Untyped>()
        .retype(ObjectType::Endpoint, slot, 1)?;
    child.delete()?;
    slot.cancel_badged_sends()?;
    // The object is now the parent's own child.
    ensure_eq!(free_bytes(f, parent)?, 0x80);
    slot.delete()?;
    ensure_eq!(free_bytes(f, parent)?, 0x100);
    Ok(())
}
