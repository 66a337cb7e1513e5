//! The life-cycle of threads: stopping and starting them (04, section 10).

#![forbid(unsafe_code)]

pub mod priority;
pub mod yielding;

use crate::ipc::cancel::cancel_ipc;
use crate::mem::Ref;
use crate::object::{State, Tcb};
use crate::time::refills::Refills;
use crate::time::{context, schedule, Turn};
use crate::Kernel;

/// Stops `thread`, whatever it does.
pub fn suspend(k: &Kernel, turn: &Turn, thread: Ref<Tcb>) {
    let tcb = thread.at(k);
    // One that is blocked or stopped is in no queue of the scheduler.
    if tcb.is_runnable() {
        tcb.set_fault(k, None);
        if tcb.state() == State::Running {
            tcb.context().hold(k);
        }
        schedule::unqueue(k, thread);
    } else {
        cancel_ipc(k, thread);
    }
    yielding::cancel_yield(k, thread);
    tcb.set_state(k, State::Inactive);
    turn.stop(k, thread);
}

/// Starts `thread` where it entered the kernel; nothing if it is not stopped or blocked.
pub fn resume(k: &Kernel, turn: &Turn, thread: Ref<Tcb>) {
    if thread.at(k).is_runnable() {
        return;
    }
    cancel_ipc(k, thread);
    restart(k, turn, thread);
}

/// `thread`, in no queue of an object any more, nor of the scheduler, executes its system call anew.
pub fn restart(k: &Kernel, turn: &Turn, thread: Ref<Tcb>) {
    if has_time_to_restart(k, thread) {
        turn.wake_with_time(k, thread);
    }
}

/// `thread`, just taken out of the queue of an object that ceases or rejects it, tries again; with
/// a fault pending it stays inactive (02, sections 7.1 and 7.4). It takes its place among those that are ready: the caller
/// demands a new decision before.
pub fn restart_or_give_up(k: &Kernel, thread: Ref<Tcb>) {
    let tcb = thread.at(k);
    if tcb.fault().is_some() {
        tcb.set_fault(k, None);
        tcb.set_state(k, State::Inactive);
    } else if has_time_to_restart(k, thread) {
        schedule::enqueue(k, thread);
    }
}

/// `thread` is to execute its system call anew. Returns whether it has the time to, now; if only later, it waits for that.
#[inline(always)]
#[must_use]
fn has_time_to_restart(k: &Kernel, thread: Ref<Tcb>) -> bool {
    let tcb = thread.at(k);
    tcb.set_state(k, State::Restart);
    trace!(k, wake(thread));
    context::wake_refills(k, thread);
    let context = tcb.sched_context();
    let Some(handle) = context.filter(|handle| handle.at(k).is_active()) else {
        return false;
    };
    let has_time = Refills::of(k, handle).usable();
    if !has_time {
        schedule::postpone(k, handle);
    }
    has_time
}
