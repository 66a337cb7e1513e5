//! Invocations of a scheduling context (03, section 6.2).

use sandglass_abi::invocation as label;

use super::{Error, Invocation, Outcome, Stop};
use crate::ipc::{reply, stall};
use crate::mem::Ref;
use crate::object::{Notification, SchedContext, Tcb};
use crate::thread::yielding::complete_yield;
use crate::time::context::{self, is_released};
use crate::time::{account, schedule, Turn};
use crate::Kernel;

/// Invokes a scheduling context (03, section 6.2): what is called for is checked, and then done.
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    let handle = call.cap.word().get().ok_or(Error::InvalidCapability(0))?;
    stall::quiesce_user(k, turn, handle)?;
    match call.label() {
        label::SCHED_CONTEXT_BIND => bind(k, turn, call, handle)?,
        label::SCHED_CONTEXT_UNBIND => {
            Error::IllegalOperation.when(handle.at(k).thread() == Some(call.caller))?;
            context::unbind_thread(k, turn, handle);
            context::unbind_notification(k, handle);
            reply::detach_stack(k, handle);
        }
        label::SCHED_CONTEXT_UNBIND_OBJECT => unbind(k, turn, call, handle)?,
        label::SCHED_CONTEXT_CONSUMED => {
            return Ok(Outcome::Value(account::report_consumed(k, handle)));
        }
        label::SCHED_CONTEXT_YIELD_TO => {
            let limit = call.caller.at(k).max_controlled_priority();
            let thread = handle.at(k).thread();
            let thread = thread.filter(|&thread| thread != call.caller);
            let thread = thread.filter(|thread| thread.at(k).priority() <= limit);
            let thread = thread.ok_or(Error::IllegalOperation)?;
            return Ok(yield_to(k, turn, call.caller, handle, thread));
        }
        _ => return Err(Error::IllegalOperation.into()),
    }
    Ok(Outcome::Done)
}

fn bind(
    k: &Kernel,
    turn: &Turn,
    call: &Invocation,
    handle: Ref<SchedContext>,
) -> Result<(), Error> {
    let context = handle.at(k);
    let object = call.extra_cap(k, 0)?.word();
    if let Some(thread) = object.get::<Tcb>() {
        let is_bound = context.thread().is_some() || thread.at(k).sched_context().is_some();
        let waits = thread.at(k).is_blocked() && !is_released(k, handle);
        Error::IllegalOperation.when(is_bound || waits)?;
        context::bind_thread(k, turn, handle, thread);
    } else if let Some(notification) = object.get::<Notification>() {
        let is_lent = notification.at(k).sched_context().is_some();
        Error::IllegalOperation.when(context.notification().is_some() || is_lent)?;
        context::bind_notification(k, handle, notification);
    } else {
        return Err(Error::InvalidCapability(1));
    }
    Ok(())
}

fn unbind(
    k: &Kernel,
    turn: &Turn,
    call: &Invocation,
    handle: Ref<SchedContext>,
) -> Result<(), Error> {
    let object = call.extra_cap(k, 0)?.word();
    if let Some(thread) = object.get::<Tcb>() {
        let is_other = handle.at(k).thread() != Some(thread);
        Error::IllegalOperation.when(is_other || thread == call.caller)?;
        context::unbind_thread(k, turn, handle);
    } else if let Some(notification) = object.get::<Notification>() {
        Error::IllegalOperation.when(handle.at(k).notification() != Some(notification))?;
        context::unbind_notification(k, handle);
    } else {
        return Err(Error::InvalidCapability(1));
    }
    Ok(())
}

/// The caller lets `thread` run on `handle` in its place (04, section 9.2); it is told what was
/// consumed when it runs again, or at once if `thread` does not run now.
///
/// Until it is told, its call has succeeded, with nothing to tell: it is suspended as a thread that
/// was running.
fn yield_to(
    k: &Kernel,
    turn: &Turn,
    caller: Ref<Tcb>,
    handle: Ref<SchedContext>,
    thread: Ref<Tcb>,
) -> Outcome {
    complete_yield(k, handle);
    if schedule::is_schedulable(k, thread) {
        schedule::unqueue(k, thread);
        context::resume(k, handle);
    }
    if !schedule::is_schedulable(k, thread) {
        return Outcome::Value(account::report_consumed(k, handle));
    }
    if thread.at(k).priority() < caller.at(k).priority() || !k.is_on_this_core(thread) {
        schedule::enqueue(k, thread);
        return Outcome::Value(account::report_consumed(k, handle));
    }
    caller.at(k).set_yield_to(k, Some(handle));
    handle.at(k).set_yield_from(k, Some(caller));
    schedule::enqueue(k, caller);
    schedule::enqueue(k, thread);
    turn.reschedule(k);
    Outcome::Done
}
