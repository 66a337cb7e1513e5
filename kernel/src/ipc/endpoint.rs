//! Sending and receiving through endpoints (01, sections 5.3, 5.4 and 5.6).

use sandglass_abi::message::MessageInfo;

use super::caps::{self, Transferred};
use super::{cancel, fault, message, notification, reply, ExtraCaps};
use crate::cap::EndpointCap;
use crate::mem::Ref;
use crate::object::{Endpoint, EndpointState, Reply, Sender, State, Tcb};
use crate::time::{context, Turn};
use crate::Kernel;

/// How a message is sent.
#[derive(Clone, Copy)]
pub struct SendOptions<'a> {
    /// Its capabilities.
    pub extra: &'a ExtraCaps,
    pub blocking: bool,
    pub is_call: bool,
    /// Whether the sender's context may go to a passive receiver.
    pub can_donate: bool,
}

/// Order in the queue of an endpoint or notification: by priority, first come first served.
pub fn rank(k: &Kernel, thread: Ref<Tcb>) -> u8 {
    u8::MAX - thread.at(k).priority()
}

/// `sender` sends its message through `cap`, whose endpoint admits it.
#[inline(never)]
pub fn send(k: &Kernel, turn: &Turn, sender: Ref<Tcb>, cap: EndpointCap, options: SendOptions<'_>) {
    offer::<false>(k, turn, sender, cap, options);
}

/// The pending fault of `sender` is sent through `cap`, whose endpoint admits it; on its context, if `can_donate`.
#[inline(always)]
pub fn send_fault(k: &Kernel, turn: &Turn, sender: Ref<Tcb>, cap: EndpointCap, can_donate: bool) {
    let options = SendOptions {
        extra: &ExtraCaps::NONE,
        blocking: true,
        is_call: false,
        can_donate,
    };
    offer::<true>(k, turn, sender, cap, options);
}

/// Does so: a fault, if it is one.
#[inline(always)]
fn offer<const FAULT: bool>(
    k: &Kernel,
    turn: &Turn,
    sender: Ref<Tcb>,
    cap: EndpointCap,
    options: SendOptions<'_>,
) {
    let endpoint = cap.object.at(k);
    let terms = Sender {
        badge: cap.badge,
        rights: cap.rights,
        is_call: options.is_call,
    };
    match endpoint.state() {
        EndpointState::Receivers => {
            if let Some(receiver) = endpoint.queue().first() {
                hand_over::<FAULT>(k, turn, sender, receiver, cap.object, terms, options);
            }
        }
        EndpointState::Idle | EndpointState::Senders if options.blocking => {
            sender.at(k).set_state(
                k,
                State::BlockedOnSend {
                    endpoint: cap.object,
                    sender: terms,
                },
            );
            turn.stop(k, sender);
            endpoint.expect_senders(k, true);
            endpoint.queue().insert_numbered(k, sender, rank(k, sender));
        }
        EndpointState::Idle | EndpointState::Senders => {}
    }
}

/// `receiver`, the first in the queue of `endpoint`, gets the message of `sender`, or the one about its fault.
#[inline(always)]
fn hand_over<const FAULT: bool>(
    k: &Kernel,
    turn: &Turn,
    sender: Ref<Tcb>,
    receiver: Ref<Tcb>,
    endpoint: Ref<Endpoint>,
    terms: Sender,
    options: SendOptions<'_>,
) {
    endpoint.at(k).queue().remove(k, receiver);
    let offered = match receiver.at(k).state() {
        State::BlockedOnReceive { reply, .. } => reply,
        _ => None,
    };
    if let Some(offered) = offered {
        offered.at(k).set_thread(k, None);
    }
    let can_donate = options.can_donate;
    if FAULT {
        fault::write_message(k, sender, receiver, terms.badge);
    } else {
        let (may_grant, extra) = (terms.rights.grant(), options.extra);
        transfer_message(k, sender, receiver, terms.badge, |info| {
            give(k, receiver, Some(endpoint), may_grant, info, extra)
        });
    }
    if terms.is_call || FAULT {
        expect_reply(k, turn, sender, receiver, offered, terms, can_donate);
    } else if can_donate && receiver.at(k).sched_context().is_none() {
        if let Some(context) = sender.at(k).sched_context() {
            trace!(k, give(context, receiver));
            context::lend(k, turn, context, sender, receiver);
        }
    }
    receiver.at(k).set_state(k, State::Running);
    trace!(k, wake(receiver));
    context::wake_refills(k, receiver);
    turn.wake(k, receiver);
}

/// `caller` waits for the reply of `callee` through the reply object that was offered; where it
/// cannot, nobody will ever answer it.
#[inline(always)]
fn expect_reply(
    k: &Kernel,
    turn: &Turn,
    caller: Ref<Tcb>,
    callee: Ref<Tcb>,
    offered: Option<Ref<Reply>>,
    terms: Sender,
    can_donate: bool,
) {
    match offered {
        Some(offered) if terms.rights.answerable() => {
            reply::push(k, turn, caller, callee, offered, can_donate);
        }
        _ => {
            caller.at(k).set_state(k, State::Inactive);
            turn.stop(k, caller);
        }
    }
}

/// `receiver`, the current thread, receives at `endpoint`, which admits it, offering a reply object
/// or none.
#[inline(never)]
pub fn receive(
    k: &Kernel,
    turn: &Turn,
    receiver: Ref<Tcb>,
    endpoint: Ref<Endpoint>,
    offered: Option<Ref<Reply>>,
    blocking: bool,
) {
    if let Some(user) = offered.and_then(|offered| offered.at(k).thread()) {
        if user != receiver {
            cancel::cancel_ipc(k, user);
        }
    }
    if let Some(bound) = receiver.at(k).notification() {
        if notification::take(k, turn, receiver, bound) {
            return;
        }
        if blocking {
            context::return_to_notification(k, turn, receiver, bound);
        }
    }
    let object = endpoint.at(k);
    match object.state() {
        EndpointState::Senders => {
            if let Some(sender) = object.queue().first() {
                take_message(k, turn, receiver, sender, endpoint, offered);
            }
        }
        EndpointState::Idle | EndpointState::Receivers if blocking => {
            if let Some(offered) = offered {
                offered.at(k).set_thread(k, Some(receiver));
            }
            receiver.at(k).set_state(
                k,
                State::BlockedOnReceive {
                    endpoint,
                    reply: offered,
                },
            );
            turn.stop(k, receiver);
            object.expect_senders(k, false);
            object.queue().insert(k, receiver, rank(k, receiver));
        }
        EndpointState::Idle | EndpointState::Receivers => {
            receiver.at(k).context().set_badge(k, 0);
        }
    }
}

/// `receiver` gets the message of `sender`, the first in the queue of `endpoint`.
fn take_message(
    k: &Kernel,
    turn: &Turn,
    receiver: Ref<Tcb>,
    sender: Ref<Tcb>,
    endpoint: Ref<Endpoint>,
    offered: Option<Ref<Reply>>,
) {
    let State::BlockedOnSend { sender: terms, .. } = sender.at(k).state() else {
        never!("the queue has senders");
        return;
    };
    endpoint.at(k).queue().remove(k, sender);
    let pending = sender.at(k).fault();
    transfer(k, sender, receiver, terms.badge, |info| {
        if terms.rights.grant() && info.extra_caps() > 0 {
            caps::transfer_late(k, sender, receiver, endpoint, info)
        } else {
            Transferred::default()
        }
    });
    context::wake_refills(k, sender);
    if terms.is_call || pending.is_some() {
        let can_donate = sender.at(k).sched_context().is_some()
            && !pending.is_some_and(|fault| fault.is_timeout());
        expect_reply(k, turn, sender, receiver, offered, terms, can_donate);
    } else {
        sender.at(k).set_state(k, State::Running);
        trace!(k, wake(sender));
        turn.wake(k, sender);
    }
}

/// Gives `receiver` the message of `sender`, whose capabilities `give` gives it, or the message
/// about its pending fault.
#[inline(always)]
fn transfer(
    k: &Kernel,
    sender: Ref<Tcb>,
    receiver: Ref<Tcb>,
    badge: u64,
    give: impl FnOnce(MessageInfo) -> Transferred,
) {
    if sender.at(k).fault().is_some() {
        fault::write_message(k, sender, receiver, badge);
    } else {
        transfer_message(k, sender, receiver, badge, give);
    }
}

/// Gives `receiver` the message of `sender`, whose capabilities `give` gives it.
#[inline(always)]
pub fn transfer_message(
    k: &Kernel,
    sender: Ref<Tcb>,
    receiver: Ref<Tcb>,
    badge: u64,
    give: impl FnOnce(MessageInfo) -> Transferred,
) {
    let info = MessageInfo::from_raw(sender.at(k).context().info());
    let length = message::copy_words(k, sender, receiver, info.length());
    let moved = give(info);
    let context = receiver.at(k).context();
    context.set_info(
        k,
        MessageInfo::new(info.label(), moved.unwrapped, moved.count, length).raw(),
    );
    context.set_badge(k, badge);
}

/// Gives `receiver` the capabilities `extra` of a message that `info` describes, if the sender may
/// grant them.
#[inline(always)]
pub fn give(
    k: &Kernel,
    receiver: Ref<Tcb>,
    endpoint: Option<Ref<Endpoint>>,
    can_grant: bool,
    info: MessageInfo,
    extra: &ExtraCaps,
) -> Transferred {
    if can_grant && info.extra_caps() > 0 {
        caps::transfer(k, receiver, endpoint, extra)
    } else {
        Transferred::default()
    }
}
