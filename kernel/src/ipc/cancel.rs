//! Taking threads out of what they wait for (04, section 10).

use super::reply;
use crate::mem::Ref;
use crate::object::{State, Tcb};
use crate::Kernel;

/// Takes `thread` out of whatever it waits for: it is inactive then, and has no fault pending. A
/// context that it lent is not returned.
pub fn cancel_ipc(k: &Kernel, thread: Ref<Tcb>) {
    let tcb = thread.at(k);
    tcb.set_fault(k, None);
    match tcb.state() {
        State::Inactive | State::Running | State::Restart => return,
        State::BlockedOnSend { endpoint, .. } => endpoint.at(k).queue().leave(k, thread),
        State::BlockedOnReceive { endpoint, reply } => {
            endpoint.at(k).queue().leave(k, thread);
            if let Some(reply) = reply {
                reply.at(k).set_thread(k, None);
            }
        }
        State::BlockedOnReply { reply } => reply::abort(k, reply),
        State::BlockedOnNotification { notification } => {
            notification.at(k).queue().leave(k, thread);
        }
    }
    tcb.set_state(k, State::Inactive);
}
