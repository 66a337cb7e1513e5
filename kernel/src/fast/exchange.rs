//! Call and ReplyRecv: one thread sends and blocks, the other runs.

use super::delivery::{plain_message, Delivery};
use super::handover::{self, Payer};
use super::{wait, Line, Outcome, Request};
use crate::cap::lookup;
use crate::ipc::endpoint;
use crate::mem::Ref;
use crate::object::{Above, Endpoint, Reply, SchedContext, State, Tcb};
use crate::{Kernel, View};

/// A Call to a thread that waits for one with a reply object, the only one that waits there.
pub struct Call {
    message: Delivery,
    endpoint: Ref<Endpoint>,
    reply: Ref<Reply>,
    payer: Payer,
}

impl Line for Call {
    #[inline(always)]
    fn plan(k: &View, caller: Ref<Tcb>, request: Request) -> Option<Call> {
        let info = plain_message(request)?;
        let cap = lookup::direct(k, caller, request.cptr)?.endpoint()?;
        if !cap.rights.calls() {
            return None;
        }
        let callee = cap.object.at(k).only_receiver()?;
        let State::BlockedOnReceive { reply, .. } = callee.at(k).state() else {
            return None;
        };
        let payer = match callee.at(k).sched_context() {
            None => Payer::Lent(k.core().context()?),
            Some(own) => Payer::Own(Some(own).filter(|&own| handover::runs_on(k, own))?),
        };
        handover::is_next(k, callee).then_some(Call {
            message: Delivery {
                from: caller,
                to: callee,
                badge: cap.badge,
                info,
            },
            endpoint: cap.object,
            reply: reply?,
            payer,
        })
    }

    /// The callee runs.
    #[inline(always)]
    fn carry_out(self, k: &Kernel, caller: Ref<Tcb>) -> Outcome {
        let callee = self.message.to;
        let (reply, object) = (self.reply, self.reply.at(k));
        self.endpoint.at(k).queue().remove_only(k);
        self.message.carry_out(k);
        object.set_thread(k, Some(caller));
        caller.at(k).set_state(k, State::BlockedOnReply { reply });
        trace!(k, block(caller));
        callee.at(k).set_state(k, State::Running);
        match self.payer {
            Payer::Lent(handle) => {
                let below = handle.at(k).reply();
                object.set_below(k, below);
                object.set_above(k, Above::Context(handle));
                if let Some(below) = below {
                    below.at(k).set_above(k, Above::Reply(reply));
                }
                handle.at(k).set_reply(k, Some(reply));
                trace!(k, lend(handle, callee));
                lend(k, handle, caller, callee);
                trace!(k, wake(callee));
                Outcome::HandsOver(callee)
            }
            Payer::Own(own) => {
                trace!(k, wake(callee));
                Outcome::Switches(callee, own)
            }
        }
    }
}

/// `to`, which has none, gets the context of `from`.
#[inline(always)]
fn lend(k: &Kernel, handle: Ref<SchedContext>, from: Ref<Tcb>, to: Ref<Tcb>) {
    from.at(k).set_sched_context(k, None);
    handle.at(k).set_thread(k, Some(to));
    to.at(k).set_sched_context(k, Some(handle));
}

/// A ReplyRecv of a server that has nobody else to serve: through one reply object it answers a caller, and waits for the
/// next one.
pub struct ReplyRecv {
    message: Delivery,
    endpoint: Ref<Endpoint>,
    reply: Ref<Reply>,
    payer: Payer,
}

impl Line for ReplyRecv {
    #[inline(always)]
    fn plan(k: &View, server: Ref<Tcb>, request: Request) -> Option<ReplyRecv> {
        let info = plain_message(request)?;
        let reply = server.at(k).context().reply_register();
        let reply = lookup::direct(k, server, reply)?.reply()?.object;
        let caller = reply.at(k).thread()?;
        if caller.at(k).fault().is_some() {
            return None;
        }
        let payer = payer(k, reply, caller)?;
        let cap = lookup::direct(k, server, request.cptr)?.endpoint()?;
        if !cap.rights.read()
            || !cap.object.at(k).queue().is_clear()
            || !wait::hears_nothing(k, server)
        {
            return None;
        }
        handover::is_next(k, caller).then_some(ReplyRecv {
            message: Delivery {
                from: server,
                to: caller,
                badge: 0,
                info,
            },
            endpoint: cap.object,
            reply,
            payer,
        })
    }

    /// The caller runs.
    #[inline(always)]
    fn carry_out(self, k: &Kernel, server: Ref<Tcb>) -> Outcome {
        let caller = self.message.to;
        let (reply, object) = (self.reply, self.reply.at(k));
        match self.payer {
            Payer::Lent(_handle) => {
                trace!(k, give_back(_handle, caller));
            }
            Payer::Own(_) => {
                trace!(k, keep_back(None, caller));
            }
        }
        self.message.carry_out(k);
        caller.at(k).set_state(k, State::Running);
        trace!(k, wake(caller));
        object.set_thread(k, Some(server));
        server.at(k).set_state(
            k,
            State::BlockedOnReceive {
                endpoint: self.endpoint,
                reply: Some(reply),
            },
        );
        trace!(k, block(server));
        let queue = self.endpoint.at(k).queue();
        queue.insert_only(k, server, endpoint::rank(k, server));
        match self.payer {
            Payer::Lent(handle) => {
                let below = object.below();
                handle.at(k).set_reply(k, below);
                if let Some(below) = below {
                    below.at(k).set_above(k, Above::Context(handle));
                }
                object.set_below(k, None);
                object.set_above(k, Above::Nothing);
                lend(k, handle, server, caller);
                Outcome::HandsOver(caller)
            }
            Payer::Own(own) => Outcome::Switches(caller, own),
        }
    }
}

/// Whether the head of `own` may be used now.
fn has_time(k: &View, own: Ref<SchedContext>) -> bool {
    let head = own.at(k).head();
    head.time <= k.core().now() && head.amount >= k.constants.min_budget()
}

/// On whose time `caller`, of which `reply` tells, goes on if it waits for that: the one that it lent to the current thread, or
/// its own. Whoever has lent his, waits.
#[inline(always)]
fn payer(k: &View, reply: Ref<Reply>, caller: Ref<Tcb>) -> Option<Payer> {
    match (reply.at(k).above(), caller.at(k).sched_context()) {
        (Above::Context(handle), None) if k.core().context() == Some(handle) => {
            Some(Payer::Lent(handle))
        }
        (Above::Nothing, Some(own))
            if matches!(caller.at(k).state(), State::BlockedOnReply { .. })
                && reply.at(k).below().is_none()
                && handover::runs_on(k, own)
                && has_time(k, own) =>
        {
            Some(Payer::Own(own))
        }
        _ => None,
    }
}
