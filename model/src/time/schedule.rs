//! Who runs next (04, section 8; docs, deliberate difference 8), on the core that executes the
//! kernel; what concerns others is in [`cores`].
//!
//! Threads that can run are in the ready queues, and the current thread and the candidate are in
//! none. A ready queue has those enqueued at the head first, the last of them foremost; behind them
//! those released and those appended, in the order of their time, and of one instant those released
//! first: they are released when the clock is read, before anything else happens.
//!
//! Three statements of the pages have another form here, because of difference 8:
//! - All whose time has come are released when the clock is read, before anything else is done, and
//!   stand in the ready queues by the time of their release; they are candidates only in so far as
//!   one whose priority is above the current thread's makes a new decision necessary.
//! - Every decision looks at the ready queues. The pages skip this where a candidate is not below
//!   the current thread, because nobody above both could be ready then; a released thread could.
//! - Every change of the release queue by an operation is a reason to commit (04, section 3) and to
//!   program the timer, not only one at its head: the head is not always what the timer is
//!   programmed for. A release is no such reason (docs, deliberate difference 12).

use sandglass_abi::sched::domain::DOMAINS;

use crate::isa::PC;

use super::{account, context, cores, refills};
use crate::ipc::queue;
use crate::state::{Action, ContextId, Queues, Ready, State, ThreadId, ThreadState, Ticks};

/// Whether `thread` could run (04, section 2.4). One that was deleted could not.
pub fn is_schedulable(s: &State, thread: ThreadId) -> bool {
    let Some(t) = s.threads.get(&thread) else {
        return false;
    };
    let is_active = t.context.is_some_and(|id| s.contexts[&id].is_active());
    t.state.is_runnable() && is_active && release_time(s, thread).is_none()
}

/// The queues of all cores and domains.
fn all_queues(s: &State) -> impl Iterator<Item = &Queues> {
    s.cores.iter().flat_map(|core| &core.queues)
}

/// When `thread` is to be released, if it waits for that.
pub fn release_time(s: &State, thread: ThreadId) -> Option<Ticks> {
    let mut waiting = all_queues(s).flat_map(|queues| &queues.release);
    waiting
        .find(|&&(_, other)| other == thread)
        .map(|&(time, _)| time)
}

/// Whether `thread` is in a ready queue.
fn is_queued(s: &State, thread: ThreadId) -> bool {
    let mut ready = all_queues(s).flat_map(|queues| queues.ready.values());
    ready.any(|queue| queue.iter().any(|ready| ready.thread == thread))
}

/// Puts `thread` at the head of its ready queue, wherever it was (04, section 8.1).
pub fn enqueue(s: &mut State, thread: ThreadId) {
    dequeue(s, thread);
    let queue = ready_queue(s, thread);
    queue.insert(0, Ready { thread, since: 0 });
    cores::is_ready(s, thread);
}

/// Puts `thread` at the tail of its ready queue (04, section 8.1).
pub fn append(s: &mut State, thread: ThreadId) {
    dequeue(s, thread);
    let since = s.core().now;
    ready_queue(s, thread).push(Ready { thread, since });
}

/// The ready queue of the core and the priority of `thread`.
fn ready_queue(s: &mut State, thread: ThreadId) -> &mut Vec<Ready> {
    let priority = s.threads[&thread].priority;
    s.queues_of_mut(thread).ready.entry(priority).or_default()
}

/// Takes `thread` out of the ready and release queues.
pub fn dequeue(s: &mut State, thread: ThreadId) {
    for core in &mut s.cores {
        for queues in &mut core.queues {
            for queue in queues.ready.values_mut() {
                queue.retain(|ready| ready.thread != thread);
            }
            queues.ready.retain(|_, queue| !queue.is_empty());
            let waiting = queues.release.len();
            queues.release.retain(|&(_, other)| other != thread);
            core.reprogram |= queues.release.len() < waiting;
        }
    }
}

/// The thread of `context` waits for its head refill (04, section 8.4).
pub fn postpone(s: &mut State, context: ContextId) {
    let c = &s.contexts[&context];
    let time = c.refills[0].time;
    if let Some(thread) = c.thread {
        dequeue(s, thread);
        wait_until(s, thread, time);
    }
}

/// `thread` enters the release queue (04, section 8.1).
pub fn wait_until(s: &mut State, thread: ThreadId, time: Ticks) {
    let priority = |t: ThreadId| s.threads[&t].priority;
    let comes_before = |&(other, waiting): &(Ticks, ThreadId)| {
        other < time || other == time && priority(waiting) <= priority(thread)
    };
    let queue = &s.queues_of(thread).release;
    let place = queue.iter().take_while(|w| comes_before(w)).count();
    let queues = s.queues_of_mut(thread);
    queues.release.insert(place, (time, thread));
    s.home_mut(thread).reprogram = true;
    cores::is_waiting(s, thread, time);
}

/// All whose time has come are released: behind those appended or released before (docs, deliberate
/// difference 8). Nobody was appended at the instant of a release yet: then it would have been due
/// when the clock was read for that event.
pub fn release_due(s: &mut State) {
    let now = s.core().now;
    let mut due: Vec<(Ticks, ThreadId)> = Vec::new();
    for queues in s.cores.iter_mut().flat_map(|core| &mut core.queues) {
        let first_waiting = queues.release.partition_point(|&(time, _)| time <= now);
        due.extend(queues.release.drain(..first_waiting));
    }
    for (since, thread) in due {
        let queue = ready_queue(s, thread);
        let place = queue.iter().take_while(|r| r.since <= since).count();
        queue.insert(place, Ready { thread, since });
    }
}

/// A new decision is needed (04, section 8.2).
pub fn force_reschedule(s: &mut State) {
    let action = std::mem::replace(&mut s.core_mut().action, Action::ChooseNew);
    if let Action::Candidate(thread) = action {
        if is_schedulable(s, thread) {
            enqueue(s, thread);
        }
    }
}

/// What `thread` may do has changed: a new decision is needed on its core. Another core was told of it
/// when the thread became ready.
pub fn reconsider(s: &mut State, thread: ThreadId) {
    if s.is_here(thread) {
        force_reschedule(s);
    }
}

/// `thread` may run next (04, section 8.2). One whose context is not configured never can (04,
/// section 5.1).
pub fn candidate(s: &mut State, thread: ThreadId) {
    if !is_schedulable(s, thread) {
        return;
    }
    if !s.is_here(thread) {
        enqueue(s, thread);
    } else if s.core().action == Action::ResumeCurrent {
        dequeue(s, thread);
        s.core_mut().action = Action::Candidate(thread);
    } else {
        force_reschedule(s);
        enqueue(s, thread);
    }
}

/// `thread` has entered a state in which it cannot run (04, section 8.2). If it was the candidate,
/// there is none any more.
pub fn stopped(s: &mut State, thread: ThreadId) {
    let core = s.core_mut();
    let is_current = core.thread == Some(thread);
    if core.action == Action::ResumeCurrent && is_current
        || core.action == Action::Candidate(thread)
    {
        core.action = Action::ChooseNew;
    }
}

/// Changes the priority of `thread`, whatever its state (04, section 8.3).
pub fn set_priority(s: &mut State, thread: ThreadId, priority: u8) {
    if let Some(time) = release_time(s, thread) {
        dequeue(s, thread);
        s.thread_mut(thread).priority = priority;
        wait_until(s, thread, time);
    } else if is_queued(s, thread) || s.core().thread == Some(thread) {
        dequeue(s, thread);
        s.thread_mut(thread).priority = priority;
        if is_schedulable(s, thread) {
            enqueue(s, thread);
            reconsider(s, thread);
        }
    } else {
        s.thread_mut(thread).priority = priority;
        queue::requeue(s, thread);
    }
}

/// Decides who runs, who pays, and when the timer fires (04, section 8.5), and makes the thread
/// continue (01, section 8).
pub fn schedule(s: &mut State) {
    // Step 1: a released thread above the current one preempts it.
    if s.core().action == Action::ResumeCurrent && best_ready(s) > running_priority(s) {
        s.core_mut().action = Action::ChooseNew;
    }
    let action = s.core().action;
    if action != Action::ResumeCurrent {
        // Step 2. Steps 3 and 4.
        if s.domains.end == 0 {
            next_domain(s);
        }
        s.core_mut().thread = decide(s);
        s.core_mut().action = Action::ResumeCurrent;
    }
    // Steps 5 to 7.
    let was_requested = pay(s);
    // Step 8. With another thread there may be another deadline (docs, deliberate difference 8).
    if was_requested || action != Action::ResumeCurrent {
        s.core_mut().deadline = deadline(s);
    }
    continue_current(s);
}

/// The turn of a domain is over: the next entry's begins, or the schedule starts over (04, section 11). A candidate stays
/// behind, among the threads of its domain.
fn next_domain(s: &mut State) {
    force_reschedule(s);
    let now = s.core().now;
    let d = &mut s.domains;
    d.index = match d.entries[d.index as usize + 1] {
        (0, 0) => d.start,
        _ => d.index + 1,
    };
    let (domain, duration) = d.entries[d.index as usize];
    d.current = domain;
    d.end = now + duration;
}

/// The highest priority of a thread in the ready queues.
fn best_ready(s: &State) -> Option<u8> {
    s.queues().ready.keys().next_back().copied()
}

/// The priority of the current thread; idleness is below all.
fn running_priority(s: &State) -> Option<u8> {
    s.core().thread.map(|thread| s.threads[&thread].priority)
}

/// Who runs next, which is then in no queue; `None` to idle (04, section 8.5, step 3). The current
/// thread may have come to belong to another core or domain, where it is ready then.
fn decide(s: &mut State) -> Option<ThreadId> {
    let current = s.core().thread.filter(|&thread| is_schedulable(s, thread));
    if let Some(thread) = current.filter(|&thread| !is_queued(s, thread)) {
        enqueue(s, thread);
    }
    let staying = current.filter(|&thread| s.is_here(thread));
    if let Action::Candidate(thread) = s.core().action {
        let priority = Some(s.threads[&thread].priority);
        if staying.is_some() && priority == running_priority(s) {
            append(s, thread);
        } else if best_ready(s) > priority {
            enqueue(s, thread);
        } else {
            return Some(thread);
        }
    }
    let first = s.queues().ready.values().next_back()?[0].thread;
    dequeue(s, first);
    Some(first)
}

/// The context of the current thread pays from now on; the one that did pays for what it consumed, if
/// it is another or if the timer is to be programmed (04, section 8.5, steps 5 to 7). Returns
/// whether the timer is to be programmed.
fn pay(s: &mut State) -> bool {
    let now = s.core().now;
    let chosen = s
        .core()
        .thread
        .and_then(|thread| s.threads[&thread].context);
    if chosen != s.core().context {
        s.core_mut().reprogram = true;
        if let Some(context) = chosen.map(|id| s.context_mut(id)) {
            if !context.sporadic {
                refills::unblock_check(context, now);
            }
        }
    }
    let was_requested = std::mem::take(&mut s.core_mut().reprogram);
    if was_requested {
        account::commit(s, s.executing);
    }
    s.core_mut().context = chosen;
    was_requested
}

/// When the timer is to fire next: shortly before the end of the budget of the current context, or of the domain's turn, or
/// when a thread above the current one is released (04, section 8.5, step 8; docs, deliberate
/// differences 8 and 11).
pub fn deadline(s: &State) -> Ticks {
    let head_amount = |id: ContextId| s.contexts[&id].refills[0].amount;
    let core = s.core();
    let budget_end = core
        .context
        .map(|id| core.now - core.consumed + head_amount(id) - s.clock.precision());
    let above = |thread: ThreadId| Some(s.threads[&thread].priority) > running_priority(s);
    let mut waiting = s.queues().release.iter();
    let release = waiting.find(|&&(_, thread)| above(thread));
    let turn_end = Some(s.domains.end).filter(|&end| DOMAINS > 1 && end < Ticks::MAX);
    let turn_end = turn_end.map(|end| end.saturating_sub(s.clock.precision()));
    [budget_end, turn_end, release.map(|&(time, _)| time)]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(Ticks::MAX)
}

/// The same for a core that has waited for its turn, and decides nothing yet: the timer also fires for those above the
/// current thread that were released meanwhile, at once if it still has to.
pub fn deadline_of_late(s: &State) -> Ticks {
    let ready = s.queues().ready.iter();
    let above = ready.filter(|&(&priority, _)| Some(priority) > running_priority(s));
    let released = above.flat_map(|(_, queue)| queue.iter().filter(|it| it.since > 0));
    let first = released.map(|it| it.since).min();
    first.into_iter().fold(deadline(s), Ticks::min)
}

/// The current thread continues where it was, or repeats what it did (01, section 8). If it yielded to
/// a context, it is told the consumption now (04, section 9.2).
fn continue_current(s: &mut State) {
    let Some(thread) = s.core().thread else {
        return;
    };
    if let Some(context) = s.threads[&thread].yield_to {
        context::complete_yield(s, context);
    }
    let t = s.thread_mut(thread);
    if t.state == ThreadState::Restart {
        t.registers.next_ip = t.registers.user[PC];
        t.state = ThreadState::Running;
    }
}
