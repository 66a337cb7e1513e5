//! 03, sections 4.10 to 4.13: Suspend and Resume, bound notifications, TLS base, flags; and what all
//! invocations of a TCB have in common.

use conformance_kit::arch::order::{COUNT, FS_BASE, R10, RAX, RDI, RSI};
use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;

use conformance_kit::arch::{class_of, FPU_UNAVAILABLE, INVALID_OPCODE, STOP, SYSCALL, USE_FPU};

use crate::prelude::*;

use super::common::{
    refused_in_first_phase, refuses_other_labels, truncated, works_without_answer,
};
use super::raw::{call_registers, signalled, Raw, CODE, INSTRUCTION_BYTES};

pub const CHECKS: &[Check] = &[
    check("03/4.10/no-arguments-are-needed", no_arguments),
    check("03/4.10/suspended-threads-do-not-run", suspended),
    check("03/4.10/suspending-cancels-ipc", suspend_cancels),
    check("03/4.10/resuming-restarts-ipc", resume_restarts),
    check(
        "03/4.10/resuming-a-running-thread-does-nothing",
        resume_running,
    ),
    check("03/4.10/suspending-oneself", suspend_oneself),
    check("03/4.11/bind-refusals", bind_refusals),
    check("03/4.11/unbind-refusal", unbind_refusal),
    check("03/4.11/rights-of-the-notification", bind_rights),
    check("03/4.11/a-bound-thread-receives-signals", bind_effect),
    check("03/4.11/an-unbound-thread-does-not", unbind_effect),
    check("03/4.12/truncated", tls_truncated),
    check("03/4.12/not-validated", tls_unvalidated),
    check("03/4.12/of-another-thread", tls_of_another),
    check("03/4.12/of-the-current-thread", tls_of_oneself),
    check("03/4.13/truncated", flags_truncated),
    check("03/4.13/clear-then-set", flags_values),
    check("03/4.13/fpu-disabled", flags_fpu),
    check("03/4.13/unknown-labels", other_labels),
    check("03/4.13/by-send", by_send),
    check("03/4.13/not-in-a-first-phase", not_in_first_phase),
];

fn no_arguments(f: &mut Fixture) -> TestResult {
    let (tcb, null) = (f.tcb()?, f.null()?);
    for label in [label::TCB_SUSPEND, label::TCB_RESUME] {
        for words in [&[][..], &[1; 7]] {
            Invocation::new(tcb, label, words, &[]).expect_ok(&[])?;
            Invocation::new(tcb, label, words, &[null; 3]).expect_ok(&[])?;
        }
    }
    Ok(())
}

fn suspended(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let params = f.active(100)?;
    let tcb = f.prepare(params, move || trace.note(1))?;
    // Made inactive, it stays so when it is suspended.
    tcb.suspend()?;
    f.settle()?;
    ensure_eq!(trace.len(), 0);
    tcb.resume()?;
    tcb.suspend()?;
    f.settle()?;
    ensure_eq!(trace.len(), 0);
    tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.len(), 1);
    Ok(())
}

fn suspend_cancels(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let params = f.active(100)?;
    let sender = f.spawn(params, move || endpoint.send(Message::new(1, [])))?;
    f.settle()?;
    sender.suspend()?;
    ensure_eq!(endpoint.nb_recv(reply).message.label(), 0);
    let notification = f.notification()?;
    let params = f.active(100)?;
    let waiter = f.spawn(params, move || {
        notification.wait();
    })?;
    f.settle()?;
    waiter.suspend()?;
    f.badged(notification, 2)?.signal();
    ensure_eq!(notification.poll(), 2);
    Ok(())
}

/// The system call is made again, behind those that were queued meanwhile.
fn resume_restarts(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let mut senders = vec![];
    for label in [1, 2] {
        let params = f.active(100)?;
        let tcb = f.spawn(params, move || endpoint.send(Message::new(label, [])))?;
        senders.push(tcb);
        f.settle()?;
    }
    senders[0].resume()?;
    f.settle()?;
    ensure_eq!(endpoint.recv(reply).message.label(), 2);
    ensure_eq!(endpoint.recv(reply).message.label(), 1);
    Ok(())
}

fn resume_running(f: &mut Fixture) -> TestResult {
    let (raw, notification) = signalled(f)?;
    raw.tcb.resume()?;
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)?;
    f.badged(notification, 2)?.signal();
    ensure_eq!(notification.poll(), 2);
    Ok(())
}

fn suspend_oneself(f: &mut Fixture) -> TestResult {
    let raw = Raw::new(f, &CODE, &UserContext::default())?;
    let mut registers = call_registers(Syscall::Call, raw.tcb, label::TCB_SUSPEND, &[1, 2, 3, 4]);
    registers.set(conformance_kit::arch::order::RIP, raw.code);
    raw.tcb.write_registers(&registers, true)?;
    for _ in 0..2 {
        f.settle()?;
        ensure!(!raw.has_stopped(), "the thread went on");
        // No answer was written, and the call is to be made again.
        let seen = raw.tcb.read_registers(false)?;
        ensure_eq!(seen.ip(), raw.code);
        ensure_eq!(seen.get(RDI), raw.tcb.address());
        ensure_eq!(seen.get(RSI), registers.get(RSI));
        ensure_eq!(seen.get(R10), 1);
        raw.tcb.resume()?;
    }
    f.settle()?;
    ensure!(!raw.has_stopped(), "the thread went on");
    let behind = raw.code + INSTRUCTION_BYTES;
    raw.tcb.write_first_registers(&[behind], true)?;
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)
}

fn bind_notification(tcb: Tcb, notification: impl Capability) -> Invocation {
    let caps = [notification.cptr()];
    Invocation::new(tcb, label::TCB_BIND_NOTIFICATION, &[], &caps)
}

fn bind_refusals(f: &mut Fixture) -> TestResult {
    let (tcb, free) = (f.tcb()?, f.notification()?);
    let bind = bind_notification(tcb, free);
    truncated(&bind)?;
    let waited = f.notification()?;
    f.helper(100, move || {
        waited.wait();
    })?;
    f.settle()?;
    let bound = f.notification()?;
    f.tcb()?.bind_notification(bound)?;
    let wrong = [
        f.null()?,
        f.endpoint()?.cptr(),
        f.me.cptr(),
        f.with_rights(free, Rights::WRITE)?.cptr(),
        waited.cptr(),
        bound.cptr(),
    ];
    for wrong in wrong {
        bind.with_cap(0, wrong)
            .expect_error(IllegalOperation, &[])?;
    }
    bind.expect_ok(&[])?;
    // Bound already: to the same, and to another.
    bind.expect_error(IllegalOperation, &[])?;
    let another = f.notification()?;
    bind.with_cap(0, another)
        .expect_error(IllegalOperation, &[])?;
    truncated(&bind)
}

fn unbind_refusal(f: &mut Fixture) -> TestResult {
    let (tcb, notification) = (f.tcb()?, f.notification()?);
    let unbind = Invocation::new(tcb, label::TCB_UNBIND_NOTIFICATION, &[], &[]);
    unbind.expect_error(IllegalOperation, &[])?;
    tcb.bind_notification(notification)?;
    unbind.expect_ok(&[])?;
    unbind.expect_error(IllegalOperation, &[])?;
    // Both are free again.
    f.tcb()?.bind_notification(notification)?;
    tcb.bind_notification(f.notification()?)?;
    Ok(())
}

fn bind_rights(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 3)?;
    let caps = [
        f.with_rights(notification, Rights::READ)?,
        f.with_rights(notification, Rights(0b1110))?,
        badged,
    ];
    for cap in caps {
        let tcb = f.tcb()?;
        bind_notification(tcb, cap).expect_ok(&[])?;
        tcb.unbind_notification()?;
    }
    // A notification that is active, or bound to a context, is no obstacle.
    badged.signal();
    f.context(FULL)?.bind_notification(notification)?;
    bind_notification(f.tcb()?, notification).expect_ok(&[])
}

/// A thread that receives once on an endpoint and notes the badge.
fn receiver(f: &mut Fixture) -> Result<(Tcb, Endpoint, &'static Trace), Failure> {
    let (endpoint, trace) = (f.endpoint()?, Trace::leak());
    let params = f.active(100)?;
    let tcb = f.prepare(params, move || trace.note(endpoint.wait().badge))?;
    Ok((tcb, endpoint, trace))
}

fn bind_effect(f: &mut Fixture) -> TestResult {
    let (notification, later) = (f.notification()?, f.notification()?);
    let badged = f.badged(notification, 0x21)?;
    let (tcb, _, trace) = receiver(f)?;
    tcb.bind_notification(notification)?;
    tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.len(), 0);
    badged.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [0x21]);
    // Bound while it waits already.
    let (tcb, _, trace) = receiver(f)?;
    tcb.resume()?;
    f.settle()?;
    tcb.bind_notification(later)?;
    f.badged(later, 0x22)?.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [0x22]);
    Ok(())
}

fn unbind_effect(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let badged = f.badged(notification, 0x21)?;
    let (tcb, endpoint, trace) = receiver(f)?;
    tcb.bind_notification(notification)?;
    tcb.resume()?;
    f.settle()?;
    tcb.unbind_notification()?;
    badged.signal();
    f.settle()?;
    ensure_eq!(trace.len(), 0);
    ensure_eq!(notification.poll(), 0x21);
    // It still receives messages.
    f.badged(endpoint, 0x33)?.send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(trace.events(), [0x33]);
    Ok(())
}

fn tls_truncated(f: &mut Fixture) -> TestResult {
    let set = Invocation::new(f.tcb()?, label::TCB_SET_TLS_BASE, &[0x1000], &[]);
    truncated(&set)?;
    set.expect_ok(&[])
}

fn tls_unvalidated(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    for base in [0, 1, 0x7fff_ffff_ffff, 1 << 47, u64::MAX >> 1, u64::MAX] {
        tcb.set_tls_base(base)?;
        ensure_eq!(tcb.read_registers(false)?.get(FS_BASE), base);
    }
    Ok(())
}

use conformance_kit::arch::LOAD_TLS_THEN_STOP as LOAD_FS;

fn tls_of_another(f: &mut Fixture) -> TestResult {
    let raw = Raw::new(f, &LOAD_FS, &UserContext::default())?;
    let base = f.code(&0x1122_3344_5566_7788u64.to_le_bytes())?;
    raw.tcb.set_tls_base(base)?;
    let stopped = raw.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(stopped.registers.get(RAX), 0x1122_3344_5566_7788);
    Ok(())
}

fn tls_of_oneself(f: &mut Fixture) -> TestResult {
    let code = [&SYSCALL[..], &LOAD_FS].concat();
    let base = f.code(&0x8877_6655_4433_2211u64.to_le_bytes())?;
    let raw = Raw::new(f, &code, &UserContext::default())?;
    let mut registers = call_registers(Syscall::Call, raw.tcb, label::TCB_SET_TLS_BASE, &[base]);
    registers.set(conformance_kit::arch::order::RIP, raw.code);
    raw.tcb.write_registers(&registers, false)?;
    let stopped = raw.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(
        stopped.registers.get(RSI),
        MessageInfo::new(0, 0, 0, 0).raw()
    );
    ensure_eq!(stopped.registers.get(RAX), 0x8877_6655_4433_2211);
    Ok(())
}

fn flags_truncated(f: &mut Fixture) -> TestResult {
    let set = Invocation::new(f.tcb()?, label::TCB_SET_FLAGS, &[0, 1], &[]);
    truncated(&set)?;
    set.with_word(1, 0).expect_ok(&[0])
}

fn flags_values(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let all = u64::MAX;
    for (clear, set, flags) in [
        (0, 0, 0),
        (0, 2, 0),
        (0, 1, 1),
        (0, 0, 1),
        (2, 0, 1),
        (1, 0, 0),
        (1, 1, 1),
        (all - 1, all - 1, 1),
        (all, 0, 0),
        (0, all, 1),
        (all, all, 1),
        (1, all - 1, 0),
    ] {
        Invocation::new(tcb, label::TCB_SET_FLAGS, &[clear, set], &[]).expect_ok(&[flags])?;
    }
    Ok(())
}

fn flags_fpu(f: &mut Fixture) -> TestResult {
    const NUMBER: usize = 3;
    let code = [&USE_FPU[..], &STOP].concat();
    let raw = Raw::new(f, &code, &UserContext::default())?;
    ensure_eq!(raw.tcb.set_flags(0, 1)?, 1);
    let stopped = raw.run(f)?;
    ensure_eq!(class_of(stopped.words[NUMBER]), FPU_UNAVAILABLE);
    ensure_eq!(stopped.words[0], raw.code);
    ensure_eq!(raw.tcb.set_flags(1, 0)?, 0);
    raw.reply.send(Message::EMPTY);
    let stopped = raw.stopped(f)?;
    ensure_eq!(stopped.words[NUMBER], INVALID_OPCODE);
    Ok(())
}

/// Every invocation of a TCB, with arguments that are right, for a thread that never runs.
fn all_invocations(f: &mut Fixture, tcb: Tcb) -> Result<Vec<Invocation>, Failure> {
    let mut write = vec![0, COUNT as u64];
    write.extend([0x123; COUNT]);
    let authority = boot::TCB.cptr();
    let (cspace, vspace) = (f.cnode(2)?.cptr(), f.vspace()?.root().cptr());
    let (frame, handler) = (f.frame(FrameSize::Small)?.cptr(), f.endpoint()?.cptr());
    let (context, source) = (f.context(FULL)?.cptr(), f.tcb()?);
    source.write_first_registers(&[0x4000, 0x5000], false)?;
    let notification = f.notification()?.cptr();
    let all: [(u64, &[u64], &[CPtr]); 16] = [
        (label::TCB_WRITE_REGISTERS, &write, &[]),
        (label::TCB_COPY_REGISTERS, &[0b1100], &[source.cptr()]),
        (label::TCB_READ_REGISTERS, &[0, COUNT as u64], &[]),
        (
            label::TCB_CONFIGURE,
            &[0, 0, 0x1000],
            &[cspace, vspace, frame],
        ),
        (label::TCB_SET_PRIORITY, &[3], &[authority]),
        (label::TCB_SET_MC_PRIORITY, &[11], &[authority]),
        (
            label::TCB_SET_SCHED_PARAMS,
            &[12, 4],
            &[authority, context, handler],
        ),
        (label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[handler]),
        (label::TCB_SET_IPC_BUFFER, &[0x400], &[frame]),
        (label::TCB_SET_SPACE, &[0, 0], &[handler, cspace, vspace]),
        (label::TCB_SUSPEND, &[], &[]),
        (label::TCB_BIND_NOTIFICATION, &[], &[notification]),
        (label::TCB_UNBIND_NOTIFICATION, &[], &[]),
        (label::TCB_SET_TLS_BASE, &[0x6000], &[]),
        (label::TCB_SET_FLAGS, &[0, 1], &[]),
        (label::TCB_RESUME, &[], &[]),
    ];
    let invocations = all
        .into_iter()
        .map(|(label, words, caps)| Invocation::new(tcb, label, words, caps));
    Ok(invocations.collect())
}

/// What can be seen of a thread: registers, flags, MCP, and whether it has a context and a
/// notification.
fn observe(f: &mut Fixture, tcb: Tcb) -> Result<(UserContext, u64, u64, bool, bool), Failure> {
    let set = Invocation::new(f.tcb()?, label::TCB_SET_PRIORITY, &[256], &[tcb.cptr()]);
    let mcp = set.call().words[1];
    let context = f.unconfigured_context(7)?;
    let has_context = context.bind(tcb).is_err();
    if !has_context {
        context.unbind()?;
    }
    let has_notification = tcb.bind_notification(f.notification()?).is_err();
    if !has_notification {
        tcb.unbind_notification()?;
    }
    let registers = tcb.read_registers(false)?;
    Ok((
        registers,
        tcb.set_flags(0, 0)?,
        mcp,
        has_context,
        has_notification,
    ))
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let own: Vec<u64> = (2..=label::TCB_SET_FLAGS).collect();
    let any = Invocation::new(tcb, label::INVALID, &[0; 8], &[boot::CNODE.cptr(); 3]);
    refuses_other_labels(&any, &own)
}

fn by_send(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    for invocation in all_invocations(f, tcb)? {
        for call in SENDING {
            invocation.send(call)?;
            // Refused, it says nothing either.
            invocation.with_length(0).with_cap_count(0).send(call)?;
        }
    }
    let set = Invocation::new(tcb, label::TCB_SET_FLAGS, &[0, 1], &[]);
    works_without_answer(f, &set, |_| Ok(tcb.set_flags(1, 0)? == 0))?;
    let (registers, _, mcp, context, notification) = observe(f, tcb)?;
    ensure_eq!((registers.get(FS_BASE), mcp), (0x6000, 12));
    ensure_eq!((context, notification), (true, false));
    Ok(())
}

fn not_in_first_phase(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let before = observe(f, tcb)?;
    for invocation in all_invocations(f, tcb)? {
        refused_in_first_phase(f, &invocation, |f| Ok(observe(f, tcb)? != before))?;
    }
    Ok(())
}
