//! What happens to an object when its last capability goes (02, section 7.1): one bounded step at
//! a time.

use super::deletion::{Deletion, Progress};
use super::irq;
use crate::arch::abi::invoke as arch;
use crate::cap::deletion::Remainder;
use crate::cap::{derivation, Capability};
use crate::ipc::{cancel, reply, stall};
use crate::mem::{Kind, Ref, Slot};
use crate::object::{Notification, Queue, Reply, SchedContext, State, Tcb};
use crate::thread::{self, yielding};
use crate::time::{context, Preempted, Turn};
use crate::Kernel;

/// Takes apart the object of the capability in `slot` if that is the last one; frames are
/// unmapped with each of their capabilities.
///
/// # Errors
/// The thread that ran on the object, on another core, was stopped, which took the rest of the caller's
/// time: nothing else was done.
#[inline(always)]
pub fn finalise(k: &Kernel, turn: &Turn, slot: Ref<Slot>, deletion: &mut Deletion) -> Progress {
    let cap = slot.at(k).cap();
    let last = cap.frame().is_none() && derivation::is_final(k, slot);
    let word = cap.word();
    if !last {
        held(k, turn, cap, last, deletion)?;
    } else if let Some(reply) = word.get() {
        deletion.object(k)?;
        end_reply(k, turn, reply)?;
    } else if let Some(thread) = word.get() {
        deletion.object(k)?;
        end_thread(k, turn, thread)?;
        return Ok(Remainder::Slots);
    } else if let Some(handle) = word.get() {
        deletion.object(k)?;
        end_context(k, turn, handle)?;
    } else if let Some(irq) = cap.irq() {
        deletion.object(k)?;
        irq::release(k, turn, irq, deletion)?;
    } else if cap.is(Kind::CNode) {
        deletion.object(k)?;
        return Ok(Remainder::Slots);
    } else {
        held(k, turn, cap, last, deletion)?;
    }
    Ok(Remainder::Nothing)
}

/// [`finalise`] for what the kernel's own slots may hold when they are overwritten: endpoints, notifications, frames,
/// address spaces, and what is not the `last` capability of its object. No such slot holds the last capability of a CNode or
/// a thread: who overwrites it was refused then (`tcb::space`).
///
/// # Errors
/// As [`finalise`].
#[inline(always)]
pub(super) fn held(
    k: &Kernel,
    turn: &Turn,
    cap: Capability,
    last: bool,
    deletion: &mut Deletion,
) -> Result<(), Preempted> {
    if let Some(frame) = cap.frame() {
        arch::frame::unmap(k, frame);
    } else if let Some(endpoint) = cap.endpoint() {
        let queue = endpoint.object.at(k).queue();
        // Once begun, emptying goes on even if a capability has appeared meanwhile.
        if last || !queue.admits() {
            deletion.object(k)?;
            empty(k, turn, queue, deletion)?;
        }
    } else if let Some(notification) = cap.notification() {
        if last || !notification.object.at(k).queue().admits() {
            deletion.object(k)?;
            empty_notification(k, turn, notification.object, deletion)?;
        }
    } else if last {
        deletion.object(k)?;
        arch::finalise(k, turn, cap.kind(), cap);
    }
    Ok(())
}

/// Empties the queue of an object: its threads try again, or give up. Between two of them it looks for interrupts.
///
/// # Errors
/// As [`Deletion::delete`].
fn empty(k: &Kernel, turn: &Turn, queue: &Queue, deletion: &mut Deletion) -> Result<(), Preempted> {
    queue.begin_emptying(k);
    // Ends: each turn takes a thread out, and nobody is queued here any more.
    while let Some(first) = queue.take_first(k) {
        if let State::BlockedOnReceive {
            reply: Some(offered),
            ..
        } = first.at(k).state()
        {
            offered.at(k).set_thread(k, None);
        }
        turn.reschedule(k);
        thread::restart_or_give_up(k, first);
        deletion.look(k)?;
    }
    queue.end_emptying(k);
    Ok(())
}

/// Empties a notification.
///
/// # Errors
/// As [`Deletion::delete`].
pub(super) fn empty_notification(
    k: &Kernel,
    turn: &Turn,
    notification: Ref<Notification>,
    deletion: &mut Deletion,
) -> Result<(), Preempted> {
    let object = notification.at(k);
    if let Some(handle) = object.sched_context() {
        context::unbind_notification(k, handle);
    }
    if let Some(bound) = object.thread() {
        bound.at(k).set_notification(k, None);
        object.set_thread(k, None);
    }
    empty(k, turn, object.queue(), deletion)
}

fn end_reply(k: &Kernel, turn: &Turn, object: Ref<Reply>) -> Result<(), Preempted> {
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
    Ok(())
}

fn end_thread(k: &Kernel, turn: &Turn, tcb: Ref<Tcb>) -> Result<(), Preempted> {
    stall::quiesce(k, turn, tcb)?;
    if let Some(notification) = tcb.at(k).notification() {
        notification.at(k).set_thread(k, None);
        tcb.at(k).set_notification(k, None);
    }
    thread::suspend(k, turn, tcb);
    if let Some(handle) = tcb.at(k).sched_context() {
        yielding::complete_yield(k, handle);
        context::unbind_free(k, turn, handle, tcb);
    }
    if k.home(tcb).fpu_owner() == Some(tcb) {
        k.home(tcb).set_fpu_owner(k, None);
    }
    Ok(())
}

fn end_context(k: &Kernel, turn: &Turn, handle: Ref<SchedContext>) -> Result<(), Preempted> {
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
    Ok(())
}
