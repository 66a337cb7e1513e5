//! Lines and system calls, once entry code has stored the context of the thread: the same on each architecture.
//!
//! Entry code calls the function of a line by the system call's number, and [`on_system_call`] for the others. Each has the
//! registers to itself, and none comes back: the ways out are apart, each there once.

use sandglass_lock as lock;

use super::entry::leave;
use super::turn::{entered, KernelGuard};
use crate::cores::CoreId;
use crate::event;
use crate::fast::{self, Line, Outcome, Request, Switch};
use crate::mem::Ref;
use crate::object::{SchedContext, Tcb};
use crate::time::{account, context};

/// A Call; the context is stored. Capability and message are still in the registers that carry them.
pub extern "C" fn on_call(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Call>(enter(core), Request { cptr, info })
}

/// A ReplyRecv; as for [`on_call`].
pub extern "C" fn on_reply_recv(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    let (guard, request) = (enter(core), Request { cptr, info });
    match take::<fast::ReplyRecv>(&guard, request) {
        Some((_, Outcome::Detours)) => answer_fault(guard.inside, request),
        taken => conclude(guard, taken),
    }
}

/// A ReplyRecv that answers a fault.
#[inline(never)]
fn answer_fault(inside: Option<lock::Turn>, request: Request) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let taken = event::straight::<fast::AnswerFault>(guard.k, guard.k.core(), guard.turn, request);
    conclude(guard, taken)
}

/// A Send; as for [`on_call`].
pub extern "C" fn on_send(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Send>(enter(core), Request { cptr, info })
}

/// A Recv; as for [`on_call`].
pub extern "C" fn on_recv(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Recv>(enter(core), Request { cptr, info })
}

/// A Wait; as for [`on_call`].
pub extern "C" fn on_wait(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Wait>(enter(core), Request { cptr, info })
}

/// A Yield; as for [`on_call`].
pub extern "C" fn on_yield(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Yield>(enter(core), Request { cptr, info })
}

/// An NBSendRecv; as for [`on_call`].
pub extern "C" fn on_nb_send_recv(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::NBSendRecv>(enter(core), Request { cptr, info })
}

/// The turn of the core whose entry code calls with this number.
#[inline(always)]
fn enter(core: CoreId) -> KernelGuard {
    // SAFETY: called by the functions that the entry code of the core calls, once.
    unsafe { KernelGuard::enter(entered(core)) }
}

/// A system call for which there is a line.
#[inline(always)]
fn straight<L: Line>(guard: KernelGuard, request: Request) -> ! {
    let taken = take::<L>(&guard, request);
    conclude(guard, taken)
}

/// Reads the clock, and has the line take the system call if it can.
#[inline(always)]
fn take<L: Line>(guard: &KernelGuard, request: Request) -> Option<(Ref<Tcb>, Outcome)> {
    let core = guard.k.core();
    account::update_time(guard.k, core);
    event::straight::<L>(guard.k, core, guard.turn, request)
}

/// Ends a system call that a line has `taken`, if one has.
#[inline(always)]
fn conclude(guard: KernelGuard, taken: Option<(Ref<Tcb>, Outcome)>) -> ! {
    match taken {
        Some((caller, outcome)) => finish(guard, caller, outcome),
        None => in_general(guard.inside),
    }
}

/// Ends an event of `thread` that a line took.
#[inline(always)]
pub fn finish(guard: KernelGuard, thread: Ref<Tcb>, outcome: Outcome) -> ! {
    match outcome {
        Outcome::Stays => {
            let next = event::stay(guard.k, thread);
            leave(guard, next)
        }
        Outcome::Switches(switch) => go_to(guard, switch),
        Outcome::Detours => in_general(guard.inside),
    }
}

/// Ends an event after which another thread runs.
#[inline(always)]
fn go_to(guard: KernelGuard, switch: Switch) -> ! {
    match switch {
        Switch::OnLent(next) => {
            let next = event::hand_over(guard.k, next);
            leave(guard, next)
        }
        Switch::OnOwn(next, own) => hand_over_to(guard.inside, next, own),
        Switch::Woken(next, own) if own.at(guard.k).is_sporadic() => start(guard.inside, next, own),
        Switch::Woken(next, own) => hand_over_to(guard.inside, next, own),
    }
}

/// Ends an event after which `next`, which has woken, runs on `own`, which is sporadic.
#[cold]
#[inline(never)]
fn start(inside: Option<lock::Turn>, next: Ref<Tcb>, own: Ref<SchedContext>) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    context::wake_refills(guard.k, next);
    hand_over_to(guard.inside, next, own)
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
    let guard = enter(core);
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
