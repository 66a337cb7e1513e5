//! Scheduling contexts (03, section 6.2).

use sandglass_abi::invocation as label;

use super::{Call, Outcome};
use crate::error::Error;
use crate::reply;
use crate::state::{Cap, ContextId, State, ThreadId};
use crate::time::{account, context as contexts, schedule};

/// Invokes `context`.
pub fn invoke(s: &mut State, call: &Call, context: ContextId) -> Result<Outcome, Error> {
    match call.label {
        label::SCHED_CONTEXT_BIND => bind(s, call, context),
        label::SCHED_CONTEXT_UNBIND => unbind(s, call, context),
        label::SCHED_CONTEXT_UNBIND_OBJECT => unbind_object(s, call, context),
        label::SCHED_CONTEXT_CONSUMED => {
            let consumed = account::report_consumed(s, context);
            Ok(Outcome::Words(vec![consumed]))
        }
        label::SCHED_CONTEXT_YIELD_TO => yield_to(s, call, context),
        _ => Err(Error::IllegalOperation),
    }
}

/// Bind (34).
fn bind(s: &mut State, call: &Call, context: ContextId) -> Result<Outcome, Error> {
    call.require(0, 1)?;
    let c = &s.contexts[&context];
    match call.extra_cap(s, 0).flatten() {
        Some(Cap::Thread(thread)) => {
            let waits = s.threads[&thread].state.is_blocked() && !contexts::is_released(s, context);
            if c.thread.is_some() || s.threads[&thread].context.is_some() || waits {
                return Err(Error::IllegalOperation);
            }
            contexts::bind_thread(s, context, thread);
        }
        Some(Cap::Notification { object, .. }) => {
            if c.notification.is_some() || s.notifications[&object].context.is_some() {
                return Err(Error::IllegalOperation);
            }
            contexts::bind_notification(s, context, object);
        }
        _ => return Err(Error::InvalidCapability(1)),
    }
    Ok(Outcome::Done)
}

/// Unbind (35).
fn unbind(s: &mut State, call: &Call, context: ContextId) -> Result<Outcome, Error> {
    if s.contexts[&context].thread == Some(call.caller) {
        return Err(Error::IllegalOperation);
    }
    contexts::unbind_thread(s, context);
    contexts::unbind_notification(s, context);
    reply::detach_stack(s, context);
    Ok(Outcome::Done)
}

/// UnbindObject (36). The reply stack stays (04, section 5.5).
fn unbind_object(s: &mut State, call: &Call, context: ContextId) -> Result<Outcome, Error> {
    call.require(0, 1)?;
    let c = &s.contexts[&context];
    match call.extra_cap(s, 0).flatten() {
        Some(Cap::Thread(thread)) => {
            if c.thread != Some(thread) || thread == call.caller {
                return Err(Error::IllegalOperation);
            }
            contexts::unbind_thread(s, context);
        }
        Some(Cap::Notification { object, .. }) => {
            if c.notification != Some(object) {
                return Err(Error::IllegalOperation);
            }
            contexts::unbind_notification(s, context);
        }
        _ => return Err(Error::InvalidCapability(1)),
    }
    Ok(Outcome::Done)
}

/// YieldTo (38).
fn yield_to(s: &mut State, call: &Call, context: ContextId) -> Result<Outcome, Error> {
    let Some(thread) = s.contexts[&context].thread else {
        return Err(Error::IllegalOperation);
    };
    let is_above = s.threads[&thread].priority > s.threads[&call.caller].mcp;
    if thread == call.caller || is_above {
        return Err(Error::IllegalOperation);
    }
    // 04, section 9.2, steps 1 and 2.
    contexts::complete_yield(s, context);
    contexts::resume(s, context);
    Ok(yield_to_thread(s, call, context, thread))
}

/// 04, section 9.2, steps 3 and 4: a thread of another core takes nobody's place here. Where the
/// consumption is told later, the invocation has nothing to tell.
fn yield_to_thread(s: &mut State, call: &Call, context: ContextId, thread: ThreadId) -> Outcome {
    let is_schedulable = schedule::is_schedulable(s, thread);
    let is_below = s.threads[&thread].priority < s.threads[&call.caller].priority;
    if is_schedulable && !is_below && s.is_on_this_core(thread) {
        wait_for(s, call.caller, context, thread);
        return Outcome::Done;
    }
    if is_schedulable {
        schedule::enqueue(s, thread);
    }
    Outcome::Words(vec![account::report_consumed(s, context)])
}

/// `thread` runs in the place of `caller`, which is told the consumption when it runs again (04,
/// section 9.2).
fn wait_for(s: &mut State, caller: ThreadId, context: ContextId, thread: ThreadId) {
    s.context_mut(context).yield_from = Some(caller);
    s.thread_mut(caller).yield_to = Some(context);
    schedule::enqueue(s, caller);
    schedule::enqueue(s, thread);
    schedule::force_reschedule(s);
}
