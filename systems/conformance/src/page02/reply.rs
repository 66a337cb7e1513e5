//! 02, sections 9 and 10: reply objects, and the capabilities that only the boot makes.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use conformance_kit::arch::FIRST_INVALID_TYPE;
use sandglass::cap::{Domain, IrqControl, SchedControl};

use super::support::{alive, delete, kind_of, operation, retype, Kind};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/9/a-new-reply-can-grant", new_reply_grants),
    check("02/9/a-reply-without-a-caller-succeeds-silently", no_caller),
    check(
        "02/9/all-copies-of-a-reply-are-equivalent",
        equivalent_copies,
    ),
    check(
        "02/9/a-reply-serves-one-caller-after-the-other",
        served_again,
    ),
    check("02/10/retype-makes-no-controls", no_controls),
    check("02/10/copies-of-boot-capabilities-work", copies_work),
    check("02/10/irq-control-moves", irq_control_moves),
];

/// A client of priority 255 that calls for good, and counts answers and their capabilities.
fn client(f: &mut Fixture, endpoint: Endpoint) -> Result<&'static [AtomicU64; 2], Failure> {
    let counts: &'static [AtomicU64; 2] = shared();
    let slot = f.empty_slot()?;
    f.helper(255, move || {
        sandglass::thread_block::set_receive_slot(slot);
        loop {
            let answer = endpoint.call(Message::EMPTY);
            counts[0].fetch_add(1, Relaxed);
            counts[1].fetch_add(answer.info().extra_caps() as u64, Relaxed);
        }
    })?;
    Ok(counts)
}

fn seen(counts: &[AtomicU64; 2]) -> [u64; 2] {
    [counts[0].load(Relaxed), counts[1].load(Relaxed)]
}

fn new_reply_grants(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let counts = client(f, endpoint)?;
    endpoint.recv(reply);
    let sent = f.tcb()?.cptr();
    reply.send(Message::EMPTY.with_caps(&[sent]));
    ensure_eq!(seen(counts), [1, 1]);
    Ok(())
}

fn no_caller(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    // Unused: whatever the label and the words.
    for label in [0, 1, label::CNODE_COPY, 0xf_ffff_ffff_ffff] {
        let invocation = Invocation::new(reply, label, &[1, 2, 3, 4, 5], &[boot::TCB.cptr()]);
        invocation.expect_ok(&[])?;
    }
    // Attached to a thread that waits to receive.
    let trace = Trace::leak();
    f.helper(100, move || trace.note(endpoint.recv(reply).badge))?;
    f.settle()?;
    Invocation::new(reply, 0, &[], &[]).expect_ok(&[])?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    f.badged(endpoint, 6)?.nb_send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(trace.events(), [6]);
    Ok(())
}

fn equivalent_copies(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let counts = client(f, endpoint)?;
    let (first, second) = (f.copy(reply)?, f.badged(reply, 77)?);
    // Any of them receives, and any of them answers, once.
    let all = [reply, first, second];
    for (round, (by, with)) in [(0, 1), (1, 2), (2, 0), (1, 1)].into_iter().enumerate() {
        endpoint.recv(all[by]);
        all[with].send(Message::EMPTY);
        ensure_eq!(seen(counts)[0], round as u64 + 1);
        all[by].send(Message::EMPTY);
        ensure_eq!(seen(counts)[0], round as u64 + 1);
    }
    Ok(())
}

fn served_again(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let counts = [client(f, endpoint)?, client(f, endpoint)?];
    for round in 1..=3 {
        for _ in 0..2 {
            endpoint.recv(reply);
            reply.send(Message::EMPTY);
        }
        ensure_eq!(counts.map(|counts| seen(counts)[0]), [round, round]);
    }
    Ok(())
}

fn no_controls(f: &mut Fixture) -> TestResult {
    // None of the types (02, section 1) makes one of these.
    let controls = [
        Kind::IrqControl,
        Kind::AsidControl,
        Kind::Domain,
        Kind::SchedControl,
        Kind::IoPortControl,
        Kind::AsidPool,
        Kind::SgiSignal,
    ];
    for number in (0..FIRST_INVALID_TYPE).filter(|&number| number != arch_object::HUGE_PAGE) {
        let (memory, slot) = (f.untyped(21)?, f.empty_slot()?);
        retype(memory, number, 8, slot, 1).expect_ok(&[])?;
        let kind = kind_of(f, slot.capability::<CPtr>())?;
        ensure!(!controls.contains(&kind), "type {number} makes {kind:?}");
        slot.delete()?;
        delete(f, memory)?;
    }
    Ok(())
}

fn copies_work(f: &mut Fixture) -> TestResult {
    let control: SchedControl = f.control;
    let copy = f.copy(control)?;
    let context = f.unconfigured_context(7)?;
    copy.configure(context, FULL)?;
    let domain: Domain = f.copy(boot::DOMAIN)?;
    domain.set(f.tcb()?, 0)?;
    let asids = f.copy(boot::ASID_CONTROL)?;
    let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
    asids.make_pool(memory, slot)?;
    let pool = f.copy(boot::ASID_POOL)?;
    pool.assign(f.pml4()?)?;
    for (cap, kind) in [
        (copy.cptr(), Kind::SchedControl),
        (domain.cptr(), Kind::Domain),
        (asids.cptr(), Kind::AsidControl),
        (pool.cptr(), Kind::AsidPool),
    ] {
        ensure_eq!(kind_of(f, cap)?, kind);
    }
    Ok(())
}

fn irq_control_moves(f: &mut Fixture) -> TestResult {
    let (home, away) = (f.slot_of(boot::IRQ_CONTROL), f.empty_slot()?);
    away.move_from(home)?;
    let moved: IrqControl = away.capability();
    let (handler, gone) = (f.empty_slot()?, f.is_empty(home)?);
    let issued = conformance_kit::arch::issue_irq(moved, 80, handler);
    let copied = operation(label::CNODE_COPY, f.empty_slot()?, away, &[15]).call();
    // It is still the parent of its handlers.
    let revoked = away.revoke();
    let left = alive(f, [handler.capability()])?;
    // Others need it where it was.
    home.move_from(away)?;
    issued?;
    revoked?;
    ensure_eq!(
        (gone, copied.label, left),
        (true, IllegalOperation as u64, [false])
    );
    Ok(())
}
