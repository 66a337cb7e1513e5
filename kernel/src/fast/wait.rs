//! Recv and Wait: the current thread waits, and the next one runs.

use super::handover::Successor;
use super::{Due, Line, Outcome, Request};
use crate::cap::lookup;
use crate::ipc::endpoint;
use crate::mem::Ref;
use crate::object::{Core, Endpoint, Notification, Reply, State, Tcb};
use crate::{Kernel, View};

/// Whether no signal keeps `thread` from waiting at an endpoint, and it owes no notification its time.
#[inline(always)]
pub fn hears_nothing(k: &View, thread: Ref<Tcb>) -> bool {
    match thread.at(k).notification() {
        None => true,
        Some(bound) => !bound.at(k).is_active() && bound.at(k).sched_context().is_none(),
    }
}

/// A thread waits at an endpoint, where nobody else does, and offers a reply object.
pub struct Reception {
    pub endpoint: Ref<Endpoint>,
    pub reply: Ref<Reply>,
}

impl Reception {
    /// At the endpoint that the `request` of `receiver` names, with a reply object that is free.
    #[inline(always)]
    pub fn plan(k: &View, receiver: Ref<Tcb>, request: Request) -> Option<Reception> {
        let cap = lookup::direct(k, receiver, request.cptr)?.endpoint()?;
        let reply = receiver.at(k).context().reply_register();
        let reply = lookup::direct(k, receiver, reply)?.reply()?.object;
        let waits = cap.rights.read()
            && cap.object.at(k).queue().is_clear()
            && reply.at(k).thread().is_none()
            && hears_nothing(k, receiver);
        waits.then_some(Reception {
            endpoint: cap.object,
            reply,
        })
    }

    /// `receiver`, the current thread, waits.
    #[inline(always)]
    pub fn carry_out(self, k: &Kernel, receiver: Ref<Tcb>) {
        let (endpoint, reply) = (self.endpoint, self.reply);
        reply.at(k).set_thread(k, Some(receiver));
        let reply = Some(reply);
        receiver
            .at(k)
            .set_state(k, State::BlockedOnReceive { endpoint, reply });
        trace!(k, block(receiver));
        let queue = endpoint.at(k).queue();
        queue.insert_only(k, receiver, endpoint::rank(k, receiver));
    }
}

/// A Recv.
pub struct Recv {
    reception: Reception,
    next: Successor,
}

impl Line for Recv {
    const DUE: Due = Due::IsPlannedFor;

    #[inline(always)]
    fn plan(k: &View, core: &Core, receiver: Ref<Tcb>, request: Request) -> Option<Recv> {
        Some(Recv {
            reception: Reception::plan(k, receiver, request)?,
            next: Successor::plan(k, core)?,
        })
    }

    #[inline(always)]
    fn carry_out(self, k: &Kernel, core: &Core, receiver: Ref<Tcb>) -> Outcome {
        self.reception.carry_out(k, receiver);
        Outcome::Switches(self.next.carry_out(k, core))
    }
}

/// A Wait for a notification: of the only one that waits, or of one that finds a signal.
pub struct Wait {
    notification: Ref<Notification>,
    /// Who runs, if no signal is pending.
    next: Option<Successor>,
}

impl Line for Wait {
    const DUE: Due = Due::IsPlannedFor;

    #[inline(always)]
    fn plan(k: &View, core: &Core, waiter: Ref<Tcb>, request: Request) -> Option<Wait> {
        let cap = lookup::direct(k, waiter, request.cptr)?.notification()?;
        let object = cap.object.at(k);
        let is_taken = object.thread().is_some_and(|bound| bound != waiter);
        // Nobody owes it his context, as it has none.
        if !cap.rights.read() || is_taken || object.sched_context().is_some() {
            return None;
        }
        let next = if object.queue().is_marked() {
            if core.is_anybody_due() {
                return None;
            }
            None
        } else if object.queue().is_clear() {
            Some(Successor::plan(k, core)?)
        } else {
            return None;
        };
        Some(Wait {
            notification: cap.object,
            next,
        })
    }

    #[inline(always)]
    fn carry_out(self, k: &Kernel, core: &Core, waiter: Ref<Tcb>) -> Outcome {
        let notification = self.notification;
        let (tcb, object) = (waiter.at(k), notification.at(k));
        let Some(next) = self.next else {
            let badge = object.take_pending(k).unwrap_or(0);
            tcb.context().set_badge(k, badge);
            return Outcome::Stays;
        };
        tcb.set_state(k, State::BlockedOnNotification { notification });
        trace!(k, block(waiter));
        object
            .queue()
            .insert_only(k, waiter, endpoint::rank(k, waiter));
        Outcome::Switches(next.carry_out(k, core))
    }
}
