//! What happens to an object when its last capability goes (02, section 7.1): one bounded step at
//! a time.

use super::irq;
use crate::arch::abi::invoke as arch;
use crate::cap::deletion::Remainder;
use crate::cap::derivation;
use crate::ipc::{cancel, reply, stall};
use crate::mem::{Kind, Ref, Slot};
use crate::object::{Endpoint, Notification, Reply, SchedContext, State, Tcb};
use crate::thread::{self, yielding};
use crate::time::{context, Preempted, Turn};
use crate::Kernel;

/// Takes apart the object of the capability in `slot` if that is the last one; frames are
/// unmapped with each of their capabilities.
///
/// # Errors
/// The thread that ran on the object, on another core, was stopped, which took the rest of the caller's
/// time: nothing else was done.
pub(super) fn finalise(k: &Kernel, turn: &Turn, slot: Ref<Slot>) -> Result<Remainder, Preempted> {
    let cap = slot.at(k).cap();
    if let Some(frame) = cap.frame() {
        arch::frame::unmap(k, frame);
        return Ok(Remainder::Nothing);
    }
    let last = derivation::is_final(k, slot);
    if let Some(endpoint) = cap.endpoint() {
        // Once begun, emptying goes on even if a capability has appeared meanwhile.
        let dying = !endpoint.object.at(k).admits();
        return Ok(if last || dying {
            empty_endpoint(k, turn, endpoint.object)
        } else {
            Remainder::Nothing
        });
    }
    if let Some(notification) = cap.notification() {
        let dying = !notification.object.at(k).admits();
        return Ok(if last || dying {
            empty_notification(k, turn, notification.object)
        } else {
            Remainder::Nothing
        });
    }
    if !last {
        return Ok(Remainder::Nothing);
    }
    Ok(match cap.kind() {
        Kind::Reply => match cap.reply() {
            Some(cap) => end_reply(k, turn, cap.object)?,
            None => Remainder::Nothing,
        },
        Kind::Tcb => match cap.word().get() {
            Some(tcb) => end_thread(k, turn, tcb)?,
            None => Remainder::Nothing,
        },
        Kind::CNode => Remainder::Slots,
        Kind::SchedContext => match cap.word().get() {
            Some(handle) => end_context(k, turn, handle)?,
            None => Remainder::Nothing,
        },
        Kind::IrqHandler => cap
            .irq()
            .map_or(Remainder::Nothing, |irq| irq::release(k, turn, irq)),
        kind => {
            arch::finalise(k, turn, kind, cap);
            Remainder::Nothing
        }
    })
}

/// One step of emptying an endpoint: a queued thread tries again, or gives up.
fn empty_endpoint(k: &Kernel, turn: &Turn, endpoint: Ref<Endpoint>) -> Remainder {
    let object = endpoint.at(k);
    let Some(first) = object.queue().first() else {
        object.set_dying(k, false);
        return Remainder::Nothing;
    };
    object.set_dying(k, true);
    object.queue().remove(k, first);
    if let State::BlockedOnReceive {
        reply: Some(offered),
        ..
    } = first.at(k).state()
    {
        offered.at(k).set_thread(k, None);
    }
    thread::restart_or_give_up(k, turn, first);
    turn.reschedule(k);
    Remainder::Unfinished
}

/// One step of emptying a notification.
pub(super) fn empty_notification(
    k: &Kernel,
    turn: &Turn,
    notification: Ref<Notification>,
) -> Remainder {
    let object = notification.at(k);
    if let Some(handle) = object.sched_context() {
        context::unbind_notification(k, handle);
    }
    if let Some(bound) = object.thread() {
        bound.at(k).set_notification(k, None);
        object.set_thread(k, None);
    }
    let Some(first) = object.queue().first() else {
        object.set_dying(k, false);
        return Remainder::Nothing;
    };
    object.set_dying(k, true);
    object.queue().remove(k, first);
    thread::restart_or_give_up(k, turn, first);
    turn.reschedule(k);
    Remainder::Unfinished
}

fn end_reply(k: &Kernel, turn: &Turn, object: Ref<Reply>) -> Result<Remainder, Preempted> {
    if let Some(waiting) = object.at(k).thread() {
        match waiting.at(k).state() {
            State::BlockedOnReply { .. } => {
                let caller = reply::release(k, turn, object)?;
                debug_assert!(caller == Some(waiting));
                waiting.at(k).set_fault(k, None);
            }
            _ => cancel::cancel_ipc(k, waiting),
        }
    }
    Ok(Remainder::Nothing)
}

fn end_thread(k: &Kernel, turn: &Turn, tcb: Ref<Tcb>) -> Result<Remainder, Preempted> {
    stall::quiesce(k, turn, tcb)?;
    if let Some(notification) = tcb.at(k).notification() {
        notification.at(k).set_thread(k, None);
        tcb.at(k).set_notification(k, None);
    }
    if let Some(handle) = tcb.at(k).sched_context() {
        yielding::complete_yield(k, handle);
        context::unbind_thread(k, turn, handle);
    }
    thread::suspend(k, turn, tcb);
    if k.home(tcb).fpu_owner() == Some(tcb) {
        k.home(tcb).set_fpu_owner(k, None);
    }
    Ok(Remainder::Slots)
}

fn end_context(k: &Kernel, turn: &Turn, handle: Ref<SchedContext>) -> Result<Remainder, Preempted> {
    stall::quiesce_user(k, turn, handle)?;
    yielding::complete_yield(k, handle);
    context::unbind_thread(k, turn, handle);
    context::unbind_notification(k, handle);
    reply::detach_stack(k, handle);
    handle.at(k).deactivate(k);
    if k.core().context() == Some(handle) {
        // Nobody pays for the rest of this event; its thread was unbound, so another is chosen.
        k.core().set_context(k, None);
    }
    Ok(Remainder::Nothing)
}
