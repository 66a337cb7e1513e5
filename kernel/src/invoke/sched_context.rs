//! Invocations of a scheduling context (03, section 6.2).

use sandglass_abi::invocation as label;

use super::{Error, Invocation, Outcome};
use crate::ipc::{reply, stall};
use crate::mem::Ref;
use crate::object::{Notification, SchedContext, Tcb};
use crate::thread::yielding::complete_yield;
use crate::time::context::{self, is_released};
use crate::time::{account, schedule, Turn};
use crate::{Kernel, View};

/// A checked invocation of a scheduling context.
#[derive(Clone, Copy)]
enum Operation {
    BindThread(Ref<SchedContext>, Ref<Tcb>),
    BindNotification(Ref<SchedContext>, Ref<Notification>),
    Unbind(Ref<SchedContext>),
    UnbindThread(Ref<SchedContext>),
    UnbindNotification(Ref<SchedContext>),
    Consumed(Ref<SchedContext>),
    YieldTo {
        context: Ref<SchedContext>,
        thread: Ref<Tcb>,
    },
}

/// Invokes a scheduling context (03, section 6.2).
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Error> {
    let handle = call
        .cap
        .word()
        .get::<SchedContext>()
        .ok_or(Error::InvalidCapability(0))?;
    if stall::quiesce_user(k, turn, handle).is_err() {
        return Ok(Outcome::Preempted);
    }
    let operation = decode(k, call, handle)?;
    Ok(commit(k, turn, call, operation))
}

fn decode(k: &View, call: &Invocation, handle: Ref<SchedContext>) -> Result<Operation, Error> {
    match call.label() {
        label::SCHED_CONTEXT_BIND => decode_bind(k, call, handle),
        label::SCHED_CONTEXT_UNBIND => {
            if handle.at(k).thread() == Some(call.caller) {
                return Err(Error::IllegalOperation);
            }
            Ok(Operation::Unbind(handle))
        }
        label::SCHED_CONTEXT_UNBIND_OBJECT => decode_unbind_object(k, call, handle),
        label::SCHED_CONTEXT_CONSUMED => Ok(Operation::Consumed(handle)),
        label::SCHED_CONTEXT_YIELD_TO => decode_yield_to(k, call, handle),
        _ => Err(Error::IllegalOperation),
    }
}

fn decode_bind(k: &View, call: &Invocation, handle: Ref<SchedContext>) -> Result<Operation, Error> {
    let context = handle.at(k);
    let object = call.extra_cap(k, 0)?.word();
    if let Some(thread) = object.get::<Tcb>() {
        if context.thread().is_some() || thread.at(k).sched_context().is_some() {
            return Err(Error::IllegalOperation);
        }
        if thread.at(k).is_blocked() && !is_released(k, handle) {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::BindThread(handle, thread))
    } else if let Some(notification) = object.get::<Notification>() {
        if context.notification().is_some() || notification.at(k).sched_context().is_some() {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::BindNotification(handle, notification))
    } else {
        Err(Error::InvalidCapability(1))
    }
}

fn decode_unbind_object(
    k: &View,
    call: &Invocation,
    handle: Ref<SchedContext>,
) -> Result<Operation, Error> {
    let context = handle.at(k);
    let object = call.extra_cap(k, 0)?.word();
    if let Some(thread) = object.get::<Tcb>() {
        if context.thread() != Some(thread) || thread == call.caller {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::UnbindThread(handle))
    } else if let Some(notification) = object.get::<Notification>() {
        if context.notification() != Some(notification) {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::UnbindNotification(handle))
    } else {
        Err(Error::InvalidCapability(1))
    }
}

fn decode_yield_to(
    k: &View,
    call: &Invocation,
    context: Ref<SchedContext>,
) -> Result<Operation, Error> {
    let caller = call.caller.at(k);
    match context.at(k).thread() {
        Some(thread)
            if thread != call.caller
                && thread.at(k).priority() <= caller.max_controlled_priority() =>
        {
            Ok(Operation::YieldTo { context, thread })
        }
        _ => Err(Error::IllegalOperation),
    }
}

fn commit(k: &Kernel, turn: &Turn, call: &Invocation, operation: Operation) -> Outcome {
    match operation {
        Operation::BindThread(handle, thread) => context::bind_thread(k, turn, handle, thread),
        Operation::BindNotification(handle, notification) => {
            context::bind_notification(k, handle, notification);
        }
        Operation::Unbind(handle) => {
            context::unbind_thread(k, turn, handle);
            context::unbind_notification(k, handle);
            reply::detach_stack(k, handle);
        }
        Operation::UnbindThread(handle) => context::unbind_thread(k, turn, handle),
        Operation::UnbindNotification(handle) => context::unbind_notification(k, handle),
        Operation::Consumed(handle) => return Outcome::Value(account::report_consumed(k, handle)),
        Operation::YieldTo { context, thread } => {
            return yield_to(k, turn, call.caller, context, thread);
        }
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
    context::resume(k, handle);
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
