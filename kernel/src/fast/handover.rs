//! The processor goes from the current thread to another, or stays.

use super::{Outcome, Switch};
use crate::arch::aside;
use crate::mem::Ref;
use crate::object::{Core, SchedContext, State, Tcb};
use crate::{Kernel, View};

/// On whose time the woken thread runs.
#[derive(Clone, Copy)]
pub enum Payer {
    /// On that of the current thread, which it gets.
    Lent(Ref<SchedContext>),
    /// On its own.
    Own(Ref<SchedContext>),
}

/// `to`, which has none, gets the context of `from`.
#[inline(always)]
pub fn lend(k: &Kernel, handle: Ref<SchedContext>, from: Ref<Tcb>, to: Ref<Tcb>) {
    from.at(k).set_sched_context(k, None);
    handle.at(k).set_thread(k, Some(to));
    to.at(k).set_sched_context(k, Some(handle));
}

/// Whether `woken`, which is blocked, is the next to run on `core`, which executes the kernel, if the current thread blocks,
/// of those that are ready.
#[inline(always)]
pub fn is_next(k: &View, core: &Core, woken: Ref<Tcb>) -> bool {
    k.is_here(woken) && !core.ready().has_above(woken.at(k).priority())
}

/// As [`is_next`], also of those whose time has come: none of these is above `current`, the current thread.
#[inline(always)]
pub fn is_next_while_due(k: &View, core: &Core, current: Ref<Tcb>, woken: Ref<Tcb>) -> bool {
    is_next(k, core, woken) && (!core.is_anybody_due() || !is_below(k, woken, current))
}

/// Whether `thread` has a lower priority than `other`.
fn is_below(k: &View, thread: Ref<Tcb>, other: Ref<Tcb>) -> bool {
    thread.at(k).priority() < other.at(k).priority()
}

/// Whether none of those on `core` whose time has come is above `thread`.
#[inline(always)]
pub fn none_of_the_due_is_above(k: &View, core: &Core, thread: Ref<Tcb>) -> bool {
    let above = thread.at(k).priority().checked_add(1);
    above.is_none_or(|above| !is_due_from(k, core, above))
}

/// Whether the time has come for anybody of at least this `priority` on `core`, which executes the kernel. Mostly those who
/// wait are all below, which is seen here.
#[inline(always)]
fn is_due_from(k: &View, core: &Core, priority: u8) -> bool {
    core.release().has_from(priority) && aside::is_due_from(k, priority)
}

/// A thread that is woken, and runs on a context of its own on this core.
#[derive(Clone, Copy)]
pub struct Woken {
    pub thread: Ref<Tcb>,
    payer: Ref<SchedContext>,
}

impl Woken {
    /// Of `thread`, which is blocked, while `current` runs: its context is not sporadic, unless it is above that, and so runs
    /// next.
    #[inline(always)]
    pub fn plan(k: &View, current: Ref<Tcb>, thread: Ref<Tcb>) -> Option<Woken> {
        let payer = thread.at(k).sched_context()?;
        let can_run = payer.at(k).is_active() && k.is_here(thread);
        (can_run && (!payer.at(k).is_sporadic() || is_below(k, current, thread)))
            .then_some(Woken { thread, payer })
    }

    /// It is in no queue any more, and can go on.
    #[inline(always)]
    fn wake(self, k: &Kernel) {
        self.thread.at(k).set_state(k, State::Running);
        trace!(k, wake(self.thread));
    }

    /// It can go on: it runs if it is above `current`, the current thread, which it leaves at the head of its priority, and
    /// otherwise it gets ready. Returns who runs on `core`, which executes the kernel.
    #[inline(always)]
    pub fn compete(self, k: &Kernel, core: &Core, current: Ref<Tcb>) -> Outcome {
        self.wake(k);
        let ready = core.ready();
        let (running, priority) = (current.at(k).priority(), self.thread.at(k).priority());
        if priority > running {
            ready.enqueue(k, current);
            return Outcome::Switches(Switch::Woken(self.thread, self.payer));
        }
        if priority == running {
            ready.append(k, self.thread, core.now());
        } else {
            ready.enqueue(k, self.thread);
        }
        trace!(k, switch(Some(current), Some(current)));
        Outcome::Stays
    }

    /// It runs, as the current thread blocks.
    #[inline(always)]
    pub fn succeed(self, k: &Kernel) -> Switch {
        self.wake(k);
        Switch::Woken(self.thread, self.payer)
    }
}

/// Who runs on the core that executes the kernel if the current thread blocks: the first of those that are ready.
pub struct Successor {
    thread: Ref<Tcb>,
    priority: u8,
    payer: Ref<SchedContext>,
}

impl Successor {
    /// Somebody who does not repeat a system call. The time has come for nobody of as high a priority.
    #[inline(always)]
    pub fn plan(k: &View, core: &Core) -> Option<Successor> {
        let ready = core.ready();
        let priority = ready.highest()?;
        // Of equals, those whose time has come may be first.
        if core.is_anybody_due() && is_due_from(k, core, priority) {
            return None;
        }
        let thread = ready.first_of(priority)?;
        let payer = thread.at(k).sched_context()?;
        (thread.at(k).state() == State::Running).then_some(Successor {
            thread,
            priority,
            payer,
        })
    }

    /// Takes him out of his queue. The current thread has blocked.
    #[inline(always)]
    pub fn carry_out(self, k: &Kernel, core: &Core) -> Switch {
        core.ready().take_head(k, self.priority, self.thread);
        Switch::OnOwn(self.thread, self.payer)
    }
}
