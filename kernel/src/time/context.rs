//! Binding, lending and configuring scheduling contexts (04, sections 5 and 7).

use super::{account, remote, schedule, Refills, Turn};
use crate::cores::CoreId;
use crate::mem::Ref;
use crate::object::{Notification, Parameters, SchedContext, State, Tcb};
use crate::{Kernel, View};

/// Whether `context` is active and its head refill may be used now.
pub fn is_released(k: &View, context: Ref<SchedContext>) -> bool {
    let context = context.at(k);
    context.is_active() && context.head().time <= k.core().now()
}

/// Configures `handle`, whose thread does not run on another core, for `on` (04, section 5.2). One
/// that is active and whose thread is runnable keeps its history even if it comes from another core:
/// to move hands out nothing that its window forbids (ABI README, where Sandglass differs).
pub fn configure(
    k: &Kernel,
    turn: &Turn,
    handle: Ref<SchedContext>,
    on: CoreId,
    parameters: Parameters,
) {
    let context = handle.at(k);
    let core = k.core();
    let thread = context.thread();
    if let Some(thread) = thread {
        schedule::unqueue(k, thread);
        if core.context() == Some(handle) {
            account::commit(k, core);
        }
    }
    let refills = Refills::of(k, handle);
    let keeps_history =
        context.is_active() && thread.is_some_and(|thread| thread.at(k).is_runnable());
    if parameters.budget == parameters.period {
        refills.start(2, parameters.budget, 0);
    } else if keeps_history {
        refills.update(parameters.max_refills, parameters.budget, parameters.period);
    } else {
        refills.start(parameters.max_refills, parameters.budget, parameters.period);
    }
    trace!(k, configure(handle, parameters, keeps_history));
    context.set_core(k, on);
    if let Some(thread) = thread {
        remote::migrate(k, thread, on);
        resume(k, handle);
        if core.thread() == Some(thread) {
            core.request_reprogram(k);
            turn.reschedule(k);
        } else if thread.at(k).is_runnable() {
            turn.wake(k, thread);
        }
    }
    context.set_badge(k, parameters.badge);
    context.set_sporadic(k, parameters.sporadic);
}

/// The thread of `context` waits for its refill if it may not run on what there is now. Returns whether it does.
pub fn resume(k: &Kernel, handle: Ref<SchedContext>) -> bool {
    let Some(thread) = handle.at(k).thread() else {
        return false;
    };
    let has_no_time = schedule::is_schedulable(k, thread) && !Refills::of(k, handle).usable();
    if has_no_time {
        schedule::postpone(k, handle);
    }
    has_no_time
}

/// A thread leaves a blocked state: its sporadic context, unless in use, starts its refills anew
/// (04, section 5.4).
#[inline(always)]
pub fn wake_refills(k: &Kernel, thread: Ref<Tcb>) {
    let Some(handle) = thread.at(k).sched_context() else {
        return;
    };
    if handle.at(k).is_sporadic() && !is_in_use(k, handle) {
        unblock(k, handle);
    }
}

/// Whether `handle` pays on its core.
fn is_in_use(k: &Kernel, handle: Ref<SchedContext>) -> bool {
    k.core_of(handle.at(k).core()).context() == Some(handle)
}

/// Starts the refills of `context` anew if they are ready; nothing for round-robin.
#[inline(always)]
pub fn unblock(k: &Kernel, handle: Ref<SchedContext>) {
    let context = handle.at(k);
    let has_refills = context.is_active() && !context.is_round_robin();
    if has_refills && Refills::of(k, handle).ready() {
        renew(k, handle);
    }
}

/// Does so where they are ready. Apart, as limits of paths name it.
#[inline(never)]
fn renew(k: &Kernel, handle: Ref<SchedContext>) {
    if Refills::of(k, handle).unblock() {
        k.core_of(handle.at(k).core()).request_reprogram(k);
    }
}

/// Binds `context` to `thread`; neither is bound (04, section 5.5).
pub fn bind_thread(k: &Kernel, turn: &Turn, handle: Ref<SchedContext>, thread: Ref<Tcb>) {
    trace!(k, bind(handle, thread));
    link(k, handle, thread);
    wake_refills(k, thread);
    if !schedule::is_schedulable(k, thread) {
        return;
    }
    if Refills::of(k, handle).usable() {
        schedule::enqueue(k, thread);
        turn.reconsider(k, thread);
    } else {
        schedule::postpone(k, handle);
    }
}

/// Links a context and a thread that have none, so that the thread is in no queue of a scheduler: it
/// goes where the context is.
#[inline(always)]
fn link(k: &Kernel, handle: Ref<SchedContext>, thread: Ref<Tcb>) {
    remote::migrate(k, thread, handle.at(k).core());
    handle.at(k).set_thread(k, Some(thread));
    thread.at(k).set_sched_context(k, Some(handle));
}

/// Takes the thread of `context`, which does not run on another core, from it, if it has one.
pub fn unbind_thread(k: &Kernel, turn: &Turn, handle: Ref<SchedContext>) {
    let Some(thread) = handle.at(k).thread() else {
        return;
    };
    trace!(k, unbind(handle, thread));
    let was_queued = schedule::unqueue(k, thread);
    thread.at(k).set_sched_context(k, None);
    handle.at(k).set_thread(k, None);
    if !was_queued {
        taken_from(k, turn, thread);
    }
}

/// Takes `thread`, which is in no queue of the scheduler and does not wait to be heard, from its `context`.
pub fn unbind_free(k: &Kernel, turn: &Turn, handle: Ref<SchedContext>, thread: Ref<Tcb>) {
    trace!(k, unbind(handle, thread));
    thread.at(k).set_sched_context(k, None);
    handle.at(k).set_thread(k, None);
    let _ = turn.lose_context(k, thread);
}

/// `thread`, in no queue of the scheduler, has lost its context. Neither the current thread nor the candidate waits for anybody.
#[inline(always)]
fn taken_from(k: &Kernel, turn: &Turn, thread: Ref<Tcb>) {
    if turn.lose_context(k, thread) {
        call_anew(k, thread);
    }
}

/// `thread` has lost its context. If it waits to be heard through a capability that lets it do nothing
/// but call, it leaves the queue and will call anew when it has a context again: its message brings one
/// (decision *calls only*).
#[cold]
#[inline(never)]
fn call_anew(k: &Kernel, thread: Ref<Tcb>) {
    let State::BlockedOnSend { endpoint, sender } = thread.at(k).state() else {
        return;
    };
    if sender.rights.calls_only() {
        endpoint.at(k).queue().leave(k, thread);
        thread.at(k).set_state(k, State::Restart);
        trace!(k, wake(thread));
    }
}

/// Takes the notification of `context` from it, if it has one.
pub fn unbind_notification(k: &Kernel, handle: Ref<SchedContext>) {
    if let Some(notification) = handle.at(k).notification() {
        notification.at(k).set_sched_context(k, None);
        handle.at(k).set_notification(k, None);
    }
}

/// Binds `context` to `notification`; neither is bound to such.
pub fn bind_notification(k: &Kernel, handle: Ref<SchedContext>, notification: Ref<Notification>) {
    handle.at(k).set_notification(k, Some(notification));
    notification.at(k).set_sched_context(k, Some(handle));
}

/// Lends `context` to `to`, which has none; whoever had it, not running on another core, is passive
/// now (04, section 7.1).
#[inline(always)]
pub fn donate(k: &Kernel, turn: &Turn, handle: Ref<SchedContext>, to: Ref<Tcb>) {
    if let Some(from) = handle.at(k).thread() {
        let was_queued = schedule::unqueue(k, from);
        from.at(k).set_sched_context(k, None);
        if !was_queued {
            taken_from(k, turn, from);
        }
    }
    link(k, handle, to);
}

/// Lends the `context` of `from`, which is in no queue of the scheduler and does not wait to be heard, to `to`, which has
/// none: `from` is passive now (04, section 7.1).
#[inline(always)]
pub fn lend(k: &Kernel, turn: &Turn, handle: Ref<SchedContext>, from: Ref<Tcb>, to: Ref<Tcb>) {
    from.at(k).set_sched_context(k, None);
    let _ = turn.lose_context(k, from);
    link(k, handle, to);
}

/// The recipient of a signal of `notification` has no context: it gets that of the notification,
/// if that is free (04, section 7.6). Returns whether it waits for its refill from now on.
#[must_use]
#[inline(always)]
pub fn donate_of_notification(
    k: &Kernel,
    turn: &Turn,
    notification: Ref<Notification>,
    to: Ref<Tcb>,
) -> bool {
    if to.at(k).sched_context().is_some() {
        return false;
    }
    let Some(handle) = notification.at(k).sched_context() else {
        return false;
    };
    if handle.at(k).thread().is_some() {
        return false;
    }
    trace!(k, give_of_notification(handle, to));
    donate(k, turn, handle, to);
    wake_refills(k, to);
    resume(k, handle)
}

/// `thread` is about to wait for `notification`: if it runs on the notification's context, it
/// gives that back.
#[inline(always)]
pub fn return_to_notification(
    k: &Kernel,
    turn: &Turn,
    thread: Ref<Tcb>,
    notification: Ref<Notification>,
) {
    let Some(handle) = thread.at(k).sched_context() else {
        return;
    };
    if notification.at(k).sched_context() == Some(handle) {
        unbind_free(k, turn, handle, thread);
    }
}
