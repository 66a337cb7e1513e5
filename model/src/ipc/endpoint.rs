//! Endpoints: messages pass when a sender and a receiver meet (01, sections 5.3 and 5.4).

use super::transfer::Channel;
use super::{abandon, fault, message, notification, queue, stop, wake};
use crate::state::{Endpoint, EndpointId, Fault, ReplyId, Signals, State, ThreadId, ThreadState};
use crate::time::{context, schedule};
use crate::{reply, thread};

/// How a thread sends to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Send {
    /// Whether it waits for a receiver.
    pub blocking: bool,
    /// Whether it waits for an answer.
    pub call: bool,
    /// Whether its scheduling context may be lent.
    pub can_donate: bool,
    /// Of the capability through which it sends.
    pub badge: u64,
    pub grant: bool,
    pub grant_reply: bool,
    /// Whether the capability lets it do nothing but call.
    pub calls_only: bool,
}

/// `sender` sends its message, or its fault, to `endpoint` (01, section 5.3).
pub fn send(s: &mut State, sender: ThreadId, endpoint: EndpointId, how: Send) {
    if let Some(receiver) = first_receiver(s, endpoint) {
        deliver(s, sender, receiver, endpoint, how);
    } else if how.blocking {
        queue::join_senders(s, endpoint, sender);
        let state = ThreadState::BlockedOnSend {
            endpoint,
            badge: how.badge,
            grant: how.grant,
            grant_reply: how.grant_reply,
            is_call: how.call,
            calls_only: how.calls_only,
        };
        stop(s, sender, state);
    }
}

/// `sender` meets `receiver`, which waited (01, section 5.3).
fn deliver(s: &mut State, sender: ThreadId, receiver: ThreadId, endpoint: EndpointId, how: Send) {
    // Step 1.
    transfer(s, sender, receiver, endpoint, how.badge, how.grant);
    // Step 2.
    let reply = detach_reply(s, receiver);
    // Step 3.
    if how.call || s.threads[&sender].fault.is_some() {
        let answerable = how.grant || how.grant_reply;
        await_answer(
            s,
            sender,
            receiver,
            reply.filter(|_| answerable),
            how.can_donate,
        );
    } else if how.can_donate && s.threads[&receiver].context.is_none() {
        if let Some(context) = s.threads[&sender].context {
            context::donate(s, context, receiver);
        }
    }
    // Step 4.
    wake(s, receiver, ThreadState::Running);
}

/// `receiver` waits for a message at `endpoint`, to be answered through `reply` (01, section 5.4).
pub fn receive(
    s: &mut State,
    receiver: ThreadId,
    endpoint: EndpointId,
    blocking: bool,
    reply: Option<ReplyId>,
) {
    // Step 1.
    if let Some(user) = reply.and_then(|reply| s.replies[&reply].thread) {
        thread::cancel_ipc(s, user);
    }
    if let Some(bound) = s.threads[&receiver].notification {
        // Step 2.
        if let Signals::Active(badge) = s.notifications[&bound].state {
            notification::consume(s, receiver, bound, badge);
            return;
        }
        // Step 3.
        if blocking {
            context::return_to_notification(s, receiver, bound);
        }
    }
    if let Some(sender) = first_sender(s, endpoint) {
        // Step 5.
        accept(s, sender, receiver, endpoint, reply);
    } else if blocking {
        // Step 4.
        if let Some(reply) = reply {
            s.reply_mut(reply).thread = Some(receiver);
        }
        queue::join_receivers(s, endpoint, receiver);
        stop(
            s,
            receiver,
            ThreadState::BlockedOnReceive { endpoint, reply },
        );
    } else {
        message::set_badge(s, receiver, 0);
    }
}

/// `receiver` meets `sender`, which waited (01, section 5.4 step 5).
fn accept(
    s: &mut State,
    sender: ThreadId,
    receiver: ThreadId,
    endpoint: EndpointId,
    reply: Option<ReplyId>,
) {
    let ThreadState::BlockedOnSend {
        badge,
        grant,
        grant_reply,
        is_call,
        ..
    } = s.threads[&sender].state
    else {
        unreachable!("who is in the queue of an endpoint's senders is blocked on sending");
    };
    transfer(s, sender, receiver, endpoint, badge, grant);
    let fault = s.threads[&sender].fault;
    if is_call || fault.is_some() {
        context::sporadic_unblock(s, sender);
        let can_donate = !matches!(fault, Some(Fault::Timeout { .. }));
        let answerable = grant || grant_reply;
        await_answer(
            s,
            sender,
            receiver,
            reply.filter(|_| answerable),
            can_donate,
        );
    } else {
        wake(s, sender, ThreadState::Running);
    }
}

/// What `sender` says reaches `receiver`: its fault if it has one, else its message (01, section
/// 5.3 step 1).
fn transfer(
    s: &mut State,
    sender: ThreadId,
    receiver: ThreadId,
    endpoint: EndpointId,
    badge: u64,
    grant: bool,
) {
    match s.threads[&sender].fault {
        Some(fault) => fault::deliver(s, sender, receiver, fault, badge),
        None => {
            let channel = Channel {
                endpoint: Some(endpoint),
                badge,
                grant,
            };
            super::transfer::message(s, sender, receiver, channel);
        }
    }
}

/// `caller` waits for the answer of `callee`; without an object through which that could come it
/// is inactive (01, section 5.3 step 3; 01, section 5.4 step 5).
fn await_answer(
    s: &mut State,
    caller: ThreadId,
    callee: ThreadId,
    reply: Option<ReplyId>,
    can_donate: bool,
) {
    match reply {
        Some(reply) => reply::push(s, caller, callee, reply, can_donate),
        None => stop(s, caller, ThreadState::Inactive),
    }
}

/// Takes the first receiver, if any, out of the queue of `endpoint`.
fn first_receiver(s: &mut State, endpoint: EndpointId) -> Option<ThreadId> {
    let Endpoint::Receivers(queue) = &s.endpoints[&endpoint] else {
        return None;
    };
    let first = queue[0];
    queue::leave(s, first);
    Some(first)
}

/// Takes the first sender, if any, out of the queue of `endpoint`.
fn first_sender(s: &mut State, endpoint: EndpointId) -> Option<ThreadId> {
    let Endpoint::Senders(queue) = &s.endpoints[&endpoint] else {
        return None;
    };
    let first = queue[0];
    queue::leave(s, first);
    Some(first)
}

/// The reply object that `thread` receives with, if it does, and did supply one, is its no more.
fn detach_reply(s: &mut State, thread: ThreadId) -> Option<ReplyId> {
    let ThreadState::BlockedOnReceive {
        reply: Some(reply), ..
    } = s.threads[&thread].state
    else {
        return None;
    };
    s.reply_mut(reply).thread = None;
    Some(reply)
}

/// Everybody leaves the queue of `endpoint`, whose last capability is deleted (02, section 7.1).
pub fn cancel_all(s: &mut State, endpoint: EndpointId) {
    let queued = s.endpoints.insert(endpoint, Endpoint::Idle);
    if let Some(Endpoint::Senders(queue) | Endpoint::Receivers(queue)) = queued {
        for thread in queue {
            let _ = detach_reply(s, thread);
            abandon(s, thread);
        }
        schedule::force_reschedule(s);
    }
}

/// Senders with `badge` leave the queue (02, section 7.4).
pub fn cancel_badged_sends(s: &mut State, endpoint: EndpointId, badge: u64) {
    let Endpoint::Senders(queue) = s.endpoints[&endpoint].clone() else {
        return;
    };
    for thread in queue {
        match s.threads[&thread].state {
            ThreadState::BlockedOnSend { badge: b, .. } if b == badge => {
                queue::leave(s, thread);
                abandon(s, thread);
            }
            _ => {}
        }
    }
    schedule::force_reschedule(s);
}
