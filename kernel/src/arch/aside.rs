//! Calls that straight lines seldom make, and that keep all registers but the result's.
//!
//! A line has what it knows in registers. A call, also one that is hardly ever made, has the compiler choose those that
//! functions keep for their callers, and the line begins by storing what is in them: at every event, for nobody. What is called
//! from here keeps the registers itself, at whose expense it is called, as the ways to a turn do that are not there at once
//! (`turn.rs`). On a host these are the functions themselves (`hosted/aside.rs`).

use core::ptr::from_ref;

use super::isa::machine::aside::{call, keep};
use super::spaces;
use crate::mem::Ref;
use crate::object::Tcb;
use crate::time::schedule;
use crate::{Kernel, View};

keep!("sandglass_aside_is_due_from", schedule::is_due_from);
keep!("sandglass_aside_switch_anew", spaces::switch_anew);

/// [`schedule::is_due_from`].
#[inline(always)]
pub fn is_due_from(k: &View, priority: u8) -> bool {
    // SAFETY: the arguments and the result are the function's.
    let is_due = unsafe {
        call!(
            "sandglass_aside_is_due_from",
            from_ref(k),
            u64::from(priority)
        )
    };
    is_due as u8 != 0
}

/// [`spaces::switch_anew`].
#[inline(always)]
pub fn switch_anew(k: &Kernel, thread: Ref<Tcb>) {
    let thread = thread.address().get();
    // SAFETY: the arguments are the function's: a handle is the address.
    unsafe { call!("sandglass_aside_switch_anew", from_ref(k), thread) };
}
