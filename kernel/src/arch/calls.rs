//! System calls, once entry code has stored the context of the thread: the same on each architecture.
//!
//! Entry code calls the function of a line by the system call's number, and [`on_system_call`] for the others. Each has the
//! registers to itself, and none comes back: the ways out are apart, each there once.

use sandglass_lock as lock;

use super::entry::leave;
use super::turn::{entered, KernelGuard};
use crate::cores::CoreId;
use crate::event;
use crate::fast::{self, Line, Outcome, Request};
use crate::mem::Ref;
use crate::object::{SchedContext, Tcb};
use crate::time::account;

/// A Call; the context is stored. Capability and message are still in the registers that carry them.
pub extern "C" fn on_call(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Call>(Request { cptr, info }, core)
}

/// A ReplyRecv; as for [`on_call`].
pub extern "C" fn on_reply_recv(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::ReplyRecv>(Request { cptr, info }, core)
}

/// A Send; as for [`on_call`].
pub extern "C" fn on_send(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Send>(Request { cptr, info }, core)
}

/// A Recv; as for [`on_call`].
pub extern "C" fn on_recv(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Recv>(Request { cptr, info }, core)
}

/// A Wait; as for [`on_call`].
pub extern "C" fn on_wait(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Wait>(Request { cptr, info }, core)
}

/// A Yield; as for [`on_call`].
pub extern "C" fn on_yield(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Yield>(Request { cptr, info }, core)
}

/// A system call for which there is a line.
#[inline(always)]
fn straight<L: Line>(request: Request, core: CoreId) -> ! {
    // SAFETY: called by the entry code of the core, once.
    let guard = unsafe { KernelGuard::enter(entered(core)) };
    let core = guard.k.core();
    account::update_time(guard.k, core);
    let next = match event::straight::<L>(guard.k, core, guard.turn, request) {
        Some((caller, Outcome::Stays)) => event::stay(guard.k, caller),
        Some((_, Outcome::HandsOver(next))) => event::hand_over(guard.k, next),
        Some((_, Outcome::Switches(next, own))) => hand_over_to(guard.inside, next, own),
        None => in_general(guard.inside),
    };
    leave(guard, next)
}

/// Ends an event after which `next` runs on `own`.
#[inline(never)]
fn hand_over_to(inside: Option<lock::Turn>, next: Ref<Tcb>, own: Ref<SchedContext>) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let next = event::hand_over_to(guard.k, next, own);
    leave(guard, next)
}

/// Another system call; the context is stored.
pub extern "C" fn on_system_call(_cptr: u64, _info: u64, _number: u64, core: CoreId) -> ! {
    // SAFETY: called by the entry code of the core, once.
    let guard = unsafe { KernelGuard::enter(entered(core)) };
    account::update_time(guard.k, guard.k.core());
    in_general(guard.inside)
}

/// A system call for which there is no line, or none that can take it.
#[inline(never)]
fn in_general(inside: Option<lock::Turn>) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let next = event::in_general(guard.k, guard.turn);
    leave(guard, next)
}
