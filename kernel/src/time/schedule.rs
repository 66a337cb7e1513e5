//! Who runs next (04, section 8).
//!
//! Threads whose budget comes back are not all moved from the release queue to the ready queues
//! when their time has come: that would delay a thread of high priority by the replenishments of
//! lower ones, as many as fall due. Instead, a thread whose time has come *counts* as released, and
//! is moved when it is chosen or named. So a decision looks at both queues, and the timer is
//! programmed only for releases of a priority above that of the thread that runs: time management
//! is bounded by priority (docs/src/architecture/scheduler.md).
//!
//! Among threads of one priority, those that were enqueued at the head (preempted, woken) come
//! first; then those released and those appended, in the order of their time, and of one instant
//! those released first.

use super::turn::Action;
use super::{account, remote, Refills, Turn};
use crate::arch::{bounds, Platform};
use crate::cores::CORES;
use crate::mem::Ref;
use crate::object::{Core, Place, SchedContext, Tcb, DOMAINS};
use crate::{Kernel, View};

/// Whether `thread` waits for a refill whose time has not come.
#[inline(always)]
pub fn waits_for_release(k: &Kernel, thread: Ref<Tcb>) -> bool {
    let tcb = thread.at(k);
    tcb.place() == Place::Release && tcb.links().key().time() > k.core().now()
}

/// Whether `thread` could run now (04, section 2.4).
#[inline(always)]
pub fn is_schedulable(k: &Kernel, thread: Ref<Tcb>) -> bool {
    let tcb = thread.at(k);
    tcb.is_runnable()
        && tcb
            .sched_context()
            .is_some_and(|context| context.at(k).is_active())
        && !waits_for_release(k, thread)
}

/// Takes `thread` out of the ready or the release queue, whichever it is in: if so, it is runnable, and neither the
/// current thread nor the candidate. One that counts as released is nothing to the timer any more.
#[inline(always)]
pub fn unqueue(k: &Kernel, thread: Ref<Tcb>) -> bool {
    match thread.at(k).place() {
        Place::None => return false,
        Place::Ready => k.queues(thread).ready.remove(k, thread),
        Place::Release => {
            trace!(k, release(thread));
            if waits_for_release(k, thread) {
                k.home(thread).request_reprogram(k);
            }
            k.queues(thread).release.remove(k, thread);
        }
    }
    true
}

/// Whether `thread` is in no queue of the scheduler. The current thread, the candidate, and those that
/// were blocked are in none, and need not be taken out of any.
#[inline(always)]
#[must_use]
pub(super) fn is_free(k: &Kernel, thread: Ref<Tcb>) -> bool {
    let free = thread.at(k).place() == Place::None;
    if !free {
        never!("the thread is in a queue of the scheduler");
    }
    free
}

/// Puts `thread`, which is in no queue, at the head of its ready queue.
#[inline(never)]
pub fn enqueue(k: &Kernel, thread: Ref<Tcb>) {
    if is_free(k, thread) {
        k.queues(thread).ready.enqueue(k, thread);
        remote::is_ready(k, thread);
    }
}

/// The thread of `context`, in no queue, waits for its head refill (04, section 8.4).
#[inline(never)]
pub fn postpone(k: &Kernel, handle: Ref<SchedContext>) {
    let thread = handle.at(k).thread();
    let Some(thread) = thread.filter(|&thread| is_free(k, thread)) else {
        return;
    };
    wait_for_release(k, thread, Refills::of(k, handle).head().time);
}

/// `thread`, in no queue, waits until `time`, in ticks.
pub fn wait_for_release(k: &Kernel, thread: Ref<Tcb>, time: u64) {
    trace!(k, wait(thread, time));
    let core = k.home(thread);
    k.queues(thread).release.insert(k, thread, time);
    core.request_reprogram(k);
    remote::is_waiting(k, thread, time);
}

/// Changes the priority of `thread`, which is runnable (04, section 8.3). The current thread is in
/// no queue, and stands for the first of its new priority: it goes on, and the timer stays, unless
/// another is above that now, or is to be released before the budget ends.
#[inline(always)]
pub fn set_priority(k: &Kernel, turn: &Turn, thread: Ref<Tcb>, priority: u8) {
    let core = k.core();
    if core.thread() != Some(thread) {
        return set_priority_of_other(k, turn, thread, priority);
    }
    thread.at(k).set_priority(k, priority);
    if core.ready().has_above(priority) || core.release().earliest() < core.budget_end(k) {
        turn.reschedule(k);
    }
}

/// Changes the priority of `thread`, which is not the current one: it is in a queue of the scheduler, if it has time.
#[inline(never)]
fn set_priority_of_other(k: &Kernel, turn: &Turn, thread: Ref<Tcb>, priority: u8) {
    let tcb = thread.at(k);
    if tcb.place() == Place::None {
        tcb.set_priority(k, priority);
    } else if waits_for_release(k, thread) {
        let time = tcb.links().key().time();
        unqueue(k, thread);
        tcb.set_priority(k, priority);
        wait_for_release(k, thread, time);
    } else {
        unqueue(k, thread);
        tcb.set_priority(k, priority);
        if is_schedulable(k, thread) {
            enqueue(k, thread);
        }
        turn.reconsider(k, thread);
    }
}

/// Whether nobody else could run at the priority of `thread`, the current one of `core`, or above.
#[inline(always)]
pub fn is_alone(k: &View, core: &Core, thread: Ref<Tcb>) -> bool {
    !core.ready().has_from(thread.at(k).priority()) && !core.is_anybody_due()
}

/// The highest priority of a thread that counts as released but has not been moved, if it is
/// above `floor` (with `None`, any is).
#[inline(always)]
fn released_above(k: &View, floor: Option<u8>) -> Option<u8> {
    let core = k.core();
    core.release().highest_due_above(core.now(), floor)
}

/// Whether the time has come for anybody of at least this `priority`. It finds the core by itself: a line, which seldom asks,
/// need not have the address of it.
#[cold]
#[inline(never)]
pub extern "C" fn is_due_from(k: &View, priority: u8) -> bool {
    released_above(k, priority.checked_sub(1)).is_some()
}

/// Ends a turn: decides who runs next, makes the context that pays the current one, and programs the
/// timer (04, section 8.5). Returns the thread that runs; `None` to idle.
#[inline(always)]
pub fn schedule(k: &Kernel, turn: &Turn) -> Option<Ref<Tcb>> {
    let core = k.core();
    if turn.action.get() == Action::ResumeCurrent {
        release_due(k, turn);
    }
    if turn.action.get() != Action::ResumeCurrent {
        if DOMAINS > 1 && k.domains.end() == 0 {
            next_domain(k, turn);
        }
        let next = decide(k, turn.action.get());
        switch(k, turn, next);
        next
    } else {
        let current = core.thread();
        if core.reprogram() {
            settle_sc(k, current);
        }
        current
    }
}

/// The turn of a domain is over: from now on the threads of the next one run.
#[inline(never)]
fn next_domain(k: &Kernel, turn: &Turn) {
    // A candidate stays behind.
    turn.reschedule(k);
    let core = k.core();
    core.set_domain(k, k.domains.advance(k, core.now()));
    trace!(k, domain(None, core.domain()));
}

/// `next`, which is in no queue, becomes the current thread, and its context the one that pays.
#[inline(always)]
fn switch(k: &Kernel, turn: &Turn, next: Option<Ref<Tcb>>) {
    let core = k.core();
    trace!(k, switch(core.thread(), next));
    core.set_thread(k, next);
    turn.action.set(Action::ResumeCurrent);
    settle_sc(k, next);
}

/// `next`, in no queue, is the current thread of `core`, which executes the kernel, from now on, as nobody is before it: on
/// what paid before. The timer is right, unless it [may be wrong](timer_may_be_wrong).
#[inline(always)]
pub fn hand_over(k: &Kernel, core: &Core, next: Ref<Tcb>) {
    trace!(k, switch(core.thread(), Some(next)));
    core.set_thread(k, Some(next));
}

/// Whether the timer of `core` may be wrong for another thread on the context that pays: only a release which the last one
/// left out could change when it fires.
#[inline(always)]
pub fn timer_may_be_wrong(core: &Core) -> bool {
    core.release().has_any() && core.release().earliest() <= core.armed()
}

/// As [`hand_over`], on `own`, another context.
#[inline(always)]
pub fn hand_over_to(k: &Kernel, core: &Core, next: Ref<Tcb>, own: Ref<SchedContext>) {
    trace!(k, switch(core.thread(), Some(next)));
    core.set_thread(k, Some(next));
    switch_sc(k, core, Some(own));
    arm_on(k, core);
}

/// The current context of `core`, which executes the kernel, `handle`, has paid, and pays again: the timer is programmed anew.
#[inline(always)]
pub fn settle_again(k: &Kernel, core: &Core, handle: Ref<SchedContext>) {
    switch_sc(k, core, Some(handle));
    arm_on(k, core);
}

/// The current thread is to go on: one whose time has come and that is above it preempts it.
#[inline(always)]
fn release_due(k: &Kernel, turn: &Turn) {
    let core = k.core();
    if !core.is_anybody_due() {
        return;
    }
    bounds::mark::<{ bounds::PREEMPTION }>();
    let running = core.thread().map(|thread| thread.at(k).priority());
    if let Some(thread) = released_above(k, running).and_then(|due| take_due(k, due)) {
        turn.action.set(Action::Preempt(thread));
    }
}

/// Takes the first thread of `priority` whose time has come, as there is one, out of its queue.
#[inline(never)]
fn take_due(k: &Kernel, priority: u8) -> Option<Ref<Tcb>> {
    let thread = k.core().release().of(priority).first()?;
    unqueue(k, thread);
    Some(thread)
}

/// Carries out what the turn has come to: the thread to run, which is in no queue; `None` to idle.
#[inline(always)]
fn decide(k: &Kernel, action: Action) -> Option<Ref<Tcb>> {
    let current = k.core().thread();
    migrate_current(k, current);
    let staying = current.filter(|&thread| is_schedulable(k, thread));
    let decided = match staying.filter(|thread| thread.at(k).place() == Place::None) {
        Some(thread) => decide_against(k, action, thread),
        None => decide_without(k, action, current),
    };
    match decided {
        Some(thread) => Some(thread),
        None => choose(k),
    }
}

/// The current thread may have got a context of another core, or its context may have moved: it goes
/// on there. Or it is of another domain than the one that runs: it goes on when that does.
#[inline(always)]
fn migrate_current(k: &Kernel, current: Option<Ref<Tcb>>) {
    if CORES > 1 || DOMAINS > 1 {
        let leaving = current.filter(|&thread| !k.is_here(thread) && is_schedulable(k, thread));
        if let Some(thread) = leaving.filter(|thread| thread.at(k).place() == Place::None) {
            enqueue(k, thread);
        }
    }
}

/// The decision where `current` could go on and is in no queue. It stands at the head of its
/// priority, so it does go on unless somebody is above it; only then is it queued at all. `None`
/// leaves the choice to the queues.
#[inline(always)]
fn decide_against(k: &Kernel, action: Action, current: Ref<Tcb>) -> Option<Ref<Tcb>> {
    bounds::mark::<{ bounds::STAYING }>();
    let core = k.core();
    let running = current.at(k).priority();
    match action {
        Action::Switch(woken) => {
            let priority = woken.at(k).priority();
            if priority > running {
                core.ready().enqueue(k, current);
                return unless_released_above(k, woken, priority);
            } else if priority == running {
                core.ready().append(k, woken, core.now());
            } else {
                core.ready().enqueue(k, woken);
            }
        }
        Action::ChooseWith(woken) if woken != current => {
            enqueue_here(k, woken);
        }
        Action::Preempt(due) => {
            core.ready().enqueue(k, current);
            return Some(due);
        }
        _ => {}
    }
    if core.ready().has_above(running) {
        enqueue_here(k, current)
    } else {
        unless_released_above(k, current, running)
    }
}

/// The decision where `current` does not go on, or waits for its turn in a ready queue; having put
/// it there made the action a choice. `None` leaves the choice to the queues.
#[inline(always)]
fn decide_without(k: &Kernel, action: Action, current: Option<Ref<Tcb>>) -> Option<Ref<Tcb>> {
    let core = k.core();
    let (woken, must_look) = match action {
        Action::Switch(woken) => {
            let priority = woken.at(k).priority();
            let running = current.map(|thread| thread.at(k).priority());
            (woken, running.is_none_or(|running| priority < running))
        }
        Action::ChooseWith(woken) => {
            bounds::mark::<{ bounds::CANDIDATE }>();
            (woken, true)
        }
        // The current one is not here any more, and was below.
        Action::Preempt(due) => {
            let is_first = current.is_some() || !core.ready().has_above(due.at(k).priority());
            return if is_first {
                Some(due)
            } else {
                enqueue_here(k, due)
            };
        }
        _ => return None,
    };
    let priority = woken.at(k).priority();
    if must_look && core.ready().has_above(priority) {
        enqueue_here(k, woken)
    } else {
        unless_released_above(k, woken, priority)
    }
}

/// `thread`, of `priority`, above which nobody is ready; unless somebody of higher priority counts as released: that one.
#[inline(always)]
fn unless_released_above(k: &Kernel, thread: Ref<Tcb>, priority: u8) -> Option<Ref<Tcb>> {
    let Some(due) = released_above(k, Some(priority)) else {
        return Some(thread);
    };
    k.core().ready().enqueue(k, thread);
    take_due(k, due)
}

/// `thread` of this core, in no queue, is not chosen: it waits at the head of its priority. Seldom so.
#[inline(never)]
fn enqueue_here(k: &Kernel, thread: Ref<Tcb>) -> Option<Ref<Tcb>> {
    k.core().ready().enqueue(k, thread);
    None
}

/// Takes the thread that is to run out of the queues: the best of those that are ready and those
/// whose time has come.
#[inline(always)]
fn choose(k: &Kernel) -> Option<Ref<Tcb>> {
    let core = k.core();
    choose_released(k).or_else(|| {
        bounds::mark::<{ bounds::READY }>();
        core.ready().take_first(k)
    })
}

/// Takes the best of the threads whose time has come out of its queue, if it is to run before all
/// that are ready.
#[inline(always)]
fn choose_released(k: &Kernel) -> Option<Ref<Tcb>> {
    let core = k.core();
    if !core.is_anybody_due() {
        None
    } else {
        take_released(k)
    }
}

/// Does so if the time of any has come.
#[inline(never)]
fn take_released(k: &Kernel) -> Option<Ref<Tcb>> {
    let core = k.core();
    // Equals may be first, too.
    let floor = core
        .ready()
        .highest()
        .and_then(|ready| ready.checked_sub(1));
    let priority = core.release().highest_due_above(core.now(), floor)?;
    let released = core.release().of(priority).first()?;
    let is_first = match core.ready().highest() {
        Some(ready) if ready == priority => {
            let time = released.at(k).links().key().time();
            let first = core.ready().first_of(ready);
            first.is_none_or(|first| first.at(k).ready_links().since() >= time)
        }
        ready => ready < Some(priority),
    };
    if is_first {
        unqueue(k, released);
    }
    is_first.then_some(released)
}

/// The context of `thread`, which runs, becomes the one that pays; the timer is programmed.
#[inline(always)]
fn settle_sc(k: &Kernel, thread: Option<Ref<Tcb>>) {
    let core = k.core();
    let chosen = thread.and_then(|thread| thread.at(k).sched_context());
    if chosen != core.context() || core.reprogram() {
        switch_sc(k, core, chosen);
    }
    arm(k);
}

/// The current context pays, and `chosen`, which is active, or nobody pays from now on.
#[inline(always)]
fn switch_sc(k: &Kernel, core: &Core, chosen: Option<Ref<SchedContext>>) {
    core.rest(k);
    let Some(handle) = chosen else {
        account::commit(k, core);
        trace!(k, pays(None, 0));
        core.set_context(k, None);
        return;
    };
    let context = handle.at(k);
    if chosen != core.context() && context.period() != 0 && !context.is_sporadic() {
        Refills::of(k, handle).unblock();
    }
    account::commit(k, core);
    trace!(k, pays(chosen, context.head().amount));
    core.set_context(k, Some((handle, context.head().amount)));
}

/// Programs the timer for shortly before the end of the budget, or of the domain's turn, or for the first release that could
/// preempt the current thread, if it is not programmed so. A release is not anticipated: it would
/// not have come yet.
#[inline(always)]
pub fn arm(k: &Kernel) {
    arm_on(k, k.core());
}

/// As [`arm`], on `core`, which executes the kernel.
#[inline(always)]
fn arm_on(k: &Kernel, core: &Core) {
    // A refill is longer than the precision.
    let precision = k.constants.timer_precision();
    let mut deadline = core.budget_end(k) - precision;
    if DOMAINS > 1 {
        deadline = deadline.min(k.domains.end().saturating_sub(precision));
    }
    if core.release().earliest() < deadline {
        let running = core.thread().map(|thread| thread.at(k).priority());
        deadline = deadline.min(core.release().earliest_above(running));
    }
    if deadline != core.armed() {
        core.set_armed(k, deadline);
        k.machine.set_deadline(deadline);
    }
}
