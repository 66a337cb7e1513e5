//! Threads and contexts that end, and what they wait for, while the threads run on another core.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::super::kit::passive;
use super::kit::{prepared, prepared_with, Beats, Cores, Runner, ENDLESS};
use super::remote::each;
use crate::fixture::linger;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/15/deleting-a-thread-that-runs-elsewhere", delete_thread),
    check(
        "04/15/deleting-the-context-of-a-thread-elsewhere",
        delete_context,
    ),
    check("04/15/revoking-the-memory-of-threads-elsewhere", revoke),
    check("04/15/deleting-a-server-that-runs-elsewhere", delete_server),
    check(
        "04/15/deleting-a-reply-object-of-a-call-elsewhere",
        delete_reply,
    ),
    check(
        "04/15/deleting-an-endpoint-with-waiters-elsewhere",
        delete_endpoint,
    ),
];

fn delete_thread(f: &mut Fixture) -> TestResult {
    each(f, |f, _, runner, _| {
        f.slot_of(runner.tcb).delete()?;
        runner.ensure_rests()?;
        // The context is free.
        let other = f.tcb()?;
        runner.context.bind(other)?;
        Ok(())
    })
}

fn delete_context(f: &mut Fixture) -> TestResult {
    each(f, |f, _, runner, core| {
        f.slot_of(runner.context).delete()?;
        runner.ensure_rests()?;
        f.context_on(core, ENDLESS)?.bind(runner.tcb)?;
        runner.ensure_runs(f)
    })
}

/// Threads on all other cores, of memory that is revoked at once, and used again.
fn revoke(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let memory = f.untyped(16)?;
    for _ in 0..4 {
        let mut runners = Vec::new();
        for core in cores.others() {
            // The thread is an ordinary one; its TCB and its context are of that memory.
            let model = prepared(f, core, 100, || ())?;
            let registers = model.tcb.read_registers(false)?;
            let (tcb_slot, context_slot) = (f.empty_slot()?, f.empty_slot()?);
            memory.retype(ObjectType::Tcb, tcb_slot, 1)?;
            memory.retype(ObjectType::SchedContext(7), context_slot, 1)?;
            let (tcb, context): (Tcb, SchedContext) =
                (tcb_slot.capability(), context_slot.capability());
            f.control_of(core)?.configure(context, ENDLESS)?;
            let params = ThreadParams {
                sched_context: Some(context),
                ..f.passive(100)
            };
            sandglass::thread::configure(&f.process, tcb, params, None)?;
            tcb.write_registers(&registers, true)?;
            let beats = model.beats;
            runners.push(Runner {
                tcb,
                context,
                beats,
            });
        }
        for runner in &runners {
            runner.ensure_runs(f)?;
        }
        f.slot_of(memory).revoke()?;
        for runner in &runners {
            runner.ensure_rests()?;
            ensure!(f.is_empty(f.slot_of(runner.tcb))?);
        }
    }
    Ok(())
}

/// The client's context is the server's when that ends; a reply gives it back (ABI 04, section 7.5).
fn delete_server(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let busy: &'static Beats = shared();
        let (server, _) = passive(f, 200, move || {
            endpoint.recv(reply);
            busy.run()
        })?;
        let client = prepared(f, core, 100, move || {
            endpoint.call(Message::EMPTY);
        })?;
        client.tcb.resume()?;
        f.eventually("the server runs", || busy.count() > 3)?;
        f.slot_of(server).delete()?;
        let stopped = busy.count();
        linger();
        ensure_eq!(busy.count(), stopped);
        client.ensure_rests()?;
        reply.send(Message::EMPTY);
        client.ensure_runs_at(f, cores.place(core))?;
        client.tcb.suspend()?;
    }
    Ok(())
}

/// The caller gets its context back, inactive; the server, which runs, has none any more.
fn delete_reply(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let busy: &'static Beats = shared();
        passive(f, 200, move || {
            endpoint.recv(reply);
            busy.run()
        })?;
        let went_on: &'static AtomicU64 = shared();
        let client = prepared(f, core, 100, move || {
            endpoint.nb_wait();
            went_on.fetch_add(1, SeqCst);
            endpoint.call(Message::EMPTY);
        })?;
        client.tcb.resume()?;
        f.eventually("the server runs", || busy.count() > 3)?;
        f.slot_of(reply).delete()?;
        let stopped = busy.count();
        linger();
        ensure_eq!(busy.count(), stopped);
        client.ensure_rests()?;
        ensure_eq!(went_on.load(SeqCst), 1);
        ensure!(client.context.bind(client.tcb).is_err());
    }
    Ok(())
}

/// Each waits again, at a pointer to nothing, and so faults.
fn delete_endpoint(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (endpoint, faults, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    for core in cores.others() {
        let params = ThreadParams {
            fault_handler: Some(f.badged(faults, core)?),
            ..f.active_at(core, 100, ENDLESS)?
        };
        let waiting = prepared_with(f, params, move || {
            endpoint.wait();
        })?;
        waiting.tcb.resume()?;
        cores.settle(f, core)?;
    }
    f.slot_of(endpoint).delete()?;
    let mut seen = Vec::new();
    for _ in cores.others() {
        let received = faults.recv(reply);
        ensure_eq!(received.message.label(), fault::CAP_FAULT);
        seen.push(received.badge);
    }
    seen.sort_unstable();
    ensure_eq!(seen, cores.others().collect::<Vec<u64>>());
    Ok(())
}
