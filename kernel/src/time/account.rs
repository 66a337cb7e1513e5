//! Who pays for what (04, sections 3 and 6).
//!
//! The clock is read once, on entry. What has passed since the current context last paid is
//! committed or charged to it. Until then its head refill stays as it is; so whether it suffices
//! is a comparison with the time at which it ends.

use super::schedule;
use crate::arch::Platform;
use crate::cap::EndpointCap;
use crate::mem::Ref;
use crate::object::sched_context::SchedContext;
use crate::object::tcb::{self, Tcb, TcbSlot};
use crate::time::refills::Refills;
use crate::Kernel;

/// What a budget check found.
#[must_use]
#[derive(Clone, Copy)]
pub enum Budget {
    /// The event may proceed.
    Sufficient,
    /// The current thread was charged and does not go on now.
    Exhausted(Expiry),
}

/// What is to be done about a thread whose time is up.
#[must_use]
#[derive(Clone, Copy)]
pub enum Expiry {
    /// It waits for its next refill or its next turn.
    Waits,
    /// A timeout fault is to be raised on it: its handler is to be told.
    TimeoutFault(Ref<Tcb>, EndpointCap),
}

/// Reads the clock, on entry to the kernel.
#[inline(always)]
pub fn update_time(k: &Kernel) {
    let core = k.core();
    let now = k.machine.now();
    let passed = now.wrapping_sub(core.now());
    core.set_now(now);
    k.domains.pass(passed, k.constants.min_budget());
}

/// Whether the head refill of the current context has the least budget left; idleness always has.
#[inline(always)]
fn has_budget(k: &Kernel) -> bool {
    let core = k.core();
    core.now().wrapping_add(k.constants.min_budget()) <= core.budget_end()
}

/// Whether the current context can pay for this event and what came before; if not, it is charged
/// (04, section 6.1). Idleness always can.
#[inline(always)]
pub fn check_budget(k: &Kernel) -> Budget {
    if !has_budget(k) {
        return Budget::Exhausted(charge(k, k.core().consumed(), true));
    }
    if k.domains.expired() {
        schedule::force_reschedule(k);
        return Budget::Exhausted(Expiry::Waits);
    }
    Budget::Sufficient
}

/// The current thread gives up what is left of its head refill or slice (04, section 9.1). What is
/// given up was not consumed. If nobody else could run at its priority it goes on.
pub fn yield_rest(k: &Kernel) {
    let core = k.core();
    let (Some(thread), Some(handle)) = (core.thread(), core.context()) else {
        return;
    };
    let context = handle.at(k);
    let consumed = core.consumed();
    pay(k, handle, context.head().amount.max(consumed));
    context.add_consumed(consumed);
    if !(Refills::of(k, handle).usable() && schedule::is_alone(k, thread)) {
        let _ = end_turn(k, thread, false);
    }
}

/// The turn of `context`, the current one, is over after `used` ticks: a round-robin context
/// starts its next slice, another is charged.
#[inline(always)]
fn pay(k: &Kernel, handle: Ref<SchedContext>, used: u64) {
    let refills = Refills::of(k, handle);
    if handle.at(k).period() == 0 {
        refills.renew_slice();
    } else {
        refills.charge(used);
    }
    k.core().set_paid();
    k.core().request_reprogram();
}

/// Charges `used` ticks to the current context and ends the current thread's turn
/// (04, section 6.2).
pub fn charge(k: &Kernel, used: u64, can_fault: bool) -> Expiry {
    let core = k.core();
    if let Some(handle) = core.context() {
        pay(k, handle, used);
        handle.at(k).add_consumed(used);
    }
    match core.thread() {
        Some(thread) if schedule::is_schedulable(k, thread) => end_turn(k, thread, can_fault),
        _ => Expiry::Waits,
    }
}

/// The turn of `thread`, the current one, is over (04, section 6.3).
fn end_turn(k: &Kernel, thread: Ref<Tcb>, can_fault: bool) -> Expiry {
    let Some(context) = thread.at(k).sched_context() else {
        return Expiry::Waits;
    };
    let handler = match can_fault && context.at(k).period() != 0 {
        true => tcb::handler(k, thread, TcbSlot::TimeoutHandler),
        false => None,
    };
    let expiry = match handler {
        Some(handler) => Expiry::TimeoutFault(thread, handler),
        None => {
            if Refills::of(k, context).usable() {
                k.core().ready.append(k, thread);
            } else {
                schedule::postpone(k, context);
            }
            Expiry::Waits
        }
    };
    schedule::force_reschedule(k);
    expiry
}

/// The current context, which is active, pays what was consumed since it last paid
/// (04, section 3).
#[inline(always)]
pub fn commit(k: &Kernel) {
    let core = k.core();
    let used = core.consumed();
    core.set_paid();
    let Some(handle) = core.context() else { return };
    let context = handle.at(k);
    let refills = Refills::of(k, handle);
    if context.period() == 0 {
        refills.spend_slice(used);
    } else if used > 0 {
        refills.charge(used);
    }
    context.add_consumed(used);
}

/// The time consumed by a context since the last report, in microseconds; the count starts anew
/// (04, section 9.3).
pub fn report_consumed(k: &Kernel, context: Ref<SchedContext>) -> u64 {
    k.constants.us(context.at(k).take_consumed())
}

/// A long operation was preempted: what has been used is checked and charged
/// (04, section 6.4).
pub fn preempted(k: &Kernel) -> Budget {
    let core = k.core();
    match core.thread() {
        Some(thread) if schedule::is_schedulable(k, thread) => check_budget(k),
        _ => {
            let _ = charge(k, core.consumed(), false);
            Budget::Sufficient
        }
    }
}

/// Whether a long operation must stop at a preemption point (01, section 8).
pub fn should_preempt(k: &Kernel) -> bool {
    update_time(k);
    let core = k.core();
    // Work on nobody's time, because it took away the context it was on, does not go on.
    core.context().is_none()
        || !has_budget(k)
        || k.domains.expired()
        || k.machine.interrupt_pending()
}
