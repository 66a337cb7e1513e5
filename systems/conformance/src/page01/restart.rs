//! 01, sections 5 and 8: restarts, and preemption of long operations.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use conformance_kit::arch::order::{R12, RDI, RIP, RSI};
use conformance_kit::arch::LEFT_BY_CALLS;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "01/5/a-system-call-without-budget-is-made-later-and-once",
        made_once,
    ),
    check(
        "01/8/resume-repeats-the-system-call-of-a-waiting-thread",
        resume_repeats,
    ),
    check(
        "01/8/a-suspended-thread-continues-behind-its-system-call",
        suspend_running,
    ),
    check(
        "01/8/a-suspended-waiting-thread-repeats-its-system-call",
        suspend_waiting,
    ),
    check(
        "01/8/deletion-of-the-endpoint-repeats-the-system-call",
        endpoint_deleted,
    ),
    check(
        "01/8/deletion-of-the-notification-repeats-the-system-call",
        notification_deleted,
    ),
    check(
        "01/8/a-revocation-can-be-preempted-and-completes",
        preempted_revoke,
    ),
    check(
        "01/8/a-deletion-can-be-preempted-and-completes",
        preempted_delete,
    ),
    check(
        "01/8/a-retype-can-be-preempted-and-completes",
        preempted_retype,
    ),
    check("01/5.1/a-zombie-is-invalid", zombie),
    check(
        "01/5/a-preempted-first-phase-restarts-the-system-call",
        preempted_first_phase,
    ),
];

fn made_once(f: &mut Fixture) -> TestResult {
    // Budgets of a constant-bandwidth context end somewhere in a row of system calls.
    const CALLS: u64 = 300;
    let endpoint = f.endpoint()?;
    let (received, wrong): (&'static AtomicU64, &'static AtomicU64) = (shared(), shared());
    f.helper(90, move || loop {
        let word = endpoint.wait().message.word(0);
        if received.fetch_add(1, Relaxed) != word {
            wrong.fetch_add(1, Relaxed);
        }
    })?;
    let params = f.active_on(100, SchedParams::new(25, 150))?;
    let done = f.done;
    f.spawn(params, move || {
        for word in 0..CALLS {
            endpoint.send(Message::new(0, [word]));
        }
        done.signal();
    })?;
    done.wait();
    f.settle()?;
    ensure_eq!((received.load(Relaxed), wrong.load(Relaxed)), (CALLS, 0));
    Ok(())
}

/// A thread that waits in Recv on an endpoint.
fn receiver(f: &mut Fixture) -> Result<(RawThread, UserContext, Endpoint), Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = entry(
        Syscall::Recv,
        &[(RDI, endpoint.address()), (R12, reply.address())],
    );
    let thread = f.caller(&before)?;
    thread.start_and_settle(f)?;
    Ok((thread, before, endpoint))
}

fn resume_repeats(f: &mut Fixture) -> TestResult {
    let (thread, before, endpoint) = receiver(f)?;
    for _ in 0..3 {
        thread.tcb.resume()?;
        ensure!(thread.goes_on_or_waits(f)?);
        ensure_eq!(thread.registers()?.get(RIP), thread.code);
    }
    endpoint.nb_send(Message::EMPTY);
    thread.expect_return(&thread.stopped(f)?, &before, &[(RDI, 0), (RSI, 0)])
}

fn suspend_running(f: &mut Fixture) -> TestResult {
    // A sender whose message was taken is ready, behind its system call.
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = entry(Syscall::Send, &[(RDI, endpoint.address()), (RSI, 0)]);
    let thread = f.caller(&before)?;
    thread.start_and_settle(f)?;
    endpoint.nb_recv(reply);
    thread.tcb.suspend()?;
    ensure_eq!(
        thread.registers()?.get(RIP),
        thread.code + conformance_kit::arch::SYSCALL.len() as u64
    );
    ensure!(thread.goes_on_or_waits(f)?);
    thread.tcb.resume()?;
    thread.expect_return(&thread.stopped(f)?, &before, &[])
}

fn suspend_waiting(f: &mut Fixture) -> TestResult {
    let (thread, before, endpoint) = receiver(f)?;
    thread.tcb.suspend()?;
    ensure_eq!(thread.registers()?.get(RIP), thread.code);
    endpoint.nb_send(Message::EMPTY);
    ensure!(thread.goes_on_or_waits(f)?, "a suspended thread received");
    thread.tcb.resume()?;
    f.settle()?;
    endpoint.nb_send(Message::EMPTY);
    thread.expect_return(&thread.stopped(f)?, &before, &[(RDI, 0), (RSI, 0)])
}

fn endpoint_deleted(f: &mut Fixture) -> TestResult {
    // Repeated, the receive finds nothing there; and so does a send.
    let (thread, _, endpoint) = receiver(f)?;
    f.slot_of(endpoint).delete()?;
    let stopped = thread.stopped(f)?;
    thread.expect_cap_fault(&stopped, endpoint.address(), true, &[2, 0])?;

    for call in [Syscall::Send, Syscall::Call] {
        let endpoint = f.endpoint()?;
        let before = entry(call, &[(RDI, endpoint.address()), (RSI, 0)]);
        let thread = f.caller(&before)?;
        thread.start_and_settle(f)?;
        f.slot_of(endpoint).delete()?;
        let stopped = thread.stopped(f)?;
        let info = MessageInfo::new(InvalidCapability as u64, 0, 0, 1).raw();
        let r10 = conformance_kit::arch::order::R10;
        let produced: &[(usize, u64)] = match call {
            Syscall::Call => &[(RDI, 0), (RSI, info), (r10, 0)],
            _ => &[],
        };
        thread.expect_return(&stopped, &before, produced)?;
    }
    Ok(())
}

fn notification_deleted(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let thread = f.caller(&entry(Syscall::Wait, &[(RDI, notification.address())]))?;
    thread.start_and_settle(f)?;
    f.slot_of(notification).delete()?;
    let stopped = thread.stopped(f)?;
    thread.expect_cap_fault(&stopped, notification.address(), true, &[2, 0])
}

/// Longest time without a run of a thread that wants to run every 100 µs, µs.
const LONGEST_GAP_US: u64 = 400;

/// Makes `operation` by a thread of priority 100, beside one of priority 200 that runs every
/// 100 µs. Fails if the operation took so short a time that nothing can be said, or if the other
/// thread was kept waiting.
fn expect_preempted(f: &mut Fixture, operation: impl Fn() -> bool + Send + 'static) -> TestResult {
    let (runs, gap, ok): (&'static AtomicU64, &'static AtomicU64, &'static AtomicU64) =
        (shared(), shared(), shared());
    let ticker = f.active_on(200, SchedParams::new(50, 100))?;
    f.spawn(ticker, move || {
        let mut last = time::ticks();
        loop {
            sys::yield_now();
            let now = time::ticks();
            gap.fetch_max(now - last, Relaxed);
            last = now;
            runs.fetch_add(1, Relaxed);
        }
    })?;
    let done = f.done;
    f.helper(100, move || {
        let before = runs.load(Relaxed);
        ok.store(u64::from(operation()), Relaxed);
        ok.fetch_add((runs.load(Relaxed) - before) << 1, Relaxed);
        done.signal();
    })?;
    done.wait();
    let (result, during) = (ok.load(Relaxed) & 1, ok.load(Relaxed) >> 1);
    ensure!(result == 1, "the operation failed");
    ensure!(during >= 3, "the other thread ran {during} times meanwhile");
    let longest = f.tsc.ticks_to_us(gap.load(Relaxed));
    ensure!(longest <= LONGEST_GAP_US, "a gap of {longest} µs");
    Ok(())
}

/// A CNode with 2^11 copies of a new endpoint, and the endpoint.
fn copies(f: &mut Fixture) -> Result<(CNode, Endpoint), Failure> {
    const RADIX: u8 = 11;
    let (cnode, endpoint) = (f.cnode(u32::from(RADIX))?, f.endpoint()?);
    let source = f.slot_of(endpoint);
    for index in 0..1 << RADIX {
        cnode.slot_at(index, RADIX).copy_from(source, Rights::ALL)?;
    }
    Ok((cnode, endpoint))
}

fn preempted_revoke(f: &mut Fixture) -> TestResult {
    let (cnode, endpoint) = copies(f)?;
    let slot = f.slot_of(endpoint);
    expect_preempted(f, move || slot.revoke().is_ok())?;
    for index in [0, 1, 1024, 2047] {
        ensure!(f.is_empty(cnode.slot_at(index, 11))?, "a copy is left");
    }
    ensure!(!f.is_empty(slot)?, "the original is gone");
    Ok(())
}

fn preempted_delete(f: &mut Fixture) -> TestResult {
    let (cnode, _) = copies(f)?;
    let slot = f.slot_of(cnode);
    expect_preempted(f, move || slot.delete().is_ok())?;
    ensure!(f.is_empty(slot)?, "the CNode is left");
    Ok(())
}

fn preempted_retype(f: &mut Fixture) -> TestResult {
    // Memory that was used before is cleared in the second Retype.
    const BITS: u32 = 22;
    let (memory, slot) = (f.untyped(BITS)?, f.empty_slot()?);
    memory.retype(ObjectType::Untyped(BITS), slot, 1)?;
    f.slot_of(memory).revoke()?;
    let frame = f.empty_slot()?;
    expect_preempted(f, move || {
        memory.retype(ObjectType::LargePage, frame, 1).is_ok()
    })?;
    ensure!(!f.is_empty(frame)?, "nothing was made");
    Ok(())
}

fn zombie(f: &mut Fixture) -> TestResult {
    // A deletion that is preempted leaves a zombie in the slot.
    let (cnode, _) = copies(f)?;
    let slot = f.slot_of(cnode);
    f.helper(100, move || {
        let _ = slot.delete();
    })?;
    f.sleep(150)?;
    ensure!(!f.is_empty(slot)?, "the deletion was not preempted");
    for label in [label::CNODE_DELETE, label::INVALID] {
        Invocation::new(cnode, label, &[0, 11], &[]).expect_error(InvalidCapability, &[0])?;
    }
    f.settle()?;
    ensure!(f.is_empty(slot)?, "the deletion did not go on");
    Ok(())
}

fn preempted_first_phase(f: &mut Fixture) -> TestResult {
    // Clearing memory takes many steps; the receive phase comes after the last of them.
    const BITS: u32 = 22;
    let (memory, slot, notification) = (f.untyped(BITS)?, f.empty_slot()?, f.notification()?);
    memory.retype(ObjectType::Untyped(BITS), slot, 1)?;
    f.slot_of(memory).revoke()?;
    let badged = f.badged(notification, 5)?;
    let info = MessageInfo::new(label::UNTYPED_RETYPE, 0, 1, 6).raw();
    let [r10, r8, r9, r15] = conformance_kit::arch::order::MESSAGE_REGISTERS;
    let before = entry(
        Syscall::NBSendWait,
        &[
            (RDI, notification.address()),
            (RSI, info),
            (R12, memory.address()),
            (r10, arch_object::LARGE_PAGE),
            (r8, 0),
            (r9, 0),
            (r15, 0),
        ],
    );
    let (thread, buffer) = (f.caller(&before)?, f.buffer()?);
    buffer.write(ipc_buffer::MESSAGE + 4, slot.index());
    buffer.write(ipc_buffer::MESSAGE + 5, 1);
    buffer.set_caps(&[boot::CNODE]);
    thread.use_buffer(buffer)?;
    thread.start()?;
    // It stands at its system call while it is preempted, perhaps by an interrupt that came when it was about to repeat it.
    f.sleep(150)?;
    let mut registers = thread.registers()?;
    for &index in LEFT_BY_CALLS {
        registers.set(index, before.get(index));
    }
    ensure_eq!(registers, changed(&before, &[(RIP, thread.code)]));
    ensure!(f.is_empty(slot)?, "the operation was not preempted");
    badged.signal();
    let stopped = thread.stopped(f)?;
    thread.expect_return(&stopped, &before, &[(RDI, 5)])?;
    ensure!(!f.is_empty(slot)?, "nothing was made");
    Ok(())
}
