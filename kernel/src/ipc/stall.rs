//! Stopping what runs on another core, as if that core had been interrupted at this moment (04,
//! section 15): whoever changes what a thread may do stops it first.
//!
//! On a kernel for one core, nothing of this exists.

use super::timeout;
use crate::arch::Platform;
use crate::cores::CORES;
use crate::mem::Ref;
use crate::object::{SchedContext, State, Tcb};
use crate::time::account::Charge;
use crate::time::{account, remote, Preempted, Turn};
use crate::Kernel;

/// If `thread` runs on another core, it does not any more, as after [`stop`]. That core has gone on
/// while this one was in the kernel, so this one reads the clock again: what the thread's context is
/// then is not in the future for whoever looks at it.
///
/// # Errors
/// The caller's time is over: the operation is to stop before it does anything more.
#[inline(always)]
pub fn quiesce(k: &Kernel, turn: &Turn, thread: Ref<Tcb>) -> Result<(), Preempted> {
    if CORES > 1 && !k.is_here(thread) && k.home(thread).thread() == Some(thread) {
        stop(k, turn, thread);
        return account::read_clock_again(k);
    }
    Ok(())
}

/// The same for the thread of `handle`, if it has one.
///
/// # Errors
/// As [`quiesce`].
#[inline(always)]
pub fn quiesce_user(k: &Kernel, turn: &Turn, handle: Ref<SchedContext>) -> Result<(), Preempted> {
    match handle.at(k).thread() {
        Some(thread) if CORES > 1 => quiesce(k, turn, thread),
        _ => Ok(()),
    }
}

/// Stops `thread`, which runs on another core: it has paid for its time until it left user code, and
/// is the first of its equals, or, its budget being over, what it is then. Its registers are in its
/// context. Whoever goes on to look at its context calls [`quiesce`] instead.
#[inline(never)]
pub fn stop(k: &Kernel, turn: &Turn, thread: Ref<Tcb>) {
    let id = thread.at(k).core();
    let left = k.machine.stall_core(id);
    let core = k.core_of(id);
    core.set_now(k, core.now().max(left));
    // Whatever it was about to ask of the kernel, it will ask again.
    thread.at(k).set_state(k, State::Restart);
    match account::check_budget(core) {
        Charge::Paid => {
            account::commit(k, core);
            core.ready().enqueue(k, thread);
        }
        Charge::Exhausted => timeout::exhausted(k, turn, core),
    }
    trace!(k, stopped_there(id));
    core.set_thread(k, None);
    core.set_context(k, None);
    remote::decide_anew(k, id);
}
