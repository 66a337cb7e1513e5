//! 05, section 3: delivery of ordinary faults.

use conformance_kit::arch::order::{RAX, RDI, RFLAGS, RIP, RSP};
use conformance_kit::arch::INVALID_OPCODE;

use crate::fixture::raw::RAW_PRIORITY;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "05/3/without-a-handler-the-thread-becomes-inactive",
        no_handler,
    ),
    check("05/3/a-revoked-handler-is-none", revoked_handler),
    check(
        "05/3/faulters-queue-by-priority-then-by-arrival",
        queue_order,
    ),
    check(
        "05/3/a-queued-fault-is-built-when-it-is-received",
        built_when_received,
    ),
    check(
        "05/3/without-a-reply-object-the-faulter-becomes-inactive",
        no_reply_object,
    ),
    check("05/3/grant-or-grant-reply-links-the-reply", linking_rights),
    check(
        "05/3/a-passive-handler-runs-on-the-faulters-context",
        donation_to_waiting,
    ),
    check(
        "05/3/an-active-handler-gets-no-context",
        no_donation_to_active,
    ),
    check(
        "05/3/deleting-the-endpoint-makes-a-queued-faulter-inactive",
        endpoint_deleted,
    ),
    check(
        "05/3/cancelling-badged-sends-makes-a-queued-faulter-inactive",
        sends_cancelled,
    ),
    check("05/3/resuming-a-queued-faulter-restarts-it", queued_resumed),
    check("05/3/suspending-a-faulter-clears-the-fault", suspended),
    check(
        "05/3/a-non-blocking-receive-takes-a-queued-fault",
        nb_receive,
    ),
];

/// Stops, and shows by a word of memory if it goes on.
use conformance_kit::arch::STOP_THEN_STORE;
const MARK: u64 = 0x3a4b;

/// A thread that faults at its first instruction and afterwards sets a mark.
struct Marker {
    thread: RawThread,
    mark: Buffer,
}

impl Marker {
    fn new(f: &mut Fixture) -> Result<Self, Failure> {
        let mark = f.buffer()?;
        let before = registers(&[(RDI, mark.address), (RAX, MARK)]);
        let thread = f.raw(&STOP_THEN_STORE, &before)?;
        Ok(Self { thread, mark })
    }

    /// Removes the reason of the fault.
    fn mend(&self) {
        // SAFETY: the code's page is mapped writable, and nobody runs it now.
        unsafe { conformance_kit::arch::mend(self.thread.code) };
    }

    /// Fails unless the thread does nothing, though it could go on, until it is resumed; and
    /// then restarts the instruction that faulted.
    fn expect_inactive(&self, f: &mut Fixture) -> TestResult {
        self.mend();
        f.settle()?;
        ensure!(self.mark.read(0) == 0, "the thread went on");
        ensure_eq!(self.thread.registers()?.get(RIP), self.thread.code);
        self.thread.tcb.resume()?;
        f.settle()?;
        ensure!(self.mark.read(0) == MARK, "the thread was not inactive");
        Ok(())
    }
}

fn no_handler(f: &mut Fixture) -> TestResult {
    let mark = f.buffer()?;
    let code = f.code(&STOP_THEN_STORE)?;
    let before = registers(&[(RDI, mark.address), (RAX, MARK), (RIP, code)]);
    let params = ThreadParams {
        fault_handler: None,
        ..f.active(RAW_PRIORITY)?
    };
    let tcb = f.raw_thread(params, &before)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let thread = RawThread {
        tcb,
        code,
        endpoint,
        handler: endpoint,
        reply,
    };
    thread.start_and_settle(f)?;
    Marker { thread, mark }.expect_inactive(f)
}

fn revoked_handler(f: &mut Fixture) -> TestResult {
    let marker = Marker::new(f)?;
    // The thread has a copy of this one.
    f.slot_of(marker.thread.handler).revoke()?;
    marker.thread.start_and_settle(f)?;
    ensure_eq!(marker.thread.endpoint.nb_recv(marker.thread.reply).badge, 0);
    marker.expect_inactive(f)
}

fn queue_order(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let code = f.code(&STOP_THEN_STORE)?;
    for (index, priority) in [50, 80, 50, 80, 120, 10].into_iter().enumerate() {
        let handler = f.badged(endpoint, 100 + index as u64)?;
        let params = ThreadParams {
            fault_handler: Some(handler),
            ..f.active(priority)?
        };
        f.raw_thread(params, &registers(&[(RIP, code)]))?.resume()?;
        f.settle()?;
    }
    let order: Vec<u64> = (0..6).map(|_| endpoint.nb_recv(reply).badge).collect();
    ensure_eq!(order, [104, 101, 103, 100, 102, 105]);
    Ok(())
}

fn built_when_received(f: &mut Fixture) -> TestResult {
    let thread = f.raw(&STOP_THEN_STORE, &distinct())?;
    thread.start_and_settle(f)?;
    thread
        .tcb
        .write_first_registers(&[0x7000, 0x8000, sanitised(RFLAGS, 0)], false)?;
    let stopped = thread.stopped(f)?;
    ensure_eq!(
        stopped.words,
        [0x7000, 0x8000, sanitised(RFLAGS, 0), INVALID_OPCODE, 0]
    );
    ensure_eq!(stopped.registers.get(RSP), 0x8000);
    Ok(())
}

fn no_reply_object(f: &mut Fixture) -> TestResult {
    for queued in [false, true] {
        let marker = Marker::new(f)?;
        marker.thread.start()?;
        if queued {
            f.settle()?;
        }
        let received = marker.thread.endpoint.wait();
        ensure_eq!(received.message.label(), fault::USER_EXCEPTION);
        ensure_eq!(received.message.word(0), marker.thread.code);
        marker.expect_inactive(f)?;
    }
    Ok(())
}

fn linking_rights(f: &mut Fixture) -> TestResult {
    for right in [Rights::GRANT, Rights::GRANT_REPLY] {
        for queued in [false, true] {
            let marker = Marker::new(f)?;
            let endpoint = marker.thread.endpoint;
            let handler = f.with_rights(endpoint, Rights::WRITE.union(right))?;
            let space = boot::VSPACE;
            marker
                .thread
                .tcb
                .set_space(Some(handler), boot::CNODE, GuardData(0), space)?;
            marker.thread.start()?;
            if queued {
                f.settle()?;
            }
            ensure_eq!(marker.thread.stopped(f)?.label, fault::USER_EXCEPTION);
            marker.mend();
            marker.thread.reply.send(Message::EMPTY);
            f.settle()?;
            ensure!(marker.mark.read(0) == MARK, "the reply did not resume");
        }
    }
    Ok(())
}

/// Lets a handler of priority 200, which `passive` tells to wait without a context of its own,
/// take a fault, note it, and wait for good. Returns the handler's TCB.
fn handle(
    f: &mut Fixture,
    endpoint: Endpoint,
    passive: bool,
    trace: &'static Trace,
) -> Result<(Tcb, SchedContext), Failure> {
    let (reply, never) = (f.reply()?, f.notification()?);
    let params = f.active(200)?;
    let tcb = f.spawn(params, move || {
        trace.note(endpoint.recv(reply).message.label());
        never.wait();
    })?;
    f.settle()?;
    let context = params.sched_context.expect("an active thread has one");
    if passive {
        context.unbind()?;
    }
    Ok((tcb, context))
}

/// A raw thread of priority 100, and its context.
fn faulter(f: &mut Fixture) -> Result<(RawThread, SchedContext), Failure> {
    let params = f.active(100)?;
    let thread = f.raw_with(params, &STOP_THEN_STORE, &distinct())?;
    let context = params.sched_context.expect("an active thread has one");
    Ok((thread, context))
}

fn donation_to_waiting(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (thread, context) = faulter(f)?;
    let (handler, _) = handle(f, thread.endpoint, true, trace)?;
    thread.start_and_settle(f)?;
    ensure_eq!(trace.events(), [fault::USER_EXCEPTION]);
    ensure!(runs_on(handler, 200, context));
    Ok(())
}

fn no_donation_to_active(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (thread, context) = faulter(f)?;
    let (handler, own) = handle(f, thread.endpoint, false, trace)?;
    thread.start_and_settle(f)?;
    ensure_eq!(trace.events(), [fault::USER_EXCEPTION]);
    ensure!(runs_on(handler, 200, own));
    ensure!(runs_on(thread.tcb, 100, context));
    Ok(())
}

fn endpoint_deleted(f: &mut Fixture) -> TestResult {
    let marker = Marker::new(f)?;
    marker.thread.start_and_settle(f)?;
    let slot = f.slot_of(marker.thread.endpoint);
    slot.revoke()?;
    slot.delete()?;
    marker.expect_inactive(f)
}

fn sends_cancelled(f: &mut Fixture) -> TestResult {
    let marker = Marker::new(f)?;
    marker.thread.start_and_settle(f)?;
    f.slot_of(marker.thread.handler).cancel_badged_sends()?;
    let reply = f.reply()?;
    ensure_eq!(marker.thread.endpoint.nb_recv(reply).badge, 0);
    marker.expect_inactive(f)
}

fn queued_resumed(f: &mut Fixture) -> TestResult {
    let marker = Marker::new(f)?;
    marker.thread.start_and_settle(f)?;
    marker.mend();
    marker.thread.tcb.resume()?;
    f.settle()?;
    ensure!(marker.mark.read(0) == MARK, "the thread was not restarted");
    Ok(())
}

fn suspended(f: &mut Fixture) -> TestResult {
    for queued in [false, true] {
        let marker = Marker::new(f)?;
        marker.thread.start_and_settle(f)?;
        if !queued {
            marker.thread.stopped(f)?;
        }
        marker.thread.tcb.suspend()?;
        if queued {
            let reply = f.reply()?;
            ensure_eq!(marker.thread.endpoint.nb_recv(reply).badge, 0);
        } else {
            // The reply object does not stand for it any more.
            marker.thread.reply.send(Message::EMPTY);
        }
        marker.expect_inactive(f)?;
    }
    Ok(())
}

fn nb_receive(f: &mut Fixture) -> TestResult {
    let marker = Marker::new(f)?;
    marker.thread.start_and_settle(f)?;
    let message = marker.thread.endpoint.nb_recv(marker.thread.reply).message;
    ensure_eq!(message.label(), fault::USER_EXCEPTION);
    marker.mend();
    marker.thread.reply.send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(marker.mark.read(0), MARK);
    Ok(())
}
