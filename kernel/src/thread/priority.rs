//! Changing priorities, wherever a thread is (04, section 8.3).

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
        set_priority_stopped(k, thread, priority);
    }
}

/// Changes the priority of `thread`, which does not run; where it waits in the queue of an object,
/// it goes behind its new equals, unless that is being emptied.
#[inline(never)]
fn set_priority_stopped(k: &Kernel, thread: Ref<Tcb>, priority: u8) {
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
    queue.remove(k, thread);
    tcb.set_priority(k, priority);
    let rank = endpoint::rank(k, thread);
    if is_sender {
        queue.insert_numbered(k, thread, rank);
    } else {
        queue.insert(k, thread, rank);
    }
}
