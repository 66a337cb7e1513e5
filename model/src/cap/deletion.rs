//! Deletion and revocation (02, section 7), without preemption: there are no zombies between
//! events.
//!
//! When the last capability to an object goes, the object is stopped: it leaves everything that it
//! takes part in. It stays in the state, stopped, until the event ends, since the thread that
//! deletes may be the object ([`forget_unnamed`]).

use crate::cap::{derivation, region};
use crate::invoke::irq;
use crate::ipc::{endpoint, notification};
use crate::state::{
    Address, CNodeId, Cap, ContextId, NotificationId, PoolId, ReplyId, SlotId, State, ThreadId,
    ThreadSlot, ThreadState,
};
use crate::time::{context, cores};
use crate::{reply, thread, vspace};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Deletes the capability in `slot`, if any (02, section 7.1).
///
/// The slot is empty before what the capability named is stopped: so a CNode that contains its own
/// last capability needs no rule of its own.
pub fn delete(s: &mut State, slot: SlotId) {
    let Some(cap) = derivation::get(s, slot) else {
        return;
    };
    let is_final = derivation::is_final(s, slot);
    if is_final {
        stall_user(s, cap);
    }
    derivation::remove(s, slot);
    // Each capability to a frame has a mapping of its own.
    if let Cap::Frame {
        start,
        bits,
        mapping: Some(mapping),
        ..
    } = cap
    {
        vspace::unmap_frame(s, start, bits, mapping);
    }
    if is_final {
        stop(s, cap);
    }
}

/// Deletes all children of the capability in `slot` (02, section 7.2); it may go with them.
pub fn revoke(s: &mut State, slot: SlotId) {
    while let Some(child) = derivation::first_child(s, slot) {
        delete(s, child);
    }
}

/// Objects that no capability names any more are gone, and their memory is nobody's. Called at the
/// end of every event.
pub fn forget_unnamed(s: &mut State) {
    let named: BTreeSet<u64> = s
        .caps
        .slots
        .values()
        .filter_map(|held| object(held.cap))
        .collect();
    s.cnodes.retain(|id, _| named.contains(&id.0));
    s.threads.retain(|id, _| named.contains(&id.0));
    s.endpoints.retain(|id, _| named.contains(&id.0));
    s.notifications.retain(|id, _| named.contains(&id.0));
    s.replies.retain(|id, _| named.contains(&id.0));
    s.contexts.retain(|id, _| named.contains(&id.0));
    s.tables.retain(|id, _| named.contains(&id.0));
    s.pools.retain(|id, _| named.contains(&id.0));
}

/// Where the object lies that `cap` names, if that is one which the state has an entry for.
fn object(cap: Cap) -> Option<Address> {
    match cap {
        Cap::Untyped { .. } | Cap::Frame { .. } => None,
        cap => Some(region::memory(cap)?.0),
    }
}

/// What happens to what `cap` names when its last capability goes (02, section 7.1).
fn stop(s: &mut State, cap: Cap) {
    match cap {
        Cap::Endpoint { object, .. } => endpoint::cancel_all(s, object),
        Cap::Notification { object, .. } => stop_notification(s, object),
        Cap::Reply { object, .. } => stop_reply(s, object),
        Cap::Thread(object) => stop_thread(s, object),
        Cap::CNode { object, .. } => empty_cnode(s, object),
        Cap::SchedContext { object, .. } => stop_context(s, object),
        Cap::IrqHandler { irq: number } => {
            delete(s, SlotId::Irq(number));
            irq::set_masked(s, number, true);
            s.irqs.remove(&number);
        }
        Cap::IoPort { first, last } => {
            s.ports.remove(&(first, last));
        }
        Cap::AsidPool { object, number } => stop_pool(s, object, number),
        Cap::Root {
            object,
            asid: Some(asid),
        } => vspace::free_asid(s, asid, object),
        Cap::Paging {
            object,
            level,
            mapping: Some(mapping),
        } => {
            vspace::unmap_table(s, object, level, mapping);
        }
        Cap::Untyped { .. }
        | Cap::Frame { .. }
        | Cap::Paging { mapping: None, .. }
        | Cap::Root { asid: None, .. }
        | Cap::SchedControl { .. }
        | Cap::Domain
        | Cap::IrqControl
        | Cap::AsidControl
        | Cap::IoPortControl
        | Cap::SgiSignal { .. } => (),
    }
}

/// Whoever runs on another core as, or on, what `cap` names is stalled, before anything is deleted: the
/// event may end there (04, section 6.4).
fn stall_user(s: &mut State, cap: Cap) {
    match cap {
        Cap::Thread(object) => cores::stall(s, object),
        Cap::SchedContext { object, .. } => cores::stall_user(s, object),
        Cap::Reply { object, .. } => reply::stall_borrower(s, object),
        _ => (),
    }
}

fn stop_notification(s: &mut State, object: NotificationId) {
    if let Some(context) = s.notifications[&object].context {
        context::unbind_notification(s, context);
    }
    if let Some(thread) = s.notification_mut(object).thread.take() {
        s.thread_mut(thread).notification = None;
    }
    notification::cancel_all(s, object);
}

fn stop_reply(s: &mut State, object: ReplyId) {
    let Some(thread) = s.replies[&object].thread else {
        return;
    };
    match s.threads[&thread].state {
        // It stays inactive, and so waits for no handler (04, section 7.5).
        ThreadState::BlockedOnReply { .. } => {
            let _ = reply::pop(s, object);
            s.thread_mut(thread).fault = None;
        }
        _ => thread::cancel_ipc(s, thread),
    }
}

fn stop_thread(s: &mut State, object: ThreadId) {
    if let Some(bound) = s.thread_mut(object).notification.take() {
        s.notification_mut(bound).thread = None;
    }
    if let Some(context) = s.threads[&object].context {
        context::complete_yield(s, context);
        context::unbind_thread(s, context);
    }
    thread::suspend(s, object);
    let slots = |slot| SlotId::Thread(object, slot);
    empty(
        s,
        slots(ThreadSlot::CSpace)..=slots(ThreadSlot::TimeoutHandler),
    );
}

fn empty_cnode(s: &mut State, object: CNodeId) {
    empty(
        s,
        SlotId::CNode(object, 0)..=SlotId::CNode(object, u64::MAX),
    );
}

/// Deletes what is in `slots`, the last first, and what is in that before the next.
fn empty(s: &mut State, slots: RangeInclusive<SlotId>) {
    while let Some((&last, _)) = s.caps.slots.range(slots.clone()).next_back() {
        delete(s, last);
    }
}

fn stop_context(s: &mut State, object: ContextId) {
    context::unbind_thread(s, object);
    context::unbind_notification(s, object);
    reply::detach_stack(s, object);
    context::complete_yield(s, object);
    let context = s.context_mut(object);
    context.max_refills = 0;
    context.refills.clear();
    context.sporadic = false;
}

/// The pool leaves the identifiers: the address spaces in it translate nothing (07, section 8).
fn stop_pool(s: &mut State, object: PoolId, number: u8) {
    if s.asids.get(&number) == Some(&object) {
        s.asids.remove(&number);
        cores::stall_homeless(s);
    }
}
