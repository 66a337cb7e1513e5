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

mod exchange;
mod handover;
#[cfg(not(target_os = "none"))]
pub mod inspect;

use crate::mem::Ref;
use crate::object::{Core, Tcb};
use crate::time::account::{self, Charge};
use crate::time::Turn;
use crate::{Kernel, View};

pub use exchange::{Call, ReplyRecv};

/// What the registers of a system call say that every one has: the capability, and the message.
#[derive(Clone, Copy)]
pub struct Request {
    pub cptr: u64,
    /// The raw message-info word.
    pub info: u64,
}

/// One kind of system call, where nothing is out of the ordinary.
pub trait Line: Sized {
    /// What the `request` of `caller`, the current thread, comes to, if the line can take it.
    fn plan(k: &View, caller: Ref<Tcb>, request: Request) -> Option<Self>;

    /// Does so, and makes the thread that is to run the current one.
    fn carry_out(self, k: &Kernel) -> Ref<Tcb>;
}

/// Handles the `request` of `caller`, the current thread of `core`, if the line can take it: otherwise nothing is done, and the
/// general path is to. The clock was read; nothing is paid yet. Returns the thread that runs next.
#[inline(always)]
pub fn take<L: Line>(
    k: &Kernel,
    core: &Core,
    turn: &Turn,
    caller: Ref<Tcb>,
    request: Request,
) -> Option<Ref<Tcb>> {
    if !turn.is_open() || !is_ordinary(k, core, caller) {
        return None;
    }
    Some(L::plan(k, caller, request)?.carry_out(k))
}

/// Whether the budget of the current context lasts, as its domain's turn does, no time has come for anybody, the timer
/// is right, and nothing is left of an earlier system call of `caller`.
#[inline(always)]
fn is_ordinary(k: &View, core: &Core, caller: Ref<Tcb>) -> bool {
    account::check_budget(k, core) == Charge::Paid
        && !account::domain_is_over(k)
        && core.release.earliest() > core.now()
        && !core.reprogram()
        && !caller.at(k).has_progress()
}
