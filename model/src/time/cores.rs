//! What one core does about another (04, section 15).
//!
//! One core at a time executes the kernel. It works on the queues of all of them, but who runs on
//! another core is decided there: that core is asked to look at its queues, by an interrupt, and
//! decides anew when it next enters the kernel, for whatever reason. What runs on another core is
//! stopped there before anything is done to it.

use super::{account, readings, schedule};
use crate::state::{
    Action, Cap, ContextId, CoreId, SlotId, State, ThreadId, ThreadSlot, ThreadState,
};
use crate::vspace;

/// `core`, another one, is to decide anew who runs there.
fn tell(s: &mut State, core: CoreId) {
    s.cores[core.0].action = Action::ChooseNew;
    s.cores[core.0].look = true;
}

/// `thread` has become ready: another core is told if it idles or runs a thread of lower priority.
pub fn is_ready(s: &mut State, thread: ThreadId) {
    if !s.is_on_this_core(thread) && is_above_running(s, thread) {
        tell(s, s.threads[&thread].core);
    }
}

/// `thread` is to be released at `time`: another core is to look if its timer comes too late for
/// that.
pub fn is_waiting(s: &mut State, thread: ThreadId, time: u64) {
    let is_late = time < s.home(thread).deadline && is_above_running(s, thread);
    if !s.is_on_this_core(thread) && is_late {
        s.home_mut(thread).look = true;
    }
}

/// Whether `thread` has a higher priority than whoever runs on its core; idleness is below all.
fn is_above_running(s: &State, thread: ThreadId) -> bool {
    let running = s.home(thread).thread;
    let running = running.map(|thread| s.threads[&thread].priority);
    Some(s.threads[&thread].priority) > running
}

/// If `thread` runs on another core, that is stalled, as if it were interrupted now: the thread pays,
/// and if that uses up its budget it comes as at any interrupt; if not, it is put back into its
/// ready queue. What it was about to ask of the kernel it will ask again. Its core idles until it
/// looks, which it is told to. The clock is read again, and the event ends if the caller's budget does not
/// last.
pub fn stall(s: &mut State, thread: ThreadId) {
    let core = s.threads[&thread].core;
    if core == s.executing || s.cores[core.0].thread != Some(thread) {
        return;
    }
    stop(s, thread);
    readings::read_again(s, core);
}

/// The same as the last that is done.
fn stop(s: &mut State, thread: ThreadId) {
    let core = s.threads[&thread].core;
    if core == s.executing || s.cores[core.0].thread != Some(thread) {
        return;
    }
    account::update_time_of(s, core);
    s.thread_mut(thread).state = ThreadState::Restart;
    let can_pay = account::check_budget(s, core);
    if can_pay {
        account::commit(s, core);
    }
    s.cores[core.0].thread = None;
    s.cores[core.0].context = None;
    if can_pay {
        schedule::enqueue(s, thread);
    }
    tell(s, core);
}

/// The same for the thread of `context`, if it has one.
pub fn stall_user(s: &mut State, context: ContextId) {
    if let Some(thread) = s.contexts[&context].thread {
        stall(s, thread);
    }
}

/// Threads may have lost their address spaces: whoever runs on another core and has none (any more) is
/// stalled, so that it goes on where nothing is mapped (07, section 8).
pub fn stall_homeless(s: &mut State) {
    let running = s.cores.iter().filter_map(|core| core.thread);
    for thread in running.collect::<Vec<_>>() {
        if !has_address_space(s, thread) {
            stop(s, thread);
        }
    }
}

/// Whether `thread` has an address space (07, section 8).
fn has_address_space(s: &State, thread: ThreadId) -> bool {
    let slot = SlotId::Thread(thread, ThreadSlot::VSpace);
    match s.caps.slots.get(&slot).map(|held| held.cap) {
        Some(Cap::Root {
            object,
            asid: Some(asid),
        }) => vspace::root_of(s, asid) == Some(object),
        _ => false,
    }
}

/// `thread` belongs to `core` from now on.
///
/// Precondition: it is in no queue of the scheduler, and does not run on another core.
pub fn migrate(s: &mut State, thread: ThreadId, core: CoreId) {
    s.thread_mut(thread).core = core;
}
