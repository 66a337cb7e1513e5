//! The queues of endpoints and notifications: ordered by priority, first-come, first-served among
//! equals (04, section 8.1).
//!
//! Invariant: a thread is in the queue of the endpoint or notification that its state names, once,
//! and in no other.

use crate::state::{Endpoint, EndpointId, NotificationId, Signals, State, ThreadId, ThreadState};

/// Puts `thread`, which sends, behind the senders of `endpoint` that are at least as urgent.
///
/// Precondition: nobody waits to receive there.
pub fn join_senders(s: &mut State, endpoint: EndpointId, thread: ThreadId) {
    let mut queue = match &s.endpoints[&endpoint] {
        Endpoint::Senders(queue) => queue.clone(),
        _ => Vec::new(),
    };
    join(s, &mut queue, thread);
    s.endpoints.insert(endpoint, Endpoint::Senders(queue));
}

/// Puts `thread`, which receives, behind the receivers of `endpoint` that are at least as urgent.
///
/// Precondition: nobody waits to send there.
pub fn join_receivers(s: &mut State, endpoint: EndpointId, thread: ThreadId) {
    let mut queue = match &s.endpoints[&endpoint] {
        Endpoint::Receivers(queue) => queue.clone(),
        _ => Vec::new(),
    };
    join(s, &mut queue, thread);
    s.endpoints.insert(endpoint, Endpoint::Receivers(queue));
}

/// Puts `thread` behind those that wait for `notification` and are at least as urgent.
///
/// Precondition: it is not active.
pub fn join_waiting(s: &mut State, notification: NotificationId, thread: ThreadId) {
    let mut queue = match &s.notifications[&notification].state {
        Signals::Waiting(queue) => queue.clone(),
        _ => Vec::new(),
    };
    join(s, &mut queue, thread);
    set_waiting(s, notification, queue);
}

/// Takes `thread` out of the queue that its state names, if it names one. Its state stays.
pub fn leave(s: &mut State, thread: ThreadId) {
    match s.threads[&thread].state {
        ThreadState::BlockedOnSend { endpoint, .. }
        | ThreadState::BlockedOnReceive { endpoint, .. } => {
            let left = match s.endpoints[&endpoint].clone() {
                Endpoint::Senders(queue) => Endpoint::Senders(without(queue, thread)),
                Endpoint::Receivers(queue) => Endpoint::Receivers(without(queue, thread)),
                Endpoint::Idle => Endpoint::Idle,
            };
            s.endpoints.insert(endpoint, idle_if_empty(left));
        }
        ThreadState::BlockedOnNotification { notification } => {
            if let Signals::Waiting(queue) = s.notifications[&notification].state.clone() {
                set_waiting(s, notification, without(queue, thread));
            }
        }
        _ => {}
    }
}

/// `thread`, whose priority was changed, is queued anew, behind its equals (04, section 8.1).
pub fn requeue(s: &mut State, thread: ThreadId) {
    leave(s, thread);
    match s.threads[&thread].state {
        ThreadState::BlockedOnSend { endpoint, .. } => join_senders(s, endpoint, thread),
        ThreadState::BlockedOnReceive { endpoint, .. } => join_receivers(s, endpoint, thread),
        ThreadState::BlockedOnNotification { notification } => {
            join_waiting(s, notification, thread);
        }
        _ => {}
    }
}

fn join(s: &State, queue: &mut Vec<ThreadId>, thread: ThreadId) {
    let priority = |t: &ThreadId| s.threads[t].priority;
    let place = queue
        .iter()
        .position(|other| priority(other) < priority(&thread))
        .unwrap_or(queue.len());
    queue.insert(place, thread);
}

fn without(mut queue: Vec<ThreadId>, thread: ThreadId) -> Vec<ThreadId> {
    queue.retain(|&other| other != thread);
    queue
}

fn idle_if_empty(endpoint: Endpoint) -> Endpoint {
    match endpoint {
        Endpoint::Senders(queue) | Endpoint::Receivers(queue) if queue.is_empty() => Endpoint::Idle,
        other => other,
    }
}

fn set_waiting(s: &mut State, notification: NotificationId, queue: Vec<ThreadId>) {
    let state = if queue.is_empty() {
        Signals::Idle
    } else {
        Signals::Waiting(queue)
    };
    s.notifications
        .get_mut(&notification)
        .expect("the notification exists")
        .state = state;
}
