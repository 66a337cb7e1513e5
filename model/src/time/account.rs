//! Who pays for what (04, sections 3, 6 and 9).

use super::{refills, schedule};
use crate::ipc::fault;
use crate::state::{ContextId, CoreId, SlotId, State, ThreadId, ThreadSlot, Ticks};

/// The clock is read on entry (04, section 3). From now on all whose time has come count as released
/// (docs, deliberate difference 8), on every core: there is one clock.
pub fn update_time(s: &mut State, now: Ticks) {
    pass(s, s.executing, now);
    schedule::release_due(s);
}

/// `core`, which the executing one is about to stall, is at the time of this event too.
pub fn update_time_of(s: &mut State, core: CoreId) {
    pass(s, core, s.core().now);
}

/// It is `now` on `core`. Idleness is nobody's (04, section 12).
fn pass(s: &mut State, core: CoreId, now: Ticks) {
    let core = &mut s.cores[core.0];
    if core.context.is_some() {
        core.consumed += now - core.now;
    }
    core.now = now;
}

/// Whether the current context of `core` can pay for this event; if not, it is charged (04,
/// section 6.1). Idleness always can.
pub fn check_budget(s: &mut State, core: CoreId) -> bool {
    let Some(context) = s.cores[core.0].context else {
        return true;
    };
    let used = s.cores[core.0].consumed;
    if s.contexts[&context].is_sufficient(used, s.clock) {
        return true;
    }
    charge(s, core, context, used, true);
    false
}

/// `context`, the current one of `core`, is charged `used` ticks of its refills, or its slice is
/// renewed; what it consumed it has paid for (04, section 6.2).
fn charge(s: &mut State, core: CoreId, context: ContextId, used: Ticks, can_fault: bool) {
    let (clock, consumed) = (s.clock, s.cores[core.0].consumed);
    let c = s.context_mut(context);
    if c.is_round_robin() {
        refills::renew_slice(c);
    } else {
        refills::budget_check(c, used, clock);
    }
    c.consumed += consumed;
    s.cores[core.0].consumed = 0;
    let thread = s.cores[core.0].thread;
    if let Some(thread) = thread.filter(|&t| schedule::is_schedulable(s, t)) {
        end_timeslice(s, thread, context, can_fault);
        schedule::reconsider(s, thread);
        s.cores[core.0].reprogram = true;
    }
}

/// The turn of `thread`, the current one of its core, is over (04, section 6.3).
fn end_timeslice(s: &mut State, thread: ThreadId, context: ContextId, can_fault: bool) {
    let c = &s.contexts[&context];
    if can_fault && !c.is_round_robin() && has_timeout_handler(s, thread) {
        fault::raise_timeout(s, thread);
    } else if can_run(s, context) {
        schedule::append(s, thread);
    } else {
        schedule::postpone(s, context);
    }
}

/// Whether `context`, which is active, has enough budget now (04, section 2.4: ready and
/// sufficient for 0).
pub fn can_run(s: &State, context: ContextId) -> bool {
    let c = &s.contexts[&context];
    c.is_ready(s.core().now) && c.is_sufficient(0, s.clock)
}

/// Whether the slot of the timeout handler is not empty (05, section 4).
pub fn has_timeout_handler(s: &State, thread: ThreadId) -> bool {
    let slot = SlotId::Thread(thread, ThreadSlot::TimeoutHandler);
    s.caps.slots.contains_key(&slot)
}

/// The current context of `core` pays what was consumed (04, section 3). One that is not active any
/// more, or was deleted, pays nothing.
pub fn commit(s: &mut State, core: CoreId) {
    let core = &mut s.cores[core.0];
    let (clock, consumed) = (s.clock, std::mem::take(&mut core.consumed));
    let Some(c) = core.context.and_then(|id| s.contexts.get_mut(&id)) else {
        return;
    };
    if !c.is_active() {
        return;
    }
    if c.is_round_robin() {
        refills::use_slice(c, consumed);
    } else if consumed > 0 {
        refills::budget_check(c, consumed, clock);
    }
    c.consumed += consumed;
}

/// The current thread gives up the rest of its head refill or slice (04, section 9.1).
pub fn yield_rest(s: &mut State) {
    if let Some(context) = s.core().context {
        let whole = s.contexts[&context].refills[0].amount;
        charge(s, s.executing, context, whole, false);
    }
}

/// Time in microseconds that `context` consumed since the last report, which this is (04,
/// section 9.3).
pub fn report_consumed(s: &mut State, context: ContextId) -> u64 {
    let consumed = std::mem::take(&mut s.context_mut(context).consumed);
    s.clock.us(consumed)
}
