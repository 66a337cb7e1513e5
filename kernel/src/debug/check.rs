//! Checks of the invariants of the objects that an event touched: the debug kernel makes them
//! after every event, the release kernel never. Sweeps over the whole state belong to the host.

use super::{Console, AVAILABLE};
use crate::arch::Platform;
use crate::cap::derivation;
use crate::mem::objects::tcb_slot;
use crate::mem::Ref;
use crate::object::{Above, Place, SchedContext, Tcb};
use crate::time::Refills;
use crate::Kernel;

/// Status of a debug kernel that found itself inconsistent.
const INCONSISTENT: u8 = 3;

/// Checks the thread that caused the event and the one that runs next.
#[inline(always)]
pub fn touched(k: &Kernel, before: Option<Ref<Tcb>>) {
    if !AVAILABLE {
        return;
    }
    let next = k.core().thread();
    for thread in [before, next].into_iter().flatten() {
        require(k, is_consistent(k, thread), "a thread");
        if let Some(context) = thread.at(k).sched_context() {
            check_context(k, context);
        }
    }
    if let Some(next) = next {
        let tcb = next.at(k);
        require(k, tcb.fault().is_none(), "the next thread's fault");
        require(k, tcb.is_runnable(), "the next thread's state");
        require(k, tcb.place() == Place::None, "the next thread's place");
        require(k, tcb.sched_context() == k.core().context(), "who pays");
        require(k, k.is_here(next), "the next thread's core");
    }
}

fn check_context(k: &Kernel, handle: Ref<SchedContext>) {
    let check = |holds, what| require(k, holds, what);
    let (context, refills) = (handle.at(k), Refills::of(k, handle));
    if context.is_active() {
        let count = refills.count();
        check(
            (1..=context.max_refills()).contains(&count),
            "the number of refills",
        );
        check(
            context.is_round_robin() || in_order(refills),
            "the order of refills",
        );
    }
    let (core, head) = (k.core(), refills.head());
    if core.context() == Some(handle) {
        let paid = core.now() - core.consumed();
        check(
            core.budget_end(k) == paid + head.amount,
            "the end of the budget",
        );
        check(head.time <= core.now(), "the head of the context that pays");
    }
    if let Some(top) = context.reply() {
        check(top.at(k).above() == Above::Context(handle), "a reply stack");
    }
}

/// Whether no refill begins before the end of the one before it.
fn in_order(refills: Refills) -> bool {
    let mut end = 0;
    refills.iter().all(|refill| {
        let is_behind = end <= refill.time;
        end = refill.time.saturating_add(refill.amount);
        is_behind
    })
}

fn require(k: &Kernel, holds: bool, what: &str) {
    use core::fmt::Write;
    if !holds {
        // The console cannot fail.
        let _ = writeln!(Console(&k.machine), "sandglass: {what} is inconsistent");
        k.machine.halt(INCONSISTENT);
    }
}

/// Whether the lists around the capability slots of `thread` are consistent.
fn is_consistent(k: &Kernel, thread: Ref<Tcb>) -> bool {
    use crate::object::tcb::TcbSlot::*;
    let mut slots = [CSpace, VSpace, Buffer, FaultHandler, TimeoutHandler].into_iter();
    let bound = thread.at(k).sched_context();
    slots.all(|slot| derivation::is_consistent(k, tcb_slot(thread, slot)))
        && bound.is_none_or(|context| context.at(k).thread() == Some(thread))
}
