//! Call and ReplyRecv: one thread sends and blocks, the other runs.

use super::delivery::{plain_message, Delivery};
use super::handover::{self, lend, Payer};
use super::meeting::Meeting;
use super::wait::{self, Reception};
use super::{Due, Line, Outcome, Request, Switch};
use crate::arch::bounds;
use crate::cap::lookup;
use crate::ipc::{fault, reply};
use crate::mem::Ref;
use crate::object::{Above, Core, Fault, Reply, SchedContext, State, Tcb};
use crate::{Kernel, View};

/// A Call without capabilities.
pub struct Call {
    message: Delivery,
    meeting: Meeting,
}

impl Line for Call {
    const DUE: Due = Due::NobodyAbove;

    #[inline(always)]
    fn plan(k: &View, core: &Core, caller: Ref<Tcb>, request: Request) -> Option<Call> {
        let info = plain_message(request)?;
        let cap = lookup::direct(k, caller, request.cptr)?.endpoint()?;
        if !cap.rights.calls() {
            return None;
        }
        let meeting = Meeting::plan(k, core, caller, cap.object, caller.at(k).sched_context())?;
        Some(Call {
            message: Delivery {
                from: caller,
                to: meeting.callee,
                badge: cap.badge,
                info,
            },
            meeting,
        })
    }

    /// The callee runs.
    #[inline(always)]
    fn carry_out(self, k: &Kernel, _: &Core, caller: Ref<Tcb>) -> Outcome {
        self.message.carry_out(k);
        Outcome::Switches(self.meeting.carry_out(k, caller))
    }
}

/// A ReplyRecv of a server that has nobody else to serve: through one reply object it answers a caller, and waits for the
/// next one.
pub enum ReplyRecv {
    Answers(Answer),
    /// [`AnswerFault`] is for it.
    AnswersFault,
}

impl Line for ReplyRecv {
    #[inline(always)]
    fn plan(k: &View, core: &Core, server: Ref<Tcb>, request: Request) -> Option<ReplyRecv> {
        let (reply, caller) = caller(k, server)?;
        bounds::mark::<{ bounds::DIRECT }>();
        if caller.at(k).fault().is_some() {
            return Some(ReplyRecv::AnswersFault);
        }
        Answer::plan(k, core, server, reply, caller, request).map(ReplyRecv::Answers)
    }

    #[inline(always)]
    fn carry_out(self, k: &Kernel, _: &Core, server: Ref<Tcb>) -> Outcome {
        let ReplyRecv::Answers(answer) = self else {
            return Outcome::Detours;
        };
        answer.message.carry_out(k);
        Outcome::Switches(answer.conclude(k, server))
    }
}

/// A ReplyRecv of a handler of faults, after which the thread goes on. Apart from the other, so that messages have the
/// registers to themselves.
pub struct AnswerFault(Answer);

impl Line for AnswerFault {
    #[inline(always)]
    fn plan(k: &View, core: &Core, server: Ref<Tcb>, request: Request) -> Option<AnswerFault> {
        let (reply, caller) = caller(k, server)?;
        let answer = Answer::plan(k, core, server, reply, caller, request)?;
        let goes_on = match caller.at(k).fault() {
            None | Some(Fault::Debug(_)) => false,
            // Other messages let the threads of some faults go on, too.
            Some(_) => answer.message.info.label() == 0,
        };
        goes_on.then_some(AnswerFault(answer))
    }

    /// The thread repeats what it did, or goes on as the registers say that the message sets.
    #[inline(always)]
    fn carry_out(self, k: &Kernel, _: &Core, server: Ref<Tcb>) -> Outcome {
        let thread = self.0.message.to;
        let _ = fault::apply_reply(k, server, thread);
        thread.at(k).set_fault(k, None);
        thread.at(k).context().restart(k);
        Outcome::Switches(self.0.conclude(k, server))
    }
}

/// The reply object that `server` names, and the thread that waits for it, or that it was offered by.
#[inline(always)]
fn caller(k: &View, server: Ref<Tcb>) -> Option<(Ref<Reply>, Ref<Tcb>)> {
    let cptr = server.at(k).context().reply_register();
    let reply = lookup::direct(k, server, cptr)?.reply()?.object;
    Some((reply, reply.at(k).thread()?))
}

/// What a ReplyRecv does, whatever it answers.
pub struct Answer {
    message: Delivery,
    reception: Reception,
    payer: Payer,
}

impl Answer {
    #[inline(always)]
    fn plan(
        k: &View,
        core: &Core,
        server: Ref<Tcb>,
        reply: Ref<Reply>,
        caller: Ref<Tcb>,
        request: Request,
    ) -> Option<Answer> {
        let info = plain_message(request)?;
        let payer = payer(k, core, reply, caller)?;
        let cap = lookup::direct(k, server, request.cptr)?.endpoint()?;
        if !cap.rights.read()
            || !cap.object.at(k).queue().is_clear()
            || !wait::hears_nothing(k, server)
        {
            return None;
        }
        handover::is_next(k, core, caller).then_some(Answer {
            message: Delivery {
                from: server,
                to: caller,
                badge: 0,
                info,
            },
            reception: Reception {
                endpoint: cap.object,
                reply,
            },
            payer,
        })
    }

    /// The caller, which has its answer, runs, and the server waits.
    #[inline(always)]
    fn conclude(self, k: &Kernel, server: Ref<Tcb>) -> Switch {
        let caller = self.message.to;
        let reply = self.reception.reply;
        match self.payer {
            Payer::Lent(_handle) => {
                trace!(k, give_back(_handle, caller));
            }
            Payer::Own(_) => {
                trace!(k, keep_back(None, caller));
            }
        }
        caller.at(k).set_state(k, State::Running);
        trace!(k, wake(caller));
        self.reception.carry_out(k, server);
        match self.payer {
            Payer::Lent(handle) => {
                reply::take_off(k, handle, reply);
                lend(k, handle, server, caller);
                Switch::OnLent(caller)
            }
            Payer::Own(own) => Switch::Woken(caller, own),
        }
    }
}

/// Whether the head of `own` may be used now.
fn has_time(k: &View, core: &Core, own: Ref<SchedContext>) -> bool {
    let head = own.at(k).head();
    head.time <= core.now() && head.amount >= k.constants.min_budget()
}

/// On whose time `caller`, of which `reply` tells, goes on if it waits for that: the one that it lent to the current thread, or
/// its own. Whoever has lent his, waits. `core` executes the kernel.
#[inline(always)]
fn payer(k: &View, core: &Core, reply: Ref<Reply>, caller: Ref<Tcb>) -> Option<Payer> {
    match (reply.at(k).above(), caller.at(k).sched_context()) {
        (Above::Context(handle), None) if core.context() == Some(handle) => {
            Some(Payer::Lent(handle))
        }
        (Above::Nothing, Some(own))
            if matches!(caller.at(k).state(), State::BlockedOnReply { .. })
                && reply.at(k).below().is_none()
                && own.at(k).is_active()
                && has_time(k, core, own) =>
        {
            Some(Payer::Own(own))
        }
        _ => None,
    }
}
