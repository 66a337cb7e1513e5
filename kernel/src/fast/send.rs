//! Send: a message to a thread that waits for one, or a signal.

use super::delivery::{plain_message, Delivery};
use super::signal::Signal;
use super::{handover, Due, Line, Outcome, Request};
use crate::cap::lookup;
use crate::mem::Ref;
use crate::object::{Endpoint, Reply, SchedContext, State, Tcb};
use crate::{Kernel, View};

/// A Send that need not wait.
pub enum Send {
    Signal(Signal),
    Message(Message),
}

impl Line for Send {
    const DUE: Due = Due::NobodyAbove;

    #[inline(always)]
    fn plan(k: &View, sender: Ref<Tcb>, request: Request) -> Option<Send> {
        let cap = lookup::direct(k, sender, request.cptr)?;
        // That of a signal has no reader, but its capabilities would be looked for.
        let info = plain_message(request)?;
        if let Some(cap) = cap.notification() {
            let signal = cap.rights.write().then(|| Signal::plan(k, cap));
            return signal?.map(Send::Signal);
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
            payer: handover::payer_of(k, receiver)?,
        }))
    }

    /// The one with the higher priority runs.
    #[inline(always)]
    fn carry_out(self, k: &Kernel, sender: Ref<Tcb>) -> Outcome {
        match self {
            Send::Signal(signal) => signal.carry_out(k, sender),
            Send::Message(message) => message.carry_out(k, sender),
        }
    }
}

/// A message to a thread that waits for one on a context of its own, the only one that waits there.
pub struct Message {
    delivery: Delivery,
    endpoint: Ref<Endpoint>,
    /// What the receiver offered for a call.
    reply: Option<Ref<Reply>>,
    payer: Ref<SchedContext>,
}

impl Message {
    #[inline(always)]
    fn carry_out(self, k: &Kernel, sender: Ref<Tcb>) -> Outcome {
        let receiver = self.delivery.to;
        self.endpoint.at(k).queue().remove_only(k);
        if let Some(reply) = self.reply {
            reply.at(k).set_thread(k, None);
        }
        self.delivery.carry_out(k);
        handover::wake(k, sender, receiver, self.payer)
    }
}
