//! Scheduling contexts: binding, lending, configuring (04, sections 5 and 7).

use crate::state::{ContextId, NotificationId, State, ThreadId, Ticks};

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
    let _ = (s, context);
    todo!("model-time")
}

/// Configures `context` (04, section 5.2).
pub fn configure(s: &mut State, context: ContextId, parameters: Parameters) {
    let _ = (s, context, parameters);
    todo!("model-time")
}

/// The thread of `context` waits for its refill if it may not run now (04, section 5.2).
pub fn resume(s: &mut State, context: ContextId) {
    let _ = (s, context);
    todo!("model-time")
}

/// `thread` leaves a blocked state (04, section 5.4).
pub fn sporadic_unblock(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}

/// Binds `context` to `thread` (04, section 5.5).
pub fn bind_thread(s: &mut State, context: ContextId, thread: ThreadId) {
    let _ = (s, context, thread);
    todo!("model-time")
}

/// Takes the thread of `context` from it, if it has one (04, section 5.5).
pub fn unbind_thread(s: &mut State, context: ContextId) {
    let _ = (s, context);
    todo!("model-time")
}

/// Binds `context` to `notification` (04, section 5.5).
pub fn bind_notification(s: &mut State, context: ContextId, notification: NotificationId) {
    let _ = (s, context, notification);
    todo!("model-time")
}

/// Takes the notification of `context` from it, if it has one.
pub fn unbind_notification(s: &mut State, context: ContextId) {
    let _ = (s, context);
    todo!("model-time")
}

/// Lends `context` to `to`, which has none (04, section 7.1).
pub fn donate(s: &mut State, context: ContextId, to: ThreadId) {
    let _ = (s, context, to);
    todo!("model-time")
}

/// A recipient of a signal gets the context of `notification` if it has none and that is free (04, section 7.6).
pub fn donate_from_notification(s: &mut State, notification: NotificationId, to: ThreadId) {
    let _ = (s, notification, to);
    todo!("model-time")
}

/// `thread` is about to wait for `notification` and gives its context back (04, section 7.6).
pub fn return_to_notification(s: &mut State, thread: ThreadId, notification: NotificationId) {
    let _ = (s, thread, notification);
    todo!("model-time")
}

/// Whoever yielded to `context` is told the consumption now (04, section 9.2).
pub fn complete_yield(s: &mut State, context: ContextId) {
    let _ = (s, context);
    todo!("model-time")
}
