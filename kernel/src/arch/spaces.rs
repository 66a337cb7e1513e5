//! The address space that a thread runs in: remembered by the thread, as long as nobody can have lost his.
//!
//! A thread's capability names an address space, and its identifier has to name the same one still: to find that out takes the
//! capability, a table of pools and a pool, each in a line of a cache of its own. So whoever has found it leaves it with the
//! thread, with the [number](crate::object::Core::spaces) of the state that all address spaces are in. Whatever can take an
//! address space from a thread ends in [`forget`] or [`changed`].

use super::abi::space::own;
use super::abi::Space;
use super::remembered::Remembered;
use super::Platform;
use crate::cores::{CoreId, CORES};
use crate::mem::Ref;
use crate::object::{Core, Tcb};
use crate::{Kernel, View};

/// Makes user code of `thread` run in its address space on `core`, which executes the kernel; one whose address space is gone, or that
/// never had one, runs where nothing is mapped (07, section 8).
#[inline(always)]
pub fn switch(k: &Kernel, core: &Core, thread: Ref<Tcb>) {
    if !switch_remembered(k, core, thread) {
        switch_anew(k, thread);
    }
}

/// As [`switch`], if `thread` remembers its address space. Whether it does.
#[inline(always)]
#[must_use]
pub fn switch_remembered(k: &Kernel, core: &Core, thread: Ref<Tcb>) -> bool {
    let remembered = thread.at(k).space();
    let counts = remembered.state == core.spaces();
    if counts {
        enter(k, core, Some(remembered.space));
    }
    counts
}

/// As [`switch`], of a thread that remembers nothing.
#[inline(never)]
pub extern "C" fn switch_anew(k: &Kernel, thread: Ref<Tcb>) {
    let (core, space) = (k.core(), own(k, thread));
    if let Some(space) = space {
        let state = core.spaces();
        thread.at(k).set_space(k, Remembered { space, state });
    }
    enter(k, core, space);
}

/// User code of `core`, which executes the kernel, runs where nothing is mapped: another core may end the address space that it
/// was in.
pub fn leave(k: &Kernel) {
    enter(k, k.core(), None);
}

#[inline(always)]
fn enter(k: &Kernel, core: &Core, space: Option<Space>) {
    if let Some(root) = k.machine.use_address_space(core.root(), space) {
        core.set_root(k, root);
    }
}

/// The address space of `thread` has changed: if it runs, it continues in the new one.
pub fn changed(k: &Kernel, thread: Ref<Tcb>) {
    thread.at(k).set_space(k, Remembered::NOTHING);
    if k.core().thread() == Some(thread) {
        switch_anew(k, thread);
    }
}

/// Some address space may have lost its translation: no thread knows its own any more. What runs here may have lost its own.
pub fn forget(k: &Kernel) {
    let next = k.core().spaces() + 1;
    if CORES == 1 {
        k.core().set_spaces(k, next);
    } else {
        CoreId::all().for_each(|core| k.core_of(core).set_spaces(k, next));
    }
    if let Some(thread) = k.core().thread() {
        switch_anew(k, thread);
    }
}

/// Whether `thread` remembers nothing, or its address space.
#[cfg(not(target_os = "none"))]
pub fn remembers_its_own(k: &View, thread: Ref<Tcb>) -> bool {
    let remembered = thread.at(k).space();
    remembered.state != k.core().spaces() || own(k, thread) == Some(remembered.space)
}

/// The threads that run, with their cores.
pub fn running(k: &View) -> impl Iterator<Item = (CoreId, Ref<Tcb>)> + '_ {
    CoreId::all().filter_map(|core| Some((core, k.core_of(core).thread()?)))
}
