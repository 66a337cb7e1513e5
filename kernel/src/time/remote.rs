//! What concerns another core (04, section 15).
//!
//! The core that executes the kernel works on the queues of all of them: the kernel is never
//! executed by two cores at once. What it cannot do for another core is to decide who runs there.
//! So it leaves the decision, and asks the core to look when the event ends. What runs there is
//! stopped first if the event is about it (`ipc/stall.rs`).
//!
//! On a kernel for one core, nothing of this exists.

use super::fpu;
use crate::arch::Platform;
use crate::cores::{CoreId, CORES};
use crate::mem::Ref;
use crate::object::Tcb;
use crate::Kernel;

/// `thread` was put into the ready queue of its core: if that is another one that idles or runs a
/// thread of lower priority, it is to decide anew.
#[inline(always)]
pub fn is_ready(k: &Kernel, thread: Ref<Tcb>) {
    let core = thread.at(k).core();
    if CORES > 1 && core != k.core_id() && is_above_running(k, thread) {
        decide_anew(k, core);
    }
}

/// `thread` was put into the release queue of its core, to wait until `time`, in ticks: if that is
/// another one whose timer would fire too late, it is to program it.
#[inline(always)]
pub fn is_waiting(k: &Kernel, thread: Ref<Tcb>, time: u64) {
    if CORES > 1 && !k.is_here(thread) {
        let core = k.home(thread);
        if time < core.armed() && is_above_running(k, thread) {
            k.request_reschedule(thread.at(k).core());
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
pub fn decide_anew(k: &Kernel, core: CoreId) {
    k.core_of(core).leave_undecided(k);
    k.request_reschedule(core);
}

/// The event ends: the cores that are to look are told so.
#[inline(always)]
pub fn tell_cores(k: &Kernel) {
    if CORES > 1 && k.has_reschedules() {
        interrupt_cores(k);
    }
}

#[cold]
#[inline(never)]
fn interrupt_cores(k: &Kernel) {
    let looks = k.take_reschedules();
    looks.iter().for_each(|core| k.machine.interrupt_core(core));
}

/// `thread`, which is in no queue of a scheduler and does not run on another core, belongs to `core`
/// from now on. It leaves nothing behind.
#[inline(always)]
pub fn migrate(k: &Kernel, thread: Ref<Tcb>, core: CoreId) {
    if CORES > 1 && thread.at(k).core() != core {
        trace!(k, migrate(thread, core));
        fpu::release(k, thread);
        thread.at(k).set_core(k, core);
    }
}
