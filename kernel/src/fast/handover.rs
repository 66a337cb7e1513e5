//! The processor goes from the current thread to another, or stays.

use super::{Next, Outcome};
use crate::mem::Ref;
use crate::object::{SchedContext, State, Tcb};
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

/// Whether `woken`, which is blocked, is the next to run on this core if the current thread blocks: the time has come
/// for nobody else.
#[inline(always)]
pub fn is_next(k: &View, woken: Ref<Tcb>) -> bool {
    k.is_here(woken) && !k.core().ready.has_above(woken.at(k).priority())
}

/// `woken` has a context of its own, which lets it run: not one of those that change when a thread wakes.
#[inline(always)]
pub fn runs_on(k: &View, own: Ref<SchedContext>) -> bool {
    own.at(k).is_active() && !own.at(k).is_sporadic()
}

/// The context of its own on which `thread`, which is blocked, runs on this core if somebody wakes it.
#[inline(always)]
pub fn payer_of(k: &View, thread: Ref<Tcb>) -> Option<Ref<SchedContext>> {
    let own = thread.at(k).sched_context()?;
    (runs_on(k, own) && k.is_here(thread)).then_some(own)
}

/// `woken`, in no queue any more, can go on, on `own`: it runs if it is above `current`, the current thread, which it
/// leaves at the head of its priority, and otherwise it gets ready. Returns who runs.
#[inline(always)]
pub fn wake(k: &Kernel, current: Ref<Tcb>, woken: Ref<Tcb>, own: Ref<SchedContext>) -> Outcome {
    woken.at(k).set_state(k, State::Running);
    trace!(k, wake(woken));
    let ready = &k.core().ready;
    let (running, priority) = (current.at(k).priority(), woken.at(k).priority());
    if priority > running {
        ready.enqueue(k, current);
        return Outcome::Goes(Next::OnOwn(woken, own));
    }
    if priority == running {
        ready.append(k, woken);
    } else {
        ready.enqueue(k, woken);
    }
    trace!(k, switch(Some(current), Some(current)));
    Outcome::Stays
}

/// Who runs if the current thread blocks: the first of those that are ready.
pub struct Successor {
    thread: Ref<Tcb>,
    priority: u8,
    payer: Ref<SchedContext>,
}

impl Successor {
    /// Somebody who does not repeat a system call.
    #[inline(always)]
    pub fn plan(k: &View) -> Option<Successor> {
        let ready = &k.core().ready;
        let priority = ready.highest()?;
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
    pub fn carry_out(self, k: &Kernel) -> Next {
        k.core().ready.take_head(k, self.priority, self.thread);
        Next::OnOwn(self.thread, self.payer)
    }
}
