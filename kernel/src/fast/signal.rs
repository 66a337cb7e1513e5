//! A signal, whoever makes it.

use super::handover::Woken;
use super::Outcome;
use crate::cap::NotificationCap;
use crate::mem::Ref;
use crate::object::{Core, Notification, State, Tcb};
use crate::{Kernel, View};

/// A signal to a notification that nobody waits for, or one thread on a context of its own.
pub struct Signal {
    pub notification: Ref<Notification>,
    badge: u64,
    pub waiter: Option<Woken>,
}

impl Signal {
    /// What a signal through `cap`, which allows it, comes to while `current` runs.
    #[inline(always)]
    pub fn plan(k: &View, current: Ref<Tcb>, cap: NotificationCap) -> Option<Signal> {
        let object = cap.object.at(k);
        let queue = object.queue();
        let waiter = match queue.only_unflagged() {
            Some(waiter) => Some(Woken::plan(k, current, waiter)?),
            None => {
                let is_pending = queue.is_marked();
                let may_hear = object.thread().is_some_and(|bound| receives(k, bound));
                if !is_pending && (!queue.is_clear() || may_hear) {
                    return None;
                }
                None
            }
        };
        Some(Signal {
            notification: cap.object,
            badge: cap.badge,
            waiter,
        })
    }

    /// Who runs on `core`, which executes the kernel: the current thread, unless one of a higher priority was woken.
    #[inline(always)]
    pub fn carry_out(self, k: &Kernel, core: &Core, current: Ref<Tcb>) -> Outcome {
        let woken = self.waiter;
        self.deliver(k);
        match woken {
            Some(woken) => woken.compete(k, core, current),
            None => Outcome::Stays,
        }
    }

    /// Whom it wakes has it, and waits for nothing any more.
    #[inline(always)]
    pub fn deliver(self, k: &Kernel) {
        let object = self.notification.at(k);
        if let Some(waiter) = self.waiter {
            object.queue().remove_only(k);
            waiter.thread.at(k).context().set_badge(k, self.badge);
        } else {
            object.add_pending(k, self.badge);
        }
    }
}

/// Whether `thread` waits for a message.
fn receives(k: &View, thread: Ref<Tcb>) -> bool {
    matches!(thread.at(k).state(), State::BlockedOnReceive { .. })
}
