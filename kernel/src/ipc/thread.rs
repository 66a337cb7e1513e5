//! Stopping and starting threads, and taking them out of what they wait for (04, section 10).

use super::{endpoint, reply};
use crate::cap::derivation;
use crate::mem::Ref;
use crate::object::tcb::{State, Tcb};
use crate::time::{context, schedule};
use crate::Kernel;

/// Takes `thread` out of whatever it waits for: it is inactive then, and has no fault pending. A
/// context that it lent is not returned.
pub fn cancel_ipc(k: &Kernel, thread: Ref<Tcb>) {
    let tcb = thread.at(k);
    tcb.set_fault(None);
    match tcb.state() {
        State::Inactive | State::Running | State::Restart => return,
        State::BlockedOnSend { endpoint, .. } => endpoint.at(k).queue().remove(k, thread),
        State::BlockedOnReceive { endpoint, reply } => {
            endpoint.at(k).queue().remove(k, thread);
            if let Some(reply) = reply {
                reply.at(k).set_thread(None);
            }
        }
        State::BlockedOnReply { reply } => reply::abort(k, reply),
        State::BlockedOnNotification { notification } => {
            notification.at(k).queue().remove(k, thread);
        }
    }
    tcb.set_state(State::Inactive);
}

/// Stops `thread`, whatever it does.
pub fn suspend(k: &Kernel, thread: Ref<Tcb>) {
    let tcb = thread.at(k);
    cancel_ipc(k, thread);
    if tcb.state() == State::Running {
        tcb.context().hold();
    }
    cancel_yield(k, thread);
    tcb.set_state(State::Inactive);
    schedule::unqueue(k, thread);
    schedule::stopped(k, thread);
}

/// Starts `thread` where it entered the kernel; nothing if it is not stopped or blocked.
pub fn resume(k: &Kernel, thread: Ref<Tcb>) {
    if thread.at(k).is_runnable() {
        return;
    }
    cancel_ipc(k, thread);
    restart(k, thread);
}

/// `thread`, in no object's queue any more, executes its system call anew.
pub fn restart(k: &Kernel, thread: Ref<Tcb>) {
    let tcb = thread.at(k);
    tcb.set_state(State::Restart);
    trace!(k, wake(thread));
    context::wake_refills(k, thread);
    if let Some(handle) = tcb.sched_context() {
        context::resume(k, handle);
    }
    if schedule::is_schedulable(k, thread) {
        schedule::candidate(k, thread);
    }
}

/// `thread` has lost its context. If it waits to be heard through a capability that lets it do nothing
/// but call, it leaves the queue and will call anew when it has a context again: its message brings one
/// (decision *calls only*).
#[cold]
#[inline(never)]
pub fn call_anew(k: &Kernel, thread: Ref<Tcb>) {
    let State::BlockedOnSend { endpoint, sender } = thread.at(k).state() else {
        return;
    };
    if sender.rights.calls_only() {
        endpoint.at(k).queue().remove(k, thread);
        thread.at(k).set_state(State::Restart);
        trace!(k, wake(thread));
    }
}

/// `thread`, just taken out of the queue of an object that ceases or rejects it, tries again; with
/// a fault pending it stays inactive (02, sections 7.1 and 7.4).
pub fn restart_or_give_up(k: &Kernel, thread: Ref<Tcb>) {
    let tcb = thread.at(k);
    if tcb.fault().is_some() {
        tcb.set_fault(None);
        tcb.set_state(State::Inactive);
    } else {
        restart(k, thread);
    }
}

/// Changes the priority of `thread` (04, section 8.3).
#[inline(always)]
pub fn set_priority(k: &Kernel, thread: Ref<Tcb>, priority: u8) {
    trace!(k, priority(thread, priority));
    if thread.at(k).is_runnable() {
        schedule::set_priority(k, thread, priority);
    } else {
        set_priority_stopped(k, thread, priority);
    }
}

/// Changes the priority of `thread`, which does not run; where it waits in the queue of an object,
/// it goes behind its new equals.
#[inline(never)]
fn set_priority_stopped(k: &Kernel, thread: Ref<Tcb>, priority: u8) {
    let tcb = thread.at(k);
    let queue = match tcb.state() {
        State::BlockedOnSend { endpoint, .. } | State::BlockedOnReceive { endpoint, .. } => {
            endpoint.at(k).queue()
        }
        State::BlockedOnNotification { notification } => notification.at(k).queue(),
        _ => return tcb.set_priority(priority),
    };
    queue.remove(k, thread);
    tcb.set_priority(priority);
    queue.insert(k, thread, endpoint::rank(k, thread));
}

/// `thread` is not told any more what the context that it yielded to consumed.
pub fn cancel_yield(k: &Kernel, thread: Ref<Tcb>) {
    if let Some(target) = thread.at(k).yield_to() {
        target.at(k).set_yield_from(None);
        thread.at(k).set_yield_to(None);
    }
}

/// Whether the lists around the capability slots of `thread` are consistent (debug kernel).
pub fn is_consistent(k: &Kernel, thread: Ref<Tcb>) -> bool {
    use crate::object::tcb::TcbSlot::*;
    let slots = [CSpace, VSpace, Buffer, FaultHandler, TimeoutHandler];
    let bound = thread.at(k).sched_context();
    slots
        .into_iter()
        .all(|slot| derivation::is_consistent(k, crate::mem::tcb_slot(thread, slot)))
        && bound.is_none_or(|context| context.at(k).thread() == Some(thread))
}
