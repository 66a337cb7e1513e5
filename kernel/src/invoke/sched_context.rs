//! Invocations of a scheduling context (03, section 6.2).

use sandglass_abi::invocation as label;

use super::{Error, Invocation, Outcome, Stop};
use crate::ipc::{reply, stall};
use crate::mem::Ref;
use crate::object::{Notification, SchedContext, Tcb};
use crate::thread::yielding::complete_yield;
use crate::time::context::{self, is_released};
use crate::time::{account, schedule, Turn};
use crate::{Kernel, View};

/// A checked invocation of a scheduling context.
enum Operation {
    BindThread(Ref<Tcb>),
    BindNotification(Ref<Notification>),
    Unbind,
    UnbindThread,
    UnbindNotification,
    Consumed,
    /// To its thread.
    YieldTo(Ref<Tcb>),
}

/// Invokes a scheduling context (03, section 6.2).
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    let handle = call.cap.word().get().ok_or(Error::InvalidCapability(0))?;
    stall::quiesce_user(k, turn, handle)?;
    let operation = decode(k, call, handle)?;
    Ok(commit(k, turn, call.caller, handle, operation))
}

fn decode(k: &View, call: &Invocation, handle: Ref<SchedContext>) -> Result<Operation, Error> {
    match call.label() {
        label::SCHED_CONTEXT_BIND => decode_bind(k, call, handle),
        label::SCHED_CONTEXT_UNBIND => {
            Error::IllegalOperation.when(handle.at(k).thread() == Some(call.caller))?;
            Ok(Operation::Unbind)
        }
        label::SCHED_CONTEXT_UNBIND_OBJECT => decode_unbind(k, call, handle.at(k)),
        label::SCHED_CONTEXT_CONSUMED => Ok(Operation::Consumed),
        label::SCHED_CONTEXT_YIELD_TO => decode_yield_to(k, call, handle.at(k)),
        _ => Err(Error::IllegalOperation),
    }
}

fn decode_bind(k: &View, call: &Invocation, handle: Ref<SchedContext>) -> Result<Operation, Error> {
    let context = handle.at(k);
    let object = call.extra_cap(k, 0)?.word();
    if let Some(thread) = object.get::<Tcb>() {
        let is_bound = context.thread().is_some() || thread.at(k).sched_context().is_some();
        let waits = thread.at(k).is_blocked() && !is_released(k, handle);
        Error::IllegalOperation.when(is_bound || waits)?;
        Ok(Operation::BindThread(thread))
    } else if let Some(notification) = object.get::<Notification>() {
        let is_lent = notification.at(k).sched_context().is_some();
        Error::IllegalOperation.when(context.notification().is_some() || is_lent)?;
        Ok(Operation::BindNotification(notification))
    } else {
        Err(Error::InvalidCapability(1))
    }
}

fn decode_unbind(k: &View, call: &Invocation, context: &SchedContext) -> Result<Operation, Error> {
    let object = call.extra_cap(k, 0)?.word();
    if let Some(thread) = object.get::<Tcb>() {
        let is_other = context.thread() != Some(thread);
        Error::IllegalOperation.when(is_other || thread == call.caller)?;
        Ok(Operation::UnbindThread)
    } else if let Some(notification) = object.get::<Notification>() {
        Error::IllegalOperation.when(context.notification() != Some(notification))?;
        Ok(Operation::UnbindNotification)
    } else {
        Err(Error::InvalidCapability(1))
    }
}

fn decode_yield_to(k: &View, call: &Invocation, to: &SchedContext) -> Result<Operation, Error> {
    let limit = call.caller.at(k).max_controlled_priority();
    let thread = to.thread().filter(|&thread| thread != call.caller);
    let thread = thread.filter(|thread| thread.at(k).priority() <= limit);
    thread
        .map(Operation::YieldTo)
        .ok_or(Error::IllegalOperation)
}

fn commit(
    k: &Kernel,
    turn: &Turn,
    caller: Ref<Tcb>,
    handle: Ref<SchedContext>,
    operation: Operation,
) -> Outcome {
    match operation {
        Operation::BindThread(thread) => context::bind_thread(k, turn, handle, thread),
        Operation::BindNotification(notification) => {
            context::bind_notification(k, handle, notification);
        }
        Operation::Unbind => {
            context::unbind_thread(k, turn, handle);
            context::unbind_notification(k, handle);
            reply::detach_stack(k, handle);
        }
        Operation::UnbindThread => context::unbind_thread(k, turn, handle),
        Operation::UnbindNotification => context::unbind_notification(k, handle),
        Operation::Consumed => return Outcome::Value(account::report_consumed(k, handle)),
        Operation::YieldTo(thread) => return yield_to(k, turn, caller, handle, thread),
    }
    Outcome::Done
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
    if thread.at(k).priority() < caller.at(k).priority() || !k.is_here(thread) {
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
