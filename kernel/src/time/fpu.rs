//! The FPU is switched eagerly (07, section 4): a thread without the disabled flag runs with its
//! own state in the registers, a thread with it runs with the FPU off.
//!
//! Invariant: nobody who is without the FPU has registers in it.
//!
//! The registers of whoever ran with the FPU last stay in it until another thread needs it, or
//! until that thread leaves for another core (04, section 15).

use crate::arch::Platform;
use crate::mem::Ref;
use crate::object::{Core, Tcb};
use crate::Kernel;

/// `thread` is about to run on `core`, which executes the kernel: the FPU is made its own, or switched off.
#[inline(always)]
pub fn switch(k: &Kernel, core: &Core, thread: Ref<Tcb>) {
    if thread.at(k).fpu_disabled() {
        return set_enabled(k, core, false);
    }
    set_enabled(k, core, true);
    let owner = core.fpu_owner();
    if owner == Some(thread) {
        return;
    }
    let from = owner.map(|owner| owner.at(k).fpu());
    k.machine.fpu_switch(from, thread.at(k).fpu());
    core.set_fpu_owner(k, Some(thread));
}

/// Lets user code of `core`, which executes the kernel, use the FPU, or makes its use an exception.
#[inline(always)]
fn set_enabled(k: &Kernel, core: &Core, enabled: bool) {
    if core.fpu_enabled() != enabled {
        core.set_fpu_enabled(k, enabled);
        k.machine.fpu_set_enabled(enabled);
    }
}

/// `thread`, which does not run on another core, is about to leave its core, or to do without the FPU: if its registers are
/// still there, they go into its TCB.
#[inline(always)]
pub fn release(k: &Kernel, thread: Ref<Tcb>) {
    let core = k.home(thread);
    if core.fpu_owner() == Some(thread) {
        if thread.at(k).core() == k.core_id() {
            save(k);
        } else {
            k.machine
                .fpu_save_of(thread.at(k).core(), thread.at(k).fpu());
            core.set_fpu_owner(k, None);
        }
    }
}

/// Moves the registers of whoever owns the FPU into its TCB. Whether the current thread may use the
/// FPU stays as it is.
fn save(k: &Kernel) {
    let core = k.core();
    if let Some(owner) = core.fpu_owner() {
        k.machine.fpu_save(owner.at(k).fpu());
        core.set_fpu_owner(k, None);
    }
}
