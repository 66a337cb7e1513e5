//! Changing priorities, wherever a thread is (04, section 8.3).

use crate::arch::bounds::turns;
use crate::cores::{CoreId, CORES};
use crate::ipc::endpoint;
use crate::mem::Ref;
use crate::object::{State, Tcb};
use crate::time::{schedule, Turn};
use crate::Kernel;

/// Changes the priority of `thread` (04, section 8.3).
#[inline(always)]
pub fn set_priority(k: &Kernel, turn: &Turn, thread: Ref<Tcb>, priority: u8) {
    trace!(k, priority(thread, priority));
    if thread.at(k).is_runnable() {
        schedule::set_priority(k, turn, thread, priority);
    } else {
        set_priority_stopped(k, turn, thread, priority);
    }
}

/// Changes the priority of `thread`, which does not run; where it waits in the queue of an object,
/// it goes behind its new equals, unless that is being emptied, or it is one whom a CancelBadgedSends has not come to yet.
#[inline(never)]
fn set_priority_stopped(k: &Kernel, turn: &Turn, thread: Ref<Tcb>, priority: u8) {
    let tcb = thread.at(k);
    let (queue, is_sender) = match tcb.state() {
        State::BlockedOnSend { endpoint, .. } => (endpoint.at(k).queue(), true),
        State::BlockedOnReceive { endpoint, .. } => (endpoint.at(k).queue(), false),
        State::BlockedOnNotification { notification } => (notification.at(k).queue(), false),
        _ => return tcb.set_priority(k, priority),
    };
    if !queue.admits() {
        return tcb.set_priority(k, priority);
    }
    let is_cancelled = is_sender && is_being_cancelled(k, thread);
    queue.remove(k, thread);
    tcb.set_priority(k, priority);
    if is_cancelled {
        turn.reschedule(k);
        return super::restart_or_give_up(k, thread);
    }
    let rank = endpoint::rank(k, thread);
    if is_sender {
        queue.insert_numbered(k, thread, rank);
        k.sender_has_moved();
    } else {
        queue.insert(k, thread, rank);
    }
}

/// Whether `thread` is to be restarted by a CancelBadgedSends that was preempted, which would not find it at another place.
fn is_being_cancelled(k: &Kernel, thread: Ref<Tcb>) -> bool {
    let by_one_on = |core| {
        let cancellation = k.core_of(core).cancellation();
        cancellation.is_some_and(|it| it.concerns(k, thread))
    };
    if CORES == 1 {
        return by_one_on(CoreId::BOOT);
    }
    turns::<{ CORES as u64 }, _>(CoreId::all()).any(by_one_on)
}
