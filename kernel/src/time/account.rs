//! Who pays for what (04, sections 3 and 6).
//!
//! The clock is read on entry. What has passed since the current context last paid is committed or
//! charged to it. Until then its head refill stays as it is; so whether it suffices is a comparison
//! with the time at which it ends.
//!
//! Long operations, and those that had another core leave user code, read the clock again. The result
//! of the check on entry is then out of date, so reading the clock again reports whether the budget still
//! suffices; if not, the event ends there, as that of a preempted operation, before it does anything more
//! ([`Preempted`]). Therefore the context that pays has a head that may be used, and suffices, from
//! the entry to the end of every event that was let in.

use super::{schedule, Turn};
use crate::arch::Platform;
use crate::cores::CORES;
use crate::mem::Ref;
use crate::object::{Core, SchedContext, Tcb, DOMAINS};
use crate::time::Refills;
use crate::{Kernel, View};

/// An operation stops here, and its system call is to be executed again: the clock was read again within
/// the event, and the budget does not last any more, or somebody else is to be let in (04, section 6.4). What
/// the next execution needs to know is in the objects, or left with the caller
/// ([`Tcb::leave_progress`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preempted;

/// Whether the current context of a core can pay for an event and what came before.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charge {
    /// And its head refill has the least budget left.
    Paid,
    Exhausted,
}

/// Reads the clock of `core`, which executes the kernel, on entry to it.
#[inline(always)]
pub fn update_time(k: &Kernel, core: &Core) {
    let now = k.machine.now();
    core.set_now(k, now);
}

/// Checks the budget of the current context of `core` (04, section 6.1). Idleness always pays.
pub fn check_budget(core: &Core) -> Charge {
    if core.now() <= core.pays_until() {
        Charge::Paid
    } else {
        Charge::Exhausted
    }
}

/// Whether the turn of the domain that runs is as good as over: no more than the least budget is left of it (04, section 3).
/// With one domain, it never is.
#[inline(always)]
pub fn domain_is_over(k: &View) -> bool {
    DOMAINS > 1 && k.core().now() + k.constants.min_budget() >= k.domains.end()
}

/// The current thread gives up what is left of its head refill or slice (04, section 9.1). What is
/// given up was not consumed. If nobody else could run at its priority it goes on.
#[inline(never)]
pub fn yield_rest(k: &Kernel, turn: &Turn) {
    let core = k.core();
    let (Some(thread), Some(handle)) = (core.thread(), core.context()) else {
        return;
    };
    give_up(k, core, handle);
    if !(Refills::of(k, handle).usable() && schedule::is_alone(k, core, thread)) {
        end_turn(k, turn, thread, handle);
    }
}

/// What is left of the head refill or slice of `handle`, the current context of `core`, is given up.
#[inline(always)]
pub fn give_up(k: &Kernel, core: &Core, handle: Ref<SchedContext>) {
    let context = handle.at(k);
    let consumed = core.consumed();
    pay(k, core, handle, context.head().amount.max(consumed));
    context.add_consumed(k, consumed);
}

/// The turn of `thread`, the current one of its core, is over: it goes behind its equals, or waits
/// for its next refill (04, sections 6.2 and 6.3).
pub fn end_turn(k: &Kernel, turn: &Turn, thread: Ref<Tcb>, handle: Ref<SchedContext>) {
    if Refills::of(k, handle).usable() {
        k.queues(thread).ready.append(k, thread, k.core().now());
    } else {
        schedule::postpone(k, handle);
    }
    turn.reconsider(k, thread);
}

/// Charges `used` ticks to `handle`, the current context of `core` (04, section 6.2).
#[inline(always)]
pub fn charge(k: &Kernel, core: &Core, handle: Ref<SchedContext>, used: u64) {
    pay(k, core, handle, used);
    handle.at(k).add_consumed(k, used);
}

/// The turn of `handle`, the current context of `core`, is over after `used` ticks: a round-robin
/// context starts its next slice, another is charged.
#[inline(always)]
fn pay(k: &Kernel, core: &Core, handle: Ref<SchedContext>, used: u64) {
    trace!(k, charge(core, handle, core.consumed(), used));
    let refills = Refills::of(k, handle);
    if handle.at(k).period() == 0 {
        refills.renew_slice();
    } else {
        refills.charge(used);
    }
    core.set_paid(k);
    core.request_reprogram(k);
}

/// The current context of `core`, which is active, pays what was consumed since it last paid
/// (04, section 3). It could pay on entry, so its head has more than that.
#[inline(always)]
pub fn commit(k: &Kernel, core: &Core) {
    let used = core.consumed();
    core.set_paid(k);
    let Some(handle) = core.context() else { return };
    trace!(k, charge(core, handle, used, used));
    let (context, refills) = (handle.at(k), Refills::of(k, handle));
    if context.period() == 0 {
        refills.spend_slice(used);
    } else {
        refills.charge_part(used);
    }
    context.add_consumed(k, used);
}

/// The time consumed by a context since the last report, in microseconds; the count starts anew
/// (04, section 9.3).
pub fn report_consumed(k: &Kernel, context: Ref<SchedContext>) -> u64 {
    let ticks = context.at(k).take_consumed(k);
    k.constants.us(ticks)
}

/// Reads the clock within an event.
///
/// # Errors
/// The budget of the current context, which has not paid since the entry, or its domain's turn is over:
/// nothing more may be done.
#[inline(never)] // Rarely needed, in many places.
pub fn read_clock_again(k: &Kernel) -> Result<(), Preempted> {
    let core = k.core();
    update_time(k, core);
    match check_budget(core) {
        Charge::Paid if !domain_is_over(k) => Ok(()),
        _ => Err(Preempted),
    }
}

/// A preemption point of a long operation (01, section 8). Only one that has more to do may pass it.
///
/// # Errors
/// It must stop here.
#[inline(never)]
pub fn preemption_point(k: &Kernel) -> Result<(), Preempted> {
    read_clock_again(k)?;
    // Work on nobody's time, because it took away the context it was on, does not go on.
    let stops = k.core().context().is_none()
        || k.machine.interrupt_pending()
        || CORES > 1 && k.machine.others_wait();
    if stops {
        Err(Preempted)
    } else {
        Ok(())
    }
}

/// This core has waited for its turn since `since`, in ticks: nobody pays for that. A context that is
/// not sporadic gets the rest of its budget later by as much, as if it had been preempted, so that
/// it runs in no window for longer than it would have; a sporadic one keeps its times.
#[cold]
#[inline(never)]
pub fn waited(k: &Kernel, since: u64) {
    let core = k.core();
    let ticks = k.machine.now() - since;
    core.stand_still(k, ticks);
    let Some(handle) = core.context() else { return };
    let refills = Refills::of(k, handle);
    if handle.at(k).period() != 0 && !handle.at(k).is_sporadic() {
        refills.delay(ticks);
    }
    core.set_context(k, Some((handle, refills.head().amount)));
    // The budget ends later now, and so the timer fires. Nothing is paid for that: it would cut budgets
    // into pieces at the will of whoever makes others wait.
    schedule::arm(k);
}
