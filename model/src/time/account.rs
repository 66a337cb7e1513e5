//! Who pays for what (04, sections 3, 6 and 9).

use sandglass_abi::sched::domain::DOMAINS;

use super::{readings, refills, schedule};
use crate::ipc::fault;
use crate::state::{ContextId, CoreId, SlotId, State, ThreadId, ThreadSlot, Ticks};

/// The clock is read on entry (04, section 3). From now on all whose time has come count as released
/// (docs, deliberate difference 8), on every core: there is one clock.
pub fn update_time(s: &mut State, now: Ticks) {
    pass(s, s.executing, now);
    schedule::release_due(s);
}

/// `core`, which the executing one has stalled, is at the time at which it left user code.
pub fn update_time_of(s: &mut State, core: CoreId) {
    pass(s, core, readings::left_user_code(s, core));
}

/// The core has waited for its turn for `ticks`, which nobody pays for. A context that is not sporadic
/// gets the rest of its head later by as much (docs, "Who pays for waiting").
pub fn wait(s: &mut State, ticks: Ticks) {
    if ticks == 0 {
        return;
    }
    let Some(context) = s.core().context else {
        return;
    };
    let core = s.core_mut();
    core.now += ticks;
    let c = s.context_mut(context);
    if !c.is_round_robin() && !c.sporadic {
        let time = c.refills[0].time + ticks;
        refills::start_head(c, time);
    }
    s.core_mut().deadline = schedule::deadline_of_late(s);
}

/// It is `now` on `core`. Idleness is nobody's (04, section 12).
fn pass(s: &mut State, core: CoreId, now: Ticks) {
    let core = &mut s.cores[core.0];
    if core.context.is_some() {
        core.consumed += now - core.now;
    }
    core.now = now;
}

/// Whether the current context of `core` can pay for this event. Idleness always can.
pub fn can_pay(s: &State, core: CoreId) -> bool {
    let used = s.cores[core.0].consumed;
    let context = s.cores[core.0].context;
    context.is_none_or(|context| s.contexts[&context].is_sufficient(used, s.clock))
}

/// Whether the current context of `core` can pay for this event; if not, it is charged (04,
/// section 6.1).
pub fn check_budget(s: &mut State, core: CoreId) -> bool {
    if can_pay(s, core) {
        return true;
    }
    if let Some(context) = s.cores[core.0].context {
        charge(s, core, context, s.cores[core.0].consumed, true);
    }
    false
}

/// The event is paid for, or what it means that it cannot be (see [`check_budget`]). If the turn of the domain is as good as
/// over, it is over from now on, and nothing else is charged (09, section 5): the event does not happen either. Returns whether
/// it does.
pub fn settle(s: &mut State) -> bool {
    let can_pay = check_budget(s, s.executing);
    if !is_turn_over(s) {
        return can_pay;
    }
    s.domains.end = 0;
    schedule::force_reschedule(s);
    false
}

/// Whether the turn of the domain is over, or no more is left of it than a refill has at least (04, section 3).
pub fn is_turn_over(s: &State) -> bool {
    DOMAINS > 1 && s.core().now + s.clock.min_budget() >= s.domains.end
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
