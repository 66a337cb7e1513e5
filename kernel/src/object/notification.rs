//! Notifications: words of pending signals (01, section 5.5).
//!
//! Invariants: threads wait only while nothing is pending; the bound thread and the bound
//! scheduling context name this notification.

#[cfg(not(target_os = "none"))]
mod inspect;

use crate::Kernel;
use core::cell::Cell;

use super::{Queue, SchedContext, Tcb};
use crate::mem::Ref;

/// A notification.
#[repr(C, align(64))]
pub struct Notification {
    queue: Queue,
    pending: Cell<u64>,
    thread: Cell<Option<Ref<Tcb>>>,
    sched_context: Cell<Option<Ref<SchedContext>>>,
}

const _: () = assert!(size_of::<Notification>() == 1 << sandglass_abi::object::NOTIFICATION_BITS);

impl Notification {
    pub const fn new() -> Self {
        Notification {
            queue: Queue::new(),
            pending: Cell::new(0),
            thread: Cell::new(None),
            sched_context: Cell::new(None),
        }
    }

    /// Threads that wait.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Whether a signal is pending, possibly of badge 0.
    pub fn is_active(&self) -> bool {
        self.queue.mark()
    }

    /// Adds `badge` to what is pending.
    #[inline(always)]
    pub fn add_pending(&self, k: &Kernel, badge: u64) {
        self.pending.set(self.pending.get() | badge);
        self.queue.set_mark(k, true);
    }

    /// Takes what is pending; `None` if no signal is.
    #[inline(always)]
    pub fn take_pending(&self, k: &Kernel) -> Option<u64> {
        if !self.is_active() {
            return None;
        }
        self.queue.set_mark(k, false);
        Some(self.pending.replace(0))
    }

    cells! {
        /// The bound thread.
        thread, set_thread: Option<Ref<Tcb>>;
        /// The scheduling context that a passive recipient of a signal gets.
        sched_context, set_sched_context: Option<Ref<SchedContext>>;
    }
}
