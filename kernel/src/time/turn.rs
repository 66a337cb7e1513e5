//! A core's turn in the kernel: what its event demands of the scheduler (04, section 8.2).
//!
//! Whoever lets the core in has the turn, the event passes it on, and whoever changes what a thread may
//! do says so to it; when the event ends, the scheduler carries it out. It is about that core alone: a
//! decision of another one is left to that one ([`remote`](super::remote)).

use core::cell::Cell;

use super::schedule;
use crate::mem::Ref;
use crate::object::Tcb;
use crate::{Kernel, CORES};

/// What the scheduler is to do when the event ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    ResumeCurrent,
    ChooseNew,
    /// Choose among those that are ready and this one, woken when a new choice was due anyway: in
    /// no queue, it stands for the first of its priority.
    ChooseWith(Ref<Tcb>),
    /// A thread that was woken, in no queue.
    Switch(Ref<Tcb>),
    /// A thread whose time has come, in no queue: above the current one, and above all others whose time has come. When the
    /// event has ended.
    Preempt(Ref<Tcb>),
}

impl Action {
    /// The thread in no queue that is to run, perhaps.
    #[inline(always)]
    fn candidate(self) -> Option<Ref<Tcb>> {
        match self {
            Self::Switch(candidate) | Self::ChooseWith(candidate) | Self::Preempt(candidate) => {
                Some(candidate)
            }
            Self::ResumeCurrent | Self::ChooseNew => None,
        }
    }
}

/// The turn. When an event has ended that came to a decision, nothing is demanded any more.
#[must_use]
pub struct Turn {
    pub(super) action: Cell<Action>,
}

impl Turn {
    pub const fn new() -> Self {
        Turn {
            action: Cell::new(Action::ResumeCurrent),
        }
    }

    /// Whether the current thread goes on, unless somebody's time has come.
    #[inline(always)]
    pub fn keeps_current(&self) -> bool {
        self.action.get() == Action::ResumeCurrent
    }

    /// The core that executes the kernel begins an event which no line took: another core may have left a decision to it.
    #[inline(always)]
    pub fn begin(&self, k: &Kernel) {
        if CORES > 1 && k.core().undecided() {
            k.core().take_decision(k);
            self.action.set(Action::ChooseNew);
        }
    }

    /// The event ends without any decision: the one that was left to the core still is.
    pub fn end(&self, k: &Kernel) {
        if CORES > 1 && self.action.replace(Action::ResumeCurrent) != Action::ResumeCurrent {
            k.core().leave_undecided(k);
        }
    }

    /// A new decision is needed.
    #[inline(always)]
    pub fn reschedule(&self, k: &Kernel) {
        if let Some(candidate) = self.action.get().candidate() {
            requeue(k, candidate);
        }
        self.action.set(Action::ChooseNew);
    }

    /// What `thread` may do has changed: if this is its core, a new decision is needed.
    #[inline(always)]
    pub fn reconsider(&self, k: &Kernel, thread: Ref<Tcb>) {
        if k.is_here(thread) {
            self.reschedule(k);
        }
    }

    /// `thread`, which is in no queue of those that are ready, has become able to run, perhaps: it runs next if nothing speaks against it.
    #[inline(always)]
    pub fn wake(&self, k: &Kernel, thread: Ref<Tcb>) {
        let context = thread.at(k).sched_context();
        let has_time = context.is_some_and(|context| context.at(k).is_active());
        if has_time && !schedule::waits_for_release(k, thread) {
            self.wake_with_time(k, thread);
        }
    }

    /// The same of a thread that has time, now.
    #[inline(always)]
    pub fn wake_with_time(&self, k: &Kernel, thread: Ref<Tcb>) {
        if !schedule::is_free(k, thread) {
            return;
        }
        if !k.is_here(thread) {
            schedule::enqueue(k, thread);
        } else if self.action.get() == Action::ResumeCurrent {
            self.action.set(Action::Switch(thread));
        } else {
            self.reschedule(k);
            self.action.set(Action::ChooseWith(thread));
        }
    }

    /// `thread` has entered a state in which it cannot run.
    #[inline(always)]
    pub fn stop(&self, k: &Kernel, thread: Ref<Tcb>) {
        trace!(k, block(thread));
        match self.action.get() {
            Action::ResumeCurrent if k.core().thread() == Some(thread) => {
                self.action.set(Action::ChooseNew);
            }
            Action::Switch(candidate) | Action::ChooseWith(candidate) if candidate == thread => {
                self.action.set(Action::ChooseNew);
            }
            _ => {}
        }
    }

    /// `from` has lost its context; if it is the current thread or the candidate, a new decision is
    /// needed. Returns whether it is neither.
    #[inline(always)]
    #[must_use]
    pub fn lose_context(&self, k: &Kernel, from: Ref<Tcb>) -> bool {
        match self.action.get() {
            // The candidate cannot run any more; the others are where they were.
            Action::Switch(candidate) | Action::ChooseWith(candidate) if candidate == from => {
                self.action.set(Action::ChooseNew);
                false
            }
            _ if k.core().thread() == Some(from) => {
                self.reschedule(k);
                false
            }
            _ => true,
        }
    }
}

/// `candidate` takes its place among those that are ready.
#[cold]
#[inline(never)]
fn requeue(k: &Kernel, candidate: Ref<Tcb>) {
    if schedule::is_schedulable(k, candidate) {
        schedule::enqueue(k, candidate);
    }
}
