//! Signals (01, section 5.5).

use super::{cancel, endpoint};
use crate::mem::Ref;
use crate::object::{Notification, State, Tcb};
use crate::time::{context, Turn};
use crate::Kernel;

/// Signals `badge` to `notification`: to the first waiting thread, else to the bound thread if it
/// is receiving, else it stays pending.
#[inline(never)]
pub fn signal(k: &Kernel, turn: &Turn, notification: Ref<Notification>, badge: u64) {
    let object = notification.at(k);
    if object.is_active() {
        object.add_pending(k, badge);
    } else if !object.queue().admits() {
        // It is being emptied: who waits will be restarted, and nobody will wait again.
    } else if let Some(waiter) = object.queue().first() {
        object.queue().remove(k, waiter);
        deliver(k, turn, notification, waiter, badge);
    } else {
        match object.thread() {
            Some(bound) if matches!(bound.at(k).state(), State::BlockedOnReceive { .. }) => {
                cancel::cancel_ipc(k, bound);
                deliver(k, turn, notification, bound, badge);
            }
            _ => object.add_pending(k, badge),
        }
    }
}

/// `recipient`, in no queue any more, gets the signal and goes on.
#[inline(always)]
fn deliver(
    k: &Kernel,
    turn: &Turn,
    notification: Ref<Notification>,
    recipient: Ref<Tcb>,
    badge: u64,
) {
    recipient.at(k).set_state(k, State::Running);
    trace!(k, wake(recipient));
    recipient.at(k).context().set_badge(k, badge);
    if recipient.at(k).sched_context().is_some() {
        context::wake_refills(k, recipient);
    } else if context::donate_of_notification(k, turn, notification, recipient) {
        return;
    }
    goes_on(k, turn, recipient);
}

/// `recipient` does not wait for its release. Apart, as limits of paths name it.
#[inline(never)]
fn goes_on(k: &Kernel, turn: &Turn, recipient: Ref<Tcb>) {
    turn.wake(k, recipient);
}

/// `receiver`, the current thread, takes what is pending. Returns whether anything was.
#[inline(always)]
pub fn take(k: &Kernel, turn: &Turn, receiver: Ref<Tcb>, notification: Ref<Notification>) -> bool {
    let Some(badge) = notification.at(k).take_pending(k) else {
        return false;
    };
    receiver.at(k).context().set_badge(k, badge);
    let _ = context::donate_of_notification(k, turn, notification, receiver);
    true
}

/// `waiter`, the current thread, waits for `notification`, or looks whether anything is pending.
#[inline(always)]
pub fn wait(
    k: &Kernel,
    turn: &Turn,
    waiter: Ref<Tcb>,
    notification: Ref<Notification>,
    blocking: bool,
) {
    if take(k, turn, waiter, notification) {
        return;
    }
    if !blocking {
        waiter.at(k).context().set_badge(k, 0);
        return;
    }
    waiter
        .at(k)
        .set_state(k, State::BlockedOnNotification { notification });
    turn.stop(k, waiter);
    notification
        .at(k)
        .queue()
        .insert(k, waiter, endpoint::rank(k, waiter));
    context::return_to_notification(k, turn, waiter, notification);
}
