//! Send: a message to a thread that waits for one, or a signal.

use super::delivery::{plain_message, Delivery};
use super::handover::Woken;
use super::signal::Signal;
use super::{Due, Line, Outcome, Request};
use crate::cap::lookup;
use crate::mem::Ref;
use crate::object::{Core, Endpoint, Notification, Reply, State, Tcb};
use crate::{Kernel, View};

/// A Send that need not wait.
pub enum Send {
    Signal(Signal),
    Message(Message),
}

impl Line for Send {
    const DUE: Due = Due::NobodyAbove;

    #[inline(always)]
    fn plan(k: &View, _: &Core, sender: Ref<Tcb>, request: Request) -> Option<Send> {
        let cap = lookup::direct(k, sender, request.cptr)?;
        // That of a signal has no reader, but its capabilities would be looked for.
        let info = plain_message(request)?;
        if let Some(cap) = cap.notification() {
            if !cap.rights.write() {
                return None;
            }
            return Signal::plan(k, sender, cap).map(Send::Signal);
        }
        let cap = cap.endpoint()?;
        if !cap.rights.sends(false) {
            return None;
        }
        let receiver = cap.object.at(k).only_receiver()?;
        let State::BlockedOnReceive { reply, .. } = receiver.at(k).state() else {
            return None;
        };
        Some(Send::Message(Message {
            delivery: Delivery {
                from: sender,
                to: receiver,
                badge: cap.badge,
                info,
            },
            endpoint: cap.object,
            reply,
            receiver: Woken::plan(k, sender, receiver)?,
        }))
    }

    /// The one with the higher priority runs.
    #[inline(always)]
    fn carry_out(self, k: &Kernel, core: &Core, sender: Ref<Tcb>) -> Outcome {
        let woken = self.woken();
        self.deliver(k);
        match woken {
            Some(woken) => woken.compete(k, core, sender),
            None => Outcome::Stays,
        }
    }
}

impl Send {
    /// Whom it wakes, if anybody.
    #[inline(always)]
    pub fn woken(&self) -> Option<Woken> {
        match self {
            Send::Signal(signal) => signal.waiter,
            Send::Message(message) => Some(message.receiver),
        }
    }

    /// What it signals, if it is a signal.
    #[inline(always)]
    pub fn notification(&self) -> Option<Ref<Notification>> {
        match self {
            Send::Signal(signal) => Some(signal.notification),
            Send::Message(_) => None,
        }
    }

    /// Whom it wakes has it, and waits for nothing any more.
    #[inline(always)]
    pub fn deliver(self, k: &Kernel) {
        match self {
            Send::Signal(signal) => signal.deliver(k),
            Send::Message(message) => message.deliver(k),
        }
    }
}

/// A message to a thread that waits for one, the only one that waits there.
pub struct Message {
    delivery: Delivery,
    endpoint: Ref<Endpoint>,
    /// What the receiver offered for a call.
    reply: Option<Ref<Reply>>,
    receiver: Woken,
}

impl Message {
    #[inline(always)]
    fn deliver(self, k: &Kernel) {
        self.endpoint.at(k).queue().remove_only(k);
        if let Some(reply) = self.reply {
            reply.at(k).set_thread(k, None);
        }
        self.delivery.carry_out(k);
    }
}
