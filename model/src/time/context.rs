//! Scheduling contexts: binding, lending, configuring (04, sections 5 and 7).

use super::{account, cores, refills, schedule};
use crate::ipc::message;
use crate::state::{Action, ContextId, CoreId, NotificationId, State, ThreadId, Ticks};
use crate::thread;

/// Parameters of a configuration, checked: ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    pub budget: Ticks,
    pub period: Ticks,
    pub max_refills: u64,
    pub badge: u64,
    pub sporadic: bool,
}

/// Whether `context` is active and its head refill is ready (04, section 2.4).
pub fn is_released(s: &State, context: ContextId) -> bool {
    let c = &s.contexts[&context];
    c.is_active() && c.is_ready(s.core().now)
}

/// Configures `context` for `core` (04, section 5.2).
pub fn configure(s: &mut State, context: ContextId, core: CoreId, parameters: Parameters) {
    let thread = s.contexts[&context].thread;
    // Step 1.
    if let Some(thread) = thread {
        cores::stall(s, thread);
        schedule::dequeue(s, thread);
    }
    if s.core().context == Some(context) {
        account::commit(s, s.executing);
    }
    // Step 2.
    set_refills(s, context, parameters);
    // Step 3.
    s.context_mut(context).core = core;
    if let Some(thread) = thread {
        cores::migrate(s, thread, core);
    }
    // Step 4. The scheduler finds out if the current thread has left for another core.
    resume(s, context);
    match thread {
        Some(thread) if s.core().thread == Some(thread) => schedule::force_reschedule(s),
        Some(thread) if s.threads[&thread].state.is_runnable() => schedule::candidate(s, thread),
        _ => {}
    }
    // Step 5.
    let c = s.context_mut(context);
    c.badge = parameters.badge;
    c.sporadic = parameters.sporadic;
}

/// 04, section 5.2, step 2. Whether the context moves to another core makes no difference (docs,
/// deliberate difference 1).
fn set_refills(s: &mut State, context: ContextId, parameters: Parameters) {
    let Parameters {
        budget,
        period,
        max_refills,
        ..
    } = parameters;
    let now = s.core().now;
    let has_runnable_thread = s.contexts[&context]
        .thread
        .is_some_and(|thread| s.threads[&thread].state.is_runnable());
    let c = s.context_mut(context);
    if budget == period {
        refills::new(c, 2, budget, 0, now);
    } else if c.is_active() && has_runnable_thread {
        refills::update(c, max_refills, budget, period, now);
    } else {
        refills::new(c, max_refills, budget, period, now);
    }
}

/// The thread of `context` waits for its refill if it may not run now (04, section 5.2).
pub fn resume(s: &mut State, context: ContextId) {
    let thread = s.contexts[&context].thread;
    let is_schedulable = thread.is_some_and(|thread| schedule::is_schedulable(s, thread));
    if is_schedulable && !account::can_run(s, context) {
        schedule::postpone(s, context);
    }
}

/// `thread` leaves a blocked state: its context, if sporadic and not the current one of its core,
/// starts its refills anew (04, section 5.4).
pub fn sporadic_unblock(s: &mut State, thread: ThreadId) {
    let Some(context) = s.threads[&thread].context else {
        return;
    };
    let now = s.core().now;
    let core = s.contexts[&context].core.0;
    let is_current = s.cores[core].context == Some(context);
    let c = s.context_mut(context);
    if c.is_active() && c.sporadic && !is_current && refills::unblock_check(c, now) {
        s.cores[core].reprogram = true;
    }
}

/// Binds `context` to `thread` (04, section 5.5).
pub fn bind_thread(s: &mut State, context: ContextId, thread: ThreadId) {
    link(s, context, thread);
    sporadic_unblock(s, thread);
    resume(s, context);
    if schedule::is_schedulable(s, thread) {
        schedule::enqueue(s, thread);
        schedule::reconsider(s, thread);
    }
}

/// `context` and `thread` have each other from now on; the thread goes where the context is.
fn link(s: &mut State, context: ContextId, thread: ThreadId) {
    cores::migrate(s, thread, s.contexts[&context].core);
    s.context_mut(context).thread = Some(thread);
    s.thread_mut(thread).context = Some(context);
}

/// Takes the thread of `context` from it, if it has one; the thread keeps its state (04,
/// section 5.5). The candidate is treated like the current thread, as 04, section 7.1 says for
/// donation.
pub fn unbind_thread(s: &mut State, context: ContextId) {
    let Some(thread) = s.contexts[&context].thread else {
        return;
    };
    schedule::dequeue(s, thread);
    s.thread_mut(thread).context = None;
    s.context_mut(context).thread = None;
    if s.core().thread == Some(thread) || s.core().action == Action::Candidate(thread) {
        schedule::force_reschedule(s);
    }
    thread::call_anew(s, thread);
}

/// Binds `context` to `notification` (04, section 5.5).
pub fn bind_notification(s: &mut State, context: ContextId, notification: NotificationId) {
    s.context_mut(context).notification = Some(notification);
    s.notification_mut(notification).context = Some(context);
}

/// Takes the notification of `context` from it, if it has one (04, section 5.5).
pub fn unbind_notification(s: &mut State, context: ContextId) {
    if let Some(notification) = s.context_mut(context).notification.take() {
        s.notification_mut(notification).context = None;
    }
}

/// Lends `context` to `to`, which has none; whoever had it is passive now (04, section 7.1).
pub fn donate(s: &mut State, context: ContextId, to: ThreadId) {
    unbind_thread(s, context);
    link(s, context, to);
}

/// A recipient of a signal gets the context of `notification` if it has none and that is free (04,
/// sections 5.4 and 7.6).
pub fn donate_from_notification(s: &mut State, notification: NotificationId, to: ThreadId) {
    if s.threads[&to].context.is_some() {
        return;
    }
    let Some(context) = s.notifications[&notification].context else {
        return;
    };
    if s.contexts[&context].thread.is_none() {
        donate(s, context, to);
        sporadic_unblock(s, to);
        resume(s, context);
    }
}

/// `thread` is about to wait for `notification` and gives its context back if it is the
/// notification's (04, section 7.6).
pub fn return_to_notification(s: &mut State, thread: ThreadId, notification: NotificationId) {
    let context = s.threads[&thread].context;
    if let Some(context) = context.filter(|_| s.notifications[&notification].context == context) {
        unbind_thread(s, context);
    }
}

/// Whoever yielded to `context` is told the consumption now (04, section 9.2).
pub fn complete_yield(s: &mut State, context: ContextId) {
    if let Some(waiting) = s.contexts[&context].yield_from {
        cancel_yield(s, waiting);
        let consumed = account::report_consumed(s, context);
        message::write(s, waiting, 0, &[consumed]);
    }
}

/// If `thread` waits to be told a consumption, it is not told any more (04, sections 9.2 and 10).
pub fn cancel_yield(s: &mut State, thread: ThreadId) {
    if let Some(context) = s.thread_mut(thread).yield_to.take() {
        s.context_mut(context).yield_from = None;
    }
}
