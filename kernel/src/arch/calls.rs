//! Lines and system calls, once entry code has stored the context of the thread: the same on each architecture.
//!
//! Entry code calls the function of a line by the system call's number, and [`on_system_call`] for the others. Each has the
//! registers to itself, and none comes back: the ways out are apart, each there once.

use sandglass_lock as lock;

use super::align_stack;
use super::entry::leave;
use super::turn::{entered, KernelGuard};
use crate::cores::CoreId;
use crate::event::{self, Ending};
use crate::fast::{self, Line, Outcome, Request};
use crate::mem::Ref;
use crate::object::{Core, SchedContext, Tcb};
use crate::time::{account, context};

/// A Call; the context is stored. Capability and message are still in the registers that carry them.
pub extern "C" fn on_call(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    straight::<fast::Call>(enter(core), Request { cptr, info })
}

/// A ReplyRecv; as for [`on_call`].
pub extern "C" fn on_reply_recv(cptr: u64, info: u64, _number: u64, core: CoreId) -> ! {
    let (guard, request) = (enter(core), Request { cptr, info });
    let core = guard.k.core();
    match take::<fast::ReplyRecv>(&guard, core, request) {
        Some((_, Outcome::Detours)) => answer_fault(guard.inside, request),
        taken => {
            let ending = event::conclude(guard.k, core, taken);
            end(guard, ending)
        }
    }
}

/// A ReplyRecv that answers a fault.
#[inline(never)]
fn answer_fault(inside: Option<lock::Turn>, request: Request) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let core = guard.k.core();
    let taken = event::straight::<fast::AnswerFault>(guard.k, core, request);
    let ending = event::conclude(guard.k, core, taken);
    end(guard, ending)
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
    let core = guard.k.core();
    let taken = take::<L>(&guard, core, request);
    let ending = event::conclude(guard.k, core, taken);
    end(guard, ending)
}

/// Reads the clock of `core`, which executes this, and has the line take the system call if it can.
#[inline(always)]
fn take<L: Line>(
    guard: &KernelGuard,
    core: &Core,
    request: Request,
) -> Option<(Ref<Tcb>, Outcome)> {
    account::update_time(guard.k, core);
    event::straight::<L>(guard.k, core, request)
}

/// Does what is left.
#[inline(always)]
pub fn end(guard: KernelGuard, ending: Ending) -> ! {
    match ending {
        Ending::Leaves(next) => leave(guard, next),
        Ending::Arms(next) => arm(guard.inside, next),
        Ending::HandsOver(next, own) => hand_over_to(guard.inside, next, own),
        Ending::Starts(next, own) => start(guard.inside, next, own),
        Ending::IsInGeneral => to_general(guard.inside),
    }
}

/// Ends an event after which `next`, for which the timer may be wrong, runs on what paid before.
#[cold]
#[inline(never)]
fn arm(inside: Option<lock::Turn>, next: Ref<Tcb>) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let next = event::hand_over_arming(guard.k, guard.k.core(), next);
    leave(guard, next)
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
    let next = event::hand_over_to(guard.k, guard.k.core(), next, own);
    leave(guard, next)
}

/// Another system call; the context is stored.
pub extern "C" fn on_system_call(_cptr: u64, _info: u64, _number: u64, core: CoreId) -> ! {
    let guard = enter(core);
    account::update_time(guard.k, guard.k.core());
    to_general(guard.inside)
}

/// A system call for which there is no line, or none that can take it.
#[inline(never)]
fn to_general(inside: Option<lock::Turn>) -> ! {
    align_stack();
    in_general(inside)
}

/// The same, wherever it was called from.
#[inline(never)]
fn in_general(inside: Option<lock::Turn>) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let next = event::in_general(guard.k, guard.turn);
    leave(guard, next)
}
