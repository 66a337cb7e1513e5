//! 02, section 7.1: what happens to the contents of what is deleted, and to the contents of these.
//!
//! Deletion is one level deep in the reference: of a CNode or thread whose last capability lies in
//! what is deleted, slot 0 is emptied, and the rest stays out of reach until its memory is revoked.
//! Sandglass empties it, too (README, "Where Sandglass differs", 5). Programs can rely on neither,
//! but on what both do.

use super::support::{alive, delete, revoke};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "02/7.1/a-deleted-thread's-capabilities-go-with-it",
        thread_slots,
    ),
    check(
        "02/7.1/a-deleted-cnode's-capabilities-go-with-it",
        cnode_slots,
    ),
    check("02/7.1/slots-0-of-cnodes-inside-go-with-it", first_slots),
    check(
        "02/7.1/a-thread-inside-a-deleted-cnode-stops",
        thread_inside,
    ),
    check(
        "02/7.2/revoked-memory-takes-what-lies-inside-it",
        outer_memory,
    ),
];

/// An endpoint at which a thread waits, which notes `event` when the endpoint is deleted.
fn witness(f: &mut Fixture, trace: &'static Trace, event: u64) -> Result<Endpoint, Failure> {
    let endpoint = f.endpoint()?;
    f.helper(100, move || {
        endpoint.send(Message::EMPTY);
        trace.note(event);
    })?;
    f.settle()?;
    Ok(endpoint)
}

/// A CNode of 8 slots in memory of its own, which can be revoked.
fn cnode(f: &mut Fixture) -> Result<(CNode, Untyped), Failure> {
    const RADIX: u32 = 3;
    let kind = ObjectType::CNode(RADIX);
    let (memory, slot) = (f.untyped(kind.size_bits())?, f.empty_slot()?);
    memory.retype(kind, slot, 1)?;
    Ok((slot.capability(), memory))
}

/// Moves a capability to slot `index` of such a CNode.
fn put(f: &Fixture, cnode: CNode, index: u64, cap: impl Capability) -> TestResult {
    Ok(cnode.slot_at(index, 3).move_from(f.slot_of(cap))?)
}

/// Fails unless everything is deleted that `at_once` names; notes whether all the rest is, or
/// nothing of it, and revokes the memory that the rest lies in: then it must be.
fn expect_gone(
    f: &mut Fixture,
    trace: &'static Trace,
    at_once: &[u64],
    rest: &[u64],
    memory: &[Untyped],
) -> TestResult {
    f.settle()?;
    let mut gone = trace.events();
    gone.sort_unstable();
    let mut all = [at_once, rest].concat();
    all.sort_unstable();
    ensure!(
        gone == at_once || gone == all,
        "{gone:?} are deleted, neither {at_once:?} nor all of {all:?}"
    );
    f.choice = Some(Choice::of(
        gone == all,
        "objects inside are emptied at once",
        "objects inside are emptied when their memory is revoked",
    ));
    for &memory in memory {
        revoke(f, memory)?;
    }
    f.settle()?;
    let mut gone = trace.events();
    gone.sort_unstable();
    ensure_eq!(gone, all);
    Ok(())
}

/// Its own slots, and slot 0 of the CNode whose last capability is its CSpace, in any case.
fn thread_slots(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (handler, timeout) = (witness(f, trace, 1)?, witness(f, trace, 2)?);
    let (first, inside) = (witness(f, trace, 3)?, witness(f, trace, 4)?);
    let (cnode, memory) = cnode(f)?;
    put(f, cnode, 0, first)?;
    put(f, cnode, 1, inside)?;
    let tcb = f.tcb()?;
    let space = f.vspace()?;
    let buffer = f.frame(FrameSize::Small)?;
    let guard = GuardData::new(0, 61);
    tcb.set_space(Some(handler), cnode, guard, space.root())?;
    tcb.set_timeout_endpoint(Some(timeout))?;
    tcb.set_ipc_buffer(0x1000, buffer)?;
    // The thread's slots now hold the last capabilities of all of these.
    for cap in [handler.cptr(), timeout.cptr(), cnode.cptr(), buffer.cptr()] {
        delete(f, cap)?;
    }
    f.settle()?;
    ensure_eq!(trace.events(), []);
    delete(f, tcb)?;
    expect_gone(f, trace, &[1, 2, 3], &[4], &[memory])
}

/// Three CNodes, each with the last capability of the next one, and of an endpoint.
fn cnode_slots(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let mut below: Option<CNode> = None;
    let mut inner = Vec::new();
    for event in [3, 2, 1] {
        let (cnode, memory) = cnode(f)?;
        let endpoint = witness(f, trace, event)?;
        put(f, cnode, 7, endpoint)?;
        if let Some(below) = below {
            put(f, cnode, 2, below)?;
        }
        below = Some(cnode);
        inner.push(memory);
    }
    let outer = below.ok_or("no CNode")?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    delete(f, outer)?;
    ensure_eq!(alive(f, [outer.cptr()])?, [false]);
    expect_gone(f, trace, &[1], &[2, 3], &inner[..2])
}

/// Each has the last capability of the next one in slot 0: all go, but for what is in other slots
/// of those inside.
fn first_slots(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let last = witness(f, trace, 1)?.cptr();
    let (mut below, mut inner) = (last, Vec::new());
    for event in [4, 3, 2] {
        let (cnode, memory) = cnode(f)?;
        let endpoint = witness(f, trace, event)?;
        put(f, cnode, 5, endpoint)?;
        put(f, cnode, 0, below)?;
        below = cnode.cptr();
        inner.push(memory);
    }
    delete(f, below)?;
    expect_gone(f, trace, &[1, 2], &[3, 4], &inner[..2])
}

/// Its CSpace, which is its slot 0, goes; what its other slots hold is the rest.
fn thread_inside(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (handler, inside) = (witness(f, trace, 2)?, witness(f, trace, 1)?);
    let (space, _) = cnode(f)?;
    put(f, space, 0, inside)?;
    let (memory, slot) = (f.untyped(ObjectType::Tcb.size_bits())?, f.empty_slot()?);
    memory.retype(ObjectType::Tcb, slot, 1)?;
    let tcb: Tcb = slot.capability();
    let context = f.context(FULL)?;
    context.bind(tcb)?;
    let notification = f.notification()?;
    tcb.bind_notification(notification)?;
    let guard = GuardData::new(0, 61);
    tcb.set_space(Some(handler), space, guard, boot::VSPACE)?;
    delete(f, handler)?;
    delete(f, space)?;
    let (outer, _) = cnode(f)?;
    put(f, outer, 4, tcb)?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    delete(f, outer)?;
    // It is unbound in any case.
    let other = f.tcb()?;
    context.bind(other)?;
    other.bind_notification(notification)?;
    expect_gone(f, trace, &[1], &[2], &[memory])
}

/// Revoking the memory of the outer one alone is no other deletion; revoking that of the inner
/// ones first is.
fn outer_memory(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let (inner, inner_memory) = cnode(f)?;
    let (outer, outer_memory) = cnode(f)?;
    let (one, two) = (witness(f, trace, 1)?, witness(f, trace, 2)?);
    put(f, inner, 6, two)?;
    put(f, outer, 6, one)?;
    put(f, outer, 1, inner)?;
    revoke(f, outer_memory)?;
    expect_gone(f, trace, &[1], &[2], &[inner_memory])
}
