//! 02, sections 5.3 and 7: finality, zombies, and revocation.

use sandglass::cap::PageTable;
use sandglass::error::ErrorKind;
use sandglass::sys;

use super::support::{alive, delete, free_bytes, revoke, unmapped_pages};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "02/5.3/finality-is-a-matter-of-both-neighbours",
        both_neighbours,
    ),
    check(
        "02/5.3/a-capability-in-a-thread-keeps-its-object",
        thread_slots_keep,
    ),
    check(
        "02/5.3/a-capability-in-a-thread-is-revoked",
        thread_slots_revoked,
    ),
    check(
        "02/5.3/a-capability-in-a-handler-keeps-its-object",
        irq_slot_keeps,
    ),
    check(
        "02/5.3/a-capability-in-a-handler-is-revoked",
        irq_slot_revoked,
    ),
    check("02/5.3/a-final-cspace-is-not-replaced", final_cspace),
    check("02/7.1/a-zombie-occupies-its-slot", zombies),
    check("02/7.1/a-cnode-in-itself-can-be-revoked", cyclic_cnode),
    check(
        "02/7.2/revoke-keeps-the-capability-itself",
        revoke_keeps_itself,
    ),
    check(
        "02/7.2/revoked-memory-is-used-again-from-its-start",
        memory_again,
    ),
    check("02/7.2/a-long-revoke-lets-others-run-and-ends", long_revoke),
    check("02/7.3/a-thread-deletes-itself", own_thread),
    check("02/7.3/a-thread-revokes-its-own-memory", own_memory),
    check("02/7.3/a-thread-deletes-its-cspace", own_cspace),
];

fn both_neighbours(f: &mut Fixture) -> TestResult {
    // Unmap works on the last capability of a page table only (03, section 8.2).
    let space = f.vspace()?;
    f.code_in(space, 0x1000, &[])?;
    let table: PageTable = f.make(ObjectType::PageTable)?;
    table.map(space.root(), 0x40_0000, Attributes::WriteBack)?;
    let (second, third) = (f.copy(table)?, f.copy(table)?);
    // table, third, second: the middle has two neighbours, the ends one each.
    let unmap = Invocation::new(table, arch_label::PAGE_TABLE_UNMAP, &[], &[]);
    for cap in [table, third, second] {
        unmap.on(cap).expect_error(RevokeFirst, &[])?;
    }
    delete(f, third)?;
    unmap.expect_error(RevokeFirst, &[])?;
    unmap.on(second).expect_error(RevokeFirst, &[])?;
    delete(f, table)?;
    unmap.on(second).expect_ok(&[])
}

fn thread_slots_keep(f: &mut Fixture) -> TestResult {
    let (cnode, endpoint, tcb) = (f.cnode(1)?, f.endpoint()?, f.tcb()?);
    let trace = Trace::leak();
    let space = f.vspace()?;
    f.helper(100, move || {
        endpoint.call(Message::EMPTY);
        trace.note(1);
    })?;
    f.settle()?;
    cnode.slot_at(0, 1).move_from(f.slot_of(endpoint))?;
    tcb.set_space(None, cnode, GuardData::new(0, 63), space.root())?;
    delete(f, cnode)?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    delete(f, tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    Ok(())
}

fn thread_slots_revoked(f: &mut Fixture) -> TestResult {
    let (endpoint, never) = (f.endpoint()?, f.notification()?);
    let params = ThreadParams {
        fault_handler: Some(endpoint),
        ..f.active(100)?
    };
    // Without its handler a thread that faults stops, and nobody hears of it.
    f.spawn(params, move || {
        never.wait();
        sandglass::exit::stop();
    })?;
    f.settle()?;
    revoke(f, endpoint)?;
    never.signal();
    f.settle()?;
    let nobody = endpoint.nb_wait();
    ensure_eq!((nobody.badge, nobody.message.label()), (0, 0));
    Ok(())
}

/// A notification for which a thread waits, which faults once the notification is deleted; and
/// where the fault arrives.
fn watched_notification(f: &mut Fixture) -> Result<(Notification, Endpoint), Failure> {
    let (notification, handler) = (f.notification()?, f.endpoint()?);
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..f.active(100)?
    };
    f.spawn(params, move || {
        notification.wait();
    })?;
    f.settle()?;
    Ok((notification, handler))
}

fn irq_slot_keeps(f: &mut Fixture) -> TestResult {
    let handler = super::support::irq_handler(f, 75)?;
    let (notification, faults) = watched_notification(f)?;
    let set = Invocation::new(
        handler,
        label::IRQ_HANDLER_SET_NOTIFICATION,
        &[],
        &[notification.cptr()],
    );
    set.expect_ok(&[])?;
    delete(f, notification)?;
    f.settle()?;
    ensure_eq!(faults.nb_wait().message.label(), 0);
    set.with_label(label::IRQ_HANDLER_CLEAR).expect_ok(&[])?;
    f.settle()?;
    ensure_eq!(faults.nb_wait().message.label(), fault::CAP_FAULT);
    Ok(())
}

fn irq_slot_revoked(f: &mut Fixture) -> TestResult {
    let handler = super::support::irq_handler(f, 76)?;
    let (notification, faults) = watched_notification(f)?;
    let set = Invocation::new(
        handler,
        label::IRQ_HANDLER_SET_NOTIFICATION,
        &[],
        &[notification.cptr()],
    );
    set.expect_ok(&[])?;
    revoke(f, notification)?;
    f.settle()?;
    ensure_eq!(faults.nb_wait().message.label(), 0);
    // Nothing else keeps it now.
    delete(f, notification)?;
    f.settle()?;
    ensure_eq!(faults.nb_wait().message.label(), fault::CAP_FAULT);
    Ok(())
}

fn final_cspace(f: &mut Fixture) -> TestResult {
    let (cnode, tcb, space) = (f.cnode(1)?, f.tcb()?, f.vspace()?);
    let copy = f.copy(cnode)?;
    let set = Invocation::new(
        tcb,
        label::TCB_SET_SPACE,
        &[0, 0],
        &[f.null::<CPtr>()?, boot::CNODE.cptr(), space.root().cptr()],
    );
    tcb.set_space(None, cnode, GuardData(0), space.root())?;
    delete(f, cnode)?;
    set.expect_ok(&[])?;
    tcb.set_space(None, copy, GuardData(0), space.root())?;
    delete(f, copy)?;
    // The thread now holds the CNode's last capability (03, section 4.4).
    set.expect_error(IllegalOperation, &[])
}

/// A thread above the check's that runs `body` every 100 µs, after a first pause, until it says so.
fn interloper(f: &mut Fixture, body: impl Fn() -> bool + Send + 'static) -> TestResult {
    let params = f.active_on(255, SchedParams::new(60, 100))?;
    f.spawn(params, move || loop {
        sys::yield_now();
        if body() {
            return;
        }
    })?;
    Ok(())
}

fn zombies(f: &mut Fixture) -> TestResult {
    let (cnode, trace) = (f.cnode(12)?, Trace::leak());
    let tcb = f.tcb()?;
    // Something to delete in each slot.
    let source = f.slot_of(tcb);
    for index in 0..1 << 12 {
        cnode.slot_at(index, 12).copy_from(source, Rights::ALL)?;
    }
    let (slot, free) = (f.slot_of(cnode), f.empty_slot()?);
    interloper(f, move || {
        // Nothing of this allocates: it is only noted which errors come.
        let error = |result: Result<(), sandglass::Error>| match result {
            Ok(()) => 0,
            Err(error) => match error.kind {
                ErrorKind::IllegalOperation => IllegalOperation as u64,
                ErrorKind::DeleteFirst => DeleteFirst as u64,
                _ => u64::MAX,
            },
        };
        trace.note(error(free.copy_from(slot, Rights::ALL)));
        trace.note(error(slot.copy_from(source, Rights::ALL)));
        let answer = cnode.cptr();
        let info = sandglass::abi::message::MessageInfo::new(label::CNODE_DELETE, 0, 0, 2);
        let answer = sys::call(answer.raw(), info, [0, 12, 0, 0]);
        trace.note(answer.info.label());
        trace.note(answer.registers[0]);
        true
    })?;
    delete(f, cnode)?;
    let illegal = IllegalOperation as u64;
    let expected = [illegal, DeleteFirst as u64, InvalidCapability as u64, 0];
    ensure_eq!(trace.events(), expected);
    ensure_eq!(alive(f, [cnode.cptr()])?, [false]);
    // All of its contents are gone: the thread's capability is the last one again.
    let copy = f.copy(tcb)?;
    revoke(f, tcb)?;
    ensure_eq!(alive(f, [tcb.cptr(), copy.cptr()])?, [true, false]);
    Ok(())
}

fn cyclic_cnode(f: &mut Fixture) -> TestResult {
    let memory = f.untyped(12)?;
    let slots = f.empty_slots(2)?;
    memory.retype(ObjectType::CNode(3), slots, 2)?;
    let (one, two) = (CNode::at(slots.index()), CNode::at(slots.index() + 1));
    // Each holds the last capability of the other, or of itself.
    one.slot_at(5, 3).copy_from(f.slot_of(two), Rights::ALL)?;
    two.slot_at(6, 3).copy_from(f.slot_of(one), Rights::ALL)?;
    one.slot_at(7, 3).copy_from(f.slot_of(one), Rights::ALL)?;
    delete(f, one)?;
    delete(f, two)?;
    revoke(f, memory)?;
    ensure_eq!(free_bytes(f, memory)?, 0x1000);
    memory.retype(ObjectType::CNode(7), slots, 1)?;
    Ok(())
}

fn revoke_keeps_itself(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let badged = f.badged(endpoint, 3)?;
    revoke(f, endpoint)?;
    ensure_eq!(alive(f, [endpoint.cptr(), badged.cptr()])?, [true, false]);
    // It is still revocable.
    let badged = f.badged(endpoint, 3)?;
    revoke(f, endpoint)?;
    ensure_eq!(alive(f, [endpoint.cptr(), badged.cptr()])?, [true, false]);
    Ok(())
}

fn memory_again(f: &mut Fixture) -> TestResult {
    let (memory, slot) = (f.untyped(13)?, f.empty_slot()?);
    let address = unmapped_pages(f, 1)?;
    let mut physical = None;
    for _ in 0..2 {
        memory.retype(ObjectType::Page, slot, 1)?;
        let frame: Frame = slot.capability();
        ensure_eq!(
            frame.physical_address()?,
            *physical.get_or_insert(frame.physical_address()?)
        );
        frame.map(boot::VSPACE, address, Rights::ALL, Attributes::WriteBack)?;
        let words = address as *mut u64;
        for index in [0, 1, 17, 511] {
            // SAFETY: the page is mapped.
            unsafe {
                ensure_eq!(words.add(index).read_volatile(), 0);
                words.add(index).write_volatile(!0);
            }
        }
        ensure_eq!(free_bytes(f, memory)?, 0x1000);
        revoke(f, memory)?;
        ensure_eq!(free_bytes(f, memory)?, 0x2000);
    }
    Ok(())
}

fn long_revoke(f: &mut Fixture) -> TestResult {
    let (cnode, endpoint) = (f.cnode(12)?, f.endpoint()?);
    for index in 0..1 << 12 {
        let slot = cnode.slot_at(index, 12);
        slot.copy_from(f.slot_of(endpoint), Rights::ALL)?;
    }
    let trace = Trace::leak();
    let last = f.slot_of(endpoint);
    interloper(f, move || {
        // Whether anything is left of the copies, which go in order of the list.
        let first = cnode.slot_at(0, 12).cancel_badged_sends().is_ok();
        let newest = cnode
            .slot_at((1 << 12) - 1, 12)
            .cancel_badged_sends()
            .is_ok();
        trace.note(u64::from(first) * 2 + u64::from(newest));
        !first
    })?;
    last.revoke()?;
    let events = trace.events();
    // The newest stands next to the endpoint and goes first.
    ensure_eq!(events.first(), Some(&2));
    for index in [0, 1, 77, 0xfff] {
        ensure!(cnode.slot_at(index, 12).cancel_badged_sends().is_err());
    }
    ensure_eq!(alive(f, [endpoint.cptr()])?, [true]);
    Ok(())
}

fn own_thread(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let context = f.context(FULL)?;
    let cell: &core::sync::atomic::AtomicU64 = shared();
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let tcb = f.prepare(params, move || {
        let index = cell.load(core::sync::atomic::Ordering::Relaxed);
        trace.note(1);
        trace.note(boot::CNODE.slot(index).delete().is_ok().into());
    })?;
    cell.store(tcb.address(), core::sync::atomic::Ordering::Relaxed);
    tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    ensure_eq!(alive(f, [tcb.cptr()])?, [false]);
    // Its context is free.
    Ok(context.bind(f.tcb()?)?)
}

fn own_memory(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
    memory.retype(ObjectType::Tcb, slot, 1)?;
    let tcb: Tcb = slot.capability();
    let params = f.active(100)?;
    // A thread of its own code, stack and buffer, whose TCB lies in the memory that it revokes.
    let model = f.prepare(f.passive(100), move || {
        trace.note(1);
        let _ = boot::CNODE.slot(memory.address()).revoke();
        trace.note(2);
    })?;
    sandglass::thread::configure(&f.process, tcb, params, None)?;
    tcb.write_registers(&model.read_registers(false)?, true)?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    ensure!(f.is_empty(slot)?);
    ensure_eq!(free_bytes(f, memory)?, 0x1000);
    Ok(())
}

fn own_cspace(f: &mut Fixture) -> TestResult {
    let cnode = f.cnode(4)?;
    let root = f.badged(cnode, GuardData::new(0, 60).raw())?;
    let slot = root.slot_at(1, 64);
    slot.copy_from(f.slot_of(cnode), Rights::ALL)?;
    let prober = f.prober()?;
    prober.move_to(root)?;
    delete(f, root)?;
    // Its own invocation deletes the capability by which it was made; the thread's slot remains.
    let mut registers = sandglass::context::UserContext::default();
    use conformance_kit::arch::order;
    registers.set(order::RDI, 1);
    registers.set(order::RSI, label::CNODE_DELETE << 12 | 2);
    registers.set(order::R10, 1);
    registers.set(order::R8, 4);
    let call = sandglass::abi::syscall::Syscall::Call;
    let stopped = prober.system_call(f, call, &registers)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(stopped.registers.get(order::RSI), 0);
    // Now the slot is empty: InvalidCapability(0).
    let stopped = prober.system_call(f, call, &registers)?;
    ensure_eq!(stopped.registers.get(order::RSI), 2 << 12 | 1);
    revoke(f, cnode)?;
    let stopped = prober.system_call(f, call, &registers)?;
    ensure_eq!(stopped.label, fault::CAP_FAULT);
    ensure_eq!(stopped.words[1..], [1, 0, 1]);
    Ok(())
}
