//! Straight lines: what happens most, from the entry to the exit without a detour.
//!
//! A [`Line`] is for one kind of event in the state that it mostly finds: a thread calls one that waits, answers one that
//! waits for that, signals, or waits. It has two halves. The first looks at everything that the event depends on and
//! changes nothing: it comes to a plan, or to none where anything is out of the ordinary, and then the general path
//! takes the event as if nobody had looked. The second carries the plan out and cannot fail. Whatever a line does, the
//! general path would have done: a line is quicker because it knows beforehand who runs next, and leaves out what stands in
//! between (docs/src/architecture/straight-lines.md).
//!
//! The first half is a function of the [`View`] alone, so tests ask it which line an event is to take.

#![forbid(unsafe_code)]

mod delivery;
mod exchange;
mod handover;
#[cfg(not(target_os = "none"))]
pub mod inspect;
mod meeting;
mod send;
mod send_recv;
mod signal;
mod traps;
mod wait;
mod yields;

use crate::arch::Trap;
use crate::mem::Ref;
use crate::object::{Core, SchedContext, Tcb};
use crate::time::account::{self, Charge};
use crate::{Kernel, View};

pub use exchange::{AnswerFault, Call, ReplyRecv};
pub use send::Send;
pub use send_recv::NBSendRecv;
pub use wait::{Recv, Wait};
pub use yields::Yield;

use traps::{Expires, Faults, Interrupt};

/// What the registers of a system call say that every one has: the capability, and the message.
#[derive(Clone, Copy)]
pub struct Request {
    pub cptr: u64,
    /// The raw message-info word.
    pub info: u64,
}

/// For whom the time may have come, when a line is taken.
#[derive(Clone, Copy)]
pub enum Due {
    Nobody,
    /// Nobody above the caller.
    NobodyAbove,
    /// The plan sees to that.
    IsPlannedFor,
}

/// To another thread, in no queue, that runs when a line is done.
#[must_use]
#[derive(Clone, Copy)]
pub enum Switch {
    /// On the context that paid before.
    OnLent(Ref<Tcb>),
    /// On this one, which is another.
    OnOwn(Ref<Tcb>, Ref<SchedContext>),
    /// The same, and the thread has left a blocked state.
    Woken(Ref<Tcb>, Ref<SchedContext>),
}

/// What a line comes to.
#[must_use]
#[derive(Clone, Copy)]
pub enum Outcome {
    /// The caller goes on.
    Stays,
    Switches(Switch),
    /// Nothing was done: a line of its own is for the answer to a fault.
    Detours,
}

/// One kind of system call, where nothing is out of the ordinary.
pub trait Line: Sized {
    /// For whom the time may have come when it is taken.
    const DUE: Due = Due::Nobody;

    /// What the `request` of `caller`, the current thread of `core`, comes to, if the line can take it.
    fn plan(k: &View, core: &Core, caller: Ref<Tcb>, request: Request) -> Option<Self>;

    /// Does so for `caller`. What is left to do is what the outcome says: the thread that it names becomes the current one.
    fn carry_out(self, k: &Kernel, core: &Core, caller: Ref<Tcb>) -> Outcome;
}

/// Handles the `request` of `caller`, the current thread of `core`, if the line can take it: otherwise nothing is done, and
/// the general path is to. The clock was read; nothing is paid yet.
#[inline(always)]
pub fn take<L: Line>(
    k: &Kernel,
    core: &Core,
    caller: Ref<Tcb>,
    request: Request,
) -> Option<Outcome> {
    if !is_ordinary(k, core, caller, L::DUE) {
        return None;
    }
    Some(L::plan(k, core, caller, request)?.carry_out(k, core, caller))
}

/// As [`take`], of a `trap` that found `thread` running on `core`.
#[inline(always)]
pub fn take_trap(k: &Kernel, core: &Core, thread: Ref<Tcb>, trap: Trap) -> Option<Outcome> {
    match trap {
        Trap::Exception(exception) if is_ordinary(k, core, thread, Due::NobodyAbove) => {
            let fault = exception.fault(thread.at(k).context());
            Some(Faults::plan(k, core, thread, fault)?.carry_out(k, thread))
        }
        Trap::Interrupt { irq } if is_ordinary(k, core, thread, Due::NobodyAbove) => {
            Some(Interrupt::plan(k, thread, irq)?.carry_out(k, core, thread))
        }
        Trap::Timer if is_over(k, core) => {
            Some(Expires::plan(k, core, thread)?.carry_out(k, core, thread))
        }
        _ => None,
    }
}

/// Whether the budget of the current context is used up, but its domain's turn lasts, and no time has come for anybody.
#[inline(always)]
fn is_over(k: &View, core: &Core) -> bool {
    account::check_budget(core) == Charge::Exhausted
        && core.is_at_rest()
        && !account::domain_is_over(k)
        && !core.is_anybody_due()
}

/// Whether the budget of the current context lasts, as its domain's turn does, the time has come for nobody but whom
/// `due` allows, the timer is right, and nothing is left of an earlier system call of `caller`.
#[inline(always)]
fn is_ordinary(k: &View, core: &Core, caller: Ref<Tcb>, due: Due) -> bool {
    account::check_budget(core) == Charge::Paid
        && !account::domain_is_over(k)
        && (!core.is_anybody_due()
            || match due {
                Due::Nobody => false,
                Due::NobodyAbove => handover::none_of_the_due_is_above(k, core, caller),
                Due::IsPlannedFor => true,
            })
        && core.is_at_rest()
        && !caller.at(k).has_progress()
}
