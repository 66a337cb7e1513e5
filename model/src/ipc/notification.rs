//! Notifications: words of signals (01, section 5.5).

use super::{abandon, message, queue, stop};
use crate::state::{NotificationId, Signals, State, ThreadId, ThreadState};
use crate::thread;
use crate::time::{context, schedule};

/// Signals `notification` with `badge` (01, section 5.5).
pub fn signal(s: &mut State, notification: NotificationId, badge: u64) {
    match &s.notifications[&notification].state {
        &Signals::Active(pending) => {
            s.notification_mut(notification).state = Signals::Active(pending | badge);
        }
        Signals::Waiting(queue) => {
            let first = queue[0];
            queue::leave(s, first);
            notify(s, first, notification, badge);
        }
        Signals::Idle => match bound_receiver(s, notification) {
            Some(thread) => {
                thread::cancel_ipc(s, thread);
                notify(s, thread, notification, badge);
            }
            None => s.notification_mut(notification).state = Signals::Active(badge),
        },
    }
}

/// The thread that `notification` is bound to, if it waits for a message.
fn bound_receiver(s: &State, notification: NotificationId) -> Option<ThreadId> {
    let thread = s.notifications[&notification].thread?;
    let waits = matches!(
        s.threads[&thread].state,
        ThreadState::BlockedOnReceive { .. }
    );
    waits.then_some(thread)
}

/// `thread`, which waited, is told of a signal (01, section 5.5; 04, section 7.6).
fn notify(s: &mut State, thread: ThreadId, notification: NotificationId, badge: u64) {
    s.thread_mut(thread).state = ThreadState::Running;
    message::set_badge(s, thread, badge);
    context::donate_from_notification(s, notification, thread);
    context::sporadic_unblock(s, thread);
    if schedule::is_schedulable(s, thread) {
        schedule::candidate(s, thread);
    }
}

/// `thread` waits for `notification` (01, section 5.5).
pub fn wait(s: &mut State, thread: ThreadId, notification: NotificationId, blocking: bool) {
    if let Signals::Active(badge) = s.notifications[&notification].state {
        consume(s, thread, notification, badge);
    } else if blocking {
        queue::join_waiting(s, notification, thread);
        stop(
            s,
            thread,
            ThreadState::BlockedOnNotification { notification },
        );
        context::return_to_notification(s, thread, notification);
    } else {
        message::set_badge(s, thread, 0);
    }
}

/// `thread`, which is running, gets the pending signals, `badge`, of `notification` (01, section
/// 5.5).
pub fn consume(s: &mut State, thread: ThreadId, notification: NotificationId, badge: u64) {
    message::set_badge(s, thread, badge);
    s.notification_mut(notification).state = Signals::Idle;
    context::donate_from_notification(s, notification, thread);
}

/// Everybody stops waiting for `notification`, whose last capability is deleted (02, section 7.1).
pub fn cancel_all(s: &mut State, notification: NotificationId) {
    if let Signals::Waiting(queue) = s.notifications[&notification].state.clone() {
        s.notification_mut(notification).state = Signals::Idle;
        for thread in queue {
            abandon(s, thread);
        }
        schedule::force_reschedule(s);
    }
}
