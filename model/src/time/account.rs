//! Who pays for what (04, sections 3, 6 and 9).

use super::{refills, schedule};
use crate::ipc::fault;
use crate::state::{ContextId, SlotId, State, ThreadId, ThreadSlot, Ticks};

/// The clock is read on entry (04, section 3). From now on all whose time has come count as released
/// (docs, deliberate difference 5). Idleness is nobody's (04, section 12).
pub fn update_time(s: &mut State, now: Ticks) {
    if s.core.context.is_some() {
        s.core.consumed += now - s.core.now;
    }
    s.core.now = now;
    schedule::release_due(s);
}

/// Whether the current context can pay for this event; if not, it is charged (04, section 6.1).
/// Idleness always can.
pub fn check_budget(s: &mut State) -> bool {
    let Some(context) = s.core.context else {
        return true;
    };
    let used = s.core.consumed;
    if s.contexts[&context].is_sufficient(used, s.clock) {
        return true;
    }
    charge(s, context, used, true);
    false
}

/// `context`, the current one, is charged `used` ticks of its refills, or its slice is renewed; what
/// it consumed it has paid for (04, section 6.2).
fn charge(s: &mut State, context: ContextId, used: Ticks, can_fault: bool) {
    let (clock, consumed) = (s.clock, s.core.consumed);
    let c = s.context_mut(context);
    if c.is_round_robin() {
        refills::renew_slice(c);
    } else {
        refills::budget_check(c, used, clock);
    }
    c.consumed += consumed;
    s.core.consumed = 0;
    if let Some(thread) = s.core.thread.filter(|&t| schedule::is_schedulable(s, t)) {
        end_timeslice(s, thread, context, can_fault);
        schedule::force_reschedule(s);
        s.core.reprogram = true;
    }
}

/// The turn of `thread`, the current one, is over (04, section 6.3).
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
    c.is_ready(s.core.now) && c.is_sufficient(0, s.clock)
}

/// Whether the slot of the timeout handler is not empty (05, section 4).
pub fn has_timeout_handler(s: &State, thread: ThreadId) -> bool {
    let slot = SlotId::Thread(thread, ThreadSlot::TimeoutHandler);
    s.caps.slots.contains_key(&slot)
}

/// The current context pays what was consumed (04, section 3). One that is not active any more, or
/// was deleted, pays nothing.
pub fn commit(s: &mut State) {
    let (clock, consumed) = (s.clock, std::mem::take(&mut s.core.consumed));
    let Some(c) = s.core.context.and_then(|id| s.contexts.get_mut(&id)) else {
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
    if let Some(context) = s.core.context {
        let whole = s.contexts[&context].refills[0].amount;
        charge(s, context, whole, false);
    }
}

/// Time in microseconds that `context` consumed since the last report, which this is (04,
/// section 9.3).
pub fn report_consumed(s: &mut State, context: ContextId) -> u64 {
    let consumed = std::mem::take(&mut s.context_mut(context).consumed);
    s.clock.us(consumed)
}
