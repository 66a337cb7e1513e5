//! Reply objects at work: calls that lend time, replies that return it, and calls that are
//! aborted (04, section 7; thesis, section 7.2.2).

use super::{endpoint, fault, stall, timeout, ExtraCaps};
use crate::arch::bounds;
use crate::cap::ReplyCap;
use crate::mem::Ref;
use crate::object::{Above, Reply, SchedContext, State, Tcb, TcbSlot};
use crate::time::{context, schedule, Preempted, Refills, Turn};
use crate::Kernel;

/// `caller` waits for a reply through `reply`; a passive `callee` gets its context, if it may
/// (04, section 7.2).
#[inline(always)]
pub fn push(
    k: &Kernel,
    turn: &Turn,
    caller: Ref<Tcb>,
    callee: Ref<Tcb>,
    reply: Ref<Reply>,
    can_donate: bool,
) {
    let object = reply.at(k);
    object.set_thread(k, Some(caller));
    caller.at(k).set_state(k, State::BlockedOnReply { reply });
    turn.stop(k, caller);
    let lent = caller.at(k).sched_context().filter(|_| can_donate);
    if let (Some(handle), None) = (lent, callee.at(k).sched_context()) {
        put_on_top(k, handle, reply);
        trace!(k, lend(handle, callee));
        context::lend(k, turn, handle, caller, callee);
    }
}

/// Makes `reply`, which is in no stack, the topmost of that of `handle`.
#[inline(always)]
pub fn put_on_top(k: &Kernel, handle: Ref<SchedContext>, reply: Ref<Reply>) {
    let below = handle.at(k).reply();
    reply.at(k).set_below(k, below);
    reply.at(k).set_above(k, Above::Context(handle));
    if let Some(below) = below {
        below.at(k).set_above(k, Above::Reply(reply));
    }
    handle.at(k).set_reply(k, Some(reply));
}

/// Takes `reply`, the topmost of the stack of `handle`, off it.
#[inline(always)]
pub fn take_off(k: &Kernel, handle: Ref<SchedContext>, reply: Ref<Reply>) {
    let below = reply.at(k).below();
    handle.at(k).set_reply(k, below);
    if let Some(below) = below {
        below.at(k).set_above(k, Above::Context(handle));
    }
    reply.at(k).set_below(k, None);
    reply.at(k).set_above(k, Above::Nothing);
}

/// Takes `reply` out of its stack, which is cut in two if it is in the middle. Returns the context
/// if it was the topmost of one; then what is below is the topmost now.
#[inline(always)]
fn unlink(k: &Kernel, reply: Ref<Reply>) -> Option<Ref<SchedContext>> {
    let object = reply.at(k);
    let below = object.below();
    let (context, successor) = match object.above() {
        Above::Context(handle) => {
            handle.at(k).set_reply(k, below);
            (Some(handle), Above::Context(handle))
        }
        Above::Reply(above) => {
            trace!(k, abandon(None, object.thread()));
            above.at(k).set_below(k, None);
            (None, Above::Nothing)
        }
        Above::Nothing => (None, Above::Nothing),
    };
    if let Some(below) = below {
        below.at(k).set_above(k, successor);
    }
    object.set_below(k, None);
    object.set_above(k, Above::Nothing);
    context
}

/// Ends the wait for `reply`: the caller gets its context back if the reply was the topmost and it
/// has none. Returns the caller, which is inactive now.
///
/// # Errors
/// Whoever ran on the context elsewhere was stopped, which took the rest of this event's time: nothing
/// else was done.
#[inline(always)]
pub fn release(k: &Kernel, turn: &Turn, reply: Ref<Reply>) -> Result<Option<Ref<Tcb>>, Preempted> {
    let Some(caller) = waiting(k, reply) else {
        return Ok(None);
    };
    if let Above::Context(lent) = reply.at(k).above() {
        stall::quiesce_user(k, turn, lent)?;
    }
    let context = unlink(k, reply);
    reply.at(k).set_thread(k, None);
    caller.at(k).set_state(k, State::Inactive);
    if let (Some(handle), None) = (context, caller.at(k).sched_context()) {
        trace!(k, give_back(handle, caller));
        context::donate(k, turn, handle, caller);
    } else {
        trace!(k, keep_back(context, caller));
    }
    Ok(Some(caller))
}

/// Ends the wait for `reply` without returning a context: the stack above which the reply was the
/// topmost has none any more (04, section 7.5).
pub fn abort(k: &Kernel, reply: Ref<Reply>) {
    if let Above::Context(handle) = reply.at(k).above() {
        detach_stack(k, handle);
    }
    let _ = unlink(k, reply);
    reply.at(k).set_thread(k, None);
}

/// The stack of `context` loses it.
pub fn detach_stack(k: &Kernel, handle: Ref<SchedContext>) {
    if let Some(top) = handle.at(k).reply() {
        trace!(k, abandon(Some(handle), None));
        top.at(k).set_above(k, Above::Nothing);
        handle.at(k).set_reply(k, None);
    }
}

/// The thread that is blocked on `reply`.
#[inline(always)]
fn waiting(k: &Kernel, reply: Ref<Reply>) -> Option<Ref<Tcb>> {
    let thread = reply.at(k).thread()?;
    matches!(thread.at(k).state(), State::BlockedOnReply { .. }).then_some(thread)
}

/// `sender` replies through `cap` with the capabilities `extra` (04, section 7.4); nothing happens if nobody waits.
///
/// # Errors
/// As [`release`].
#[inline(never)]
pub fn reply(
    k: &Kernel,
    turn: &Turn,
    sender: Ref<Tcb>,
    cap: ReplyCap,
    extra: &ExtraCaps,
) -> Result<(), Preempted> {
    let Some(caller) = release(k, turn, cap.object)? else {
        return Ok(());
    };
    context::wake_refills(k, caller);
    let tcb = caller.at(k);
    let answered = tcb.fault();
    if answered.is_none() {
        bounds::mark::<{ bounds::MESSAGE }>();
        endpoint::transfer_message(k, sender, caller, 0, |info| {
            endpoint::give(k, caller, None, cap.can_grant, info, extra)
        });
        tcb.set_state(k, State::Running);
    } else {
        let resumes = fault::apply_reply(k, sender, caller);
        tcb.set_fault(k, None);
        use State::{Inactive, Restart};
        tcb.set_state(k, if resumes { Restart } else { Inactive });
    }
    if tcb.is_runnable() {
        trace!(k, wake(caller));
        go_on(
            k,
            turn,
            caller,
            answered.is_some_and(|fault| fault.is_timeout()),
        );
    }
    Ok(())
}

/// `caller` was answered: it goes on if its context lets it.
#[inline(always)]
fn go_on(k: &Kernel, turn: &Turn, caller: Ref<Tcb>, after_timeout: bool) {
    let Some(handle) = caller.at(k).sched_context() else {
        return;
    };
    if !handle.at(k).is_active() {
        return;
    }
    if Refills::of(k, handle).usable() {
        turn.wake(k, caller);
    } else {
        has_no_time(k, turn, caller, handle, after_timeout);
    }
}

/// `caller` was answered, but its context does not let it go on now.
fn has_no_time(
    k: &Kernel,
    turn: &Turn,
    caller: Ref<Tcb>,
    handle: Ref<SchedContext>,
    after_timeout: bool,
) {
    match fault::handler(k, caller, TcbSlot::TimeoutHandler) {
        Some(handler) if !after_timeout => timeout::raise(k, turn, caller, handler),
        _ => schedule::postpone(k, handle),
    }
}
