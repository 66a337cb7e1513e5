//! Calls that straight lines seldom make, and that keep all registers but the result's.
//!
//! A line has what it knows in registers. A call, also one that is hardly ever made, has the compiler choose those that
//! functions keep for their callers, and the line begins by storing what is in them: at every event, for nobody. What is called
//! from here keeps the registers itself, at whose expense it is called. On a host these are the functions themselves
//! (`hosted/aside.rs`).

use core::mem::transmute;
use core::ptr::from_ref;

use sandglass_lock as lock;

use super::isa::entry::aside::{call, keep};
use super::{spaces, turn};
use crate::cores::CoreId;
use crate::mem::Ref;
use crate::object::Tcb;
use crate::time::schedule;
use crate::{Kernel, View};

keep!("sandglass_aside_is_due_from", schedule::is_due_from);
keep!("sandglass_aside_arm_anew", schedule::arm_anew);
keep!("sandglass_aside_switch_anew", spaces::switch_anew);
keep!("sandglass_aside_take_over", turn::take_over);
keep!("sandglass_aside_enter_late", turn::enter_late);

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

/// [`schedule::arm_anew`].
#[inline(always)]
pub fn arm_anew(k: &Kernel) {
    // SAFETY: the argument is the function's, which has no other.
    unsafe { call!("sandglass_aside_arm_anew", from_ref(k), 0u64) };
}

/// [`spaces::switch_anew`].
#[inline(always)]
pub fn switch_anew(k: &Kernel, thread: Ref<Tcb>) {
    let thread = thread.address().get();
    // SAFETY: the arguments are the function's: a handle is the address.
    unsafe { call!("sandglass_aside_switch_anew", from_ref(k), thread) };
}

/// [`turn::take_over`].
#[inline(always)]
pub fn take_over(k: &Kernel, core: CoreId) {
    // SAFETY: the arguments are the function's: a core is its number.
    unsafe {
        call!(
            "sandglass_aside_take_over",
            from_ref(k),
            u64::from(core.number())
        )
    };
}

/// [`turn::enter_late`].
#[inline(always)]
pub fn enter_late(core: CoreId, ticket: lock::Ticket) -> lock::Turn {
    // SAFETY: a ticket and a turn are words of 32 bits; the arguments and the result are the function's.
    unsafe {
        let ticket: u32 = transmute(ticket);
        let inside = call!(
            "sandglass_aside_enter_late",
            u64::from(core.number()),
            u64::from(ticket)
        );
        transmute(inside as u32)
    }
}
