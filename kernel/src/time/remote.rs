//! What concerns another core (04, section 15).
//!
//! The core that executes the kernel works on the queues of all of them: the kernel is never
//! executed by two cores at once. What it cannot do for another core is to decide who runs there.
//! So it leaves the decision, and asks the core to look when the event ends; and what runs there is
//! stopped first if the event is about it, as if that core had been interrupted at this moment.
//!
//! On a kernel for one core, nothing of this exists.

use super::account::{self, TimeOver};
use super::core::Action;
use crate::arch::Platform;
use crate::cores::{CoreId, CORES};
use crate::mem::Ref;
use crate::object::sched_context::SchedContext;
use crate::object::tcb::{fpu, State, Tcb};
use crate::Kernel;

/// `thread` was put into the ready queue of its core: if that is another one that idles or runs a
/// thread of lower priority, it is to decide anew.
#[inline(always)]
pub fn is_ready(k: &Kernel, thread: Ref<Tcb>) {
    if CORES > 1 && !k.is_here(thread) && is_above_running(k, thread) {
        decide_anew(k, thread.at(k).core());
    }
}

/// `thread` was put into the release queue of its core, to wait until `time`, in ticks: if that is
/// another one whose timer would fire too late, it is to program it.
#[inline(always)]
pub fn is_waiting(k: &Kernel, thread: Ref<Tcb>, time: u64) {
    if CORES > 1 && !k.is_here(thread) {
        let core = k.home(thread);
        if time < core.armed() && is_above_running(k, thread) {
            k.let_look(thread.at(k).core());
        }
    }
}

/// Whether the core of `thread` idles or runs a thread of lower priority.
fn is_above_running(k: &Kernel, thread: Ref<Tcb>) -> bool {
    let running = k.home(thread).thread();
    let running = running.map(|running| running.at(k).priority());
    Some(thread.at(k).priority()) > running
}

/// `core`, another one, is to decide who runs there.
fn decide_anew(k: &Kernel, core: CoreId) {
    k.core_of(core).set_action(Action::ChooseNew);
    k.let_look(core);
}

/// The event ends: the cores that are to look are told so.
#[inline(always)]
pub fn tell_cores(k: &Kernel) {
    if CORES > 1 && k.has_looks() {
        interrupt_cores(k);
    }
}

#[cold]
#[inline(never)]
fn interrupt_cores(k: &Kernel) {
    let looks = k.take_looks();
    looks.iter().for_each(|core| k.machine.interrupt_core(core));
}

/// If `thread` runs on another core, it does not any more, as after [`stop`]. That core has gone on
/// while this one was in the kernel, so this one reads the clock again: what the thread's context is
/// then is not in the future for whoever looks at it.
///
/// # Errors
/// The caller's time is over: the operation is to stop before it does anything more.
#[inline(always)]
pub fn stall(k: &Kernel, thread: Ref<Tcb>) -> Result<(), TimeOver> {
    if CORES > 1 && !k.is_here(thread) && k.home(thread).thread() == Some(thread) {
        stop(k, thread);
        if broken_in_time!(StallsAreInTheFuture) {
            return Ok(());
        }
        return account::read_clock_again(k);
    }
    Ok(())
}

/// The same for the thread of `handle`, if it has one.
///
/// # Errors
/// As [`stall`].
#[inline(always)]
pub fn stall_user(k: &Kernel, handle: Ref<SchedContext>) -> Result<(), TimeOver> {
    match handle.at(k).thread() {
        Some(thread) if CORES > 1 => stall(k, thread),
        _ => Ok(()),
    }
}

/// Stops `thread`, which runs on another core: it has paid for its time until it left user code, and
/// is the first of its equals, or, its budget being over, what it is then. Its registers are in its
/// context. Whoever goes on to look at its context calls [`stall`] instead.
#[inline(never)]
pub fn stop(k: &Kernel, thread: Ref<Tcb>) {
    let id = thread.at(k).core();
    let left = k.machine.stall_core(id);
    let core = k.core_of(id);
    core.set_now(core.now().max(left));
    // Whatever it was about to ask of the kernel, it will ask again.
    thread.at(k).set_state(State::Restart);
    if account::has_budget(k, core) {
        account::commit(k, core);
        core.ready.enqueue(k, thread);
    } else {
        account::exhausted(k, core);
    }
    trace!(k, stopped_there(id));
    core.set_thread(None);
    core.set_context(None);
    decide_anew(k, id);
}

/// `thread`, which is in no queue of a scheduler and does not run on another core, belongs to `core`
/// from now on. It leaves nothing behind.
#[inline(always)]
pub fn migrate(k: &Kernel, thread: Ref<Tcb>, core: CoreId) {
    if CORES > 1 && thread.at(k).core() != core {
        trace!(k, migrate(thread, core));
        fpu::release(k, thread);
        thread.at(k).set_core(core);
    }
}
