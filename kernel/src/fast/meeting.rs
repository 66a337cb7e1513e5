//! A thread calls one that waits for a call, or has its fault or timeout told to it.

use super::handover::{self, lend, Payer};
use super::Switch;
use crate::ipc::reply;
use crate::mem::Ref;
use crate::object::{Core, Endpoint, Reply, SchedContext, State, Tcb};
use crate::{Kernel, View};

/// A thread that waits for a call, with a reply object, the only one that waits at its endpoint. It is the next to run.
pub struct Meeting {
    pub callee: Ref<Tcb>,
    endpoint: Ref<Endpoint>,
    reply: Ref<Reply>,
    payer: Payer,
}

impl Meeting {
    /// Whom `caller`, the current thread of `core`, finds at `endpoint`: on a context of its own, or on the one that is `lent`,
    /// if any is.
    #[inline(always)]
    pub fn plan(
        k: &View,
        core: &Core,
        caller: Ref<Tcb>,
        endpoint: Ref<Endpoint>,
        lent: Option<Ref<SchedContext>>,
    ) -> Option<Meeting> {
        let callee = endpoint.at(k).only_receiver()?;
        let State::BlockedOnReceive { reply, .. } = callee.at(k).state() else {
            return None;
        };
        let payer = match callee.at(k).sched_context() {
            None => Payer::Lent(lent?),
            Some(own) => Payer::Own(Some(own).filter(|own| own.at(k).is_active())?),
        };
        let reply = reply?;
        handover::is_next_while_due(k, core, caller, callee).then_some(Meeting {
            callee,
            endpoint,
            reply,
            payer,
        })
    }

    /// The callee, which has been told, runs, and `caller` waits for its answer.
    #[inline(always)]
    pub fn carry_out(self, k: &Kernel, caller: Ref<Tcb>) -> Switch {
        let callee = self.callee;
        let reply = self.reply;
        self.endpoint.at(k).queue().remove_only(k);
        reply.at(k).set_thread(k, Some(caller));
        caller.at(k).set_state(k, State::BlockedOnReply { reply });
        trace!(k, block(caller));
        callee.at(k).set_state(k, State::Running);
        match self.payer {
            Payer::Lent(handle) => {
                reply::put_on_top(k, handle, reply);
                trace!(k, lend(handle, callee));
                lend(k, handle, caller, callee);
                trace!(k, wake(callee));
                Switch::OnLent(callee)
            }
            Payer::Own(own) => {
                trace!(k, wake(callee));
                Switch::Woken(callee, own)
            }
        }
    }
}
