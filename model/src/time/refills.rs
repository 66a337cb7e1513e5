//! The refill algorithms (04, section 4), on one active scheduling context.
//!
//! Invariants between them, unless it is round-robin (04, section 2.3): the amounts add up to the
//! budget; refills are in order and do not overlap; the head has at least the least budget.
//! A round-robin context (period 0) has exactly two refills (04, section 2.5): what remains of the
//! slice, and what was used of it.

use crate::state::{Clock, Refill, SchedContext, Ticks};

/// At most so many refills of a context are used (docs, deliberate difference 9).
pub const MAX_REFILLS: u64 = 128;

/// A charge uses up at most so many refills; what is left of it is forgiven (docs, deliberate
/// difference 13).
pub const MAX_CHARGED: usize = 256;

impl Refill {
    /// When it would be used up, were it used from its start on without interruption.
    pub fn end(self) -> Ticks {
        self.time + self.amount
    }
}

impl SchedContext {
    /// Whether it was configured (04, section 2.4).
    pub fn is_active(&self) -> bool {
        self.max_refills > 0
    }

    /// Whether it is active and shares its priority by slices (04, section 2.5).
    pub fn is_round_robin(&self) -> bool {
        self.is_active() && self.period == 0
    }

    /// Whether the head can be used at `now` (04, section 2.4).
    pub fn is_ready(&self, now: Ticks) -> bool {
        self.refills[0].time <= now
    }

    /// Whether the head has the least budget left after `used` ticks of it (04, section 2.4).
    pub fn is_sufficient(&self, used: Ticks, clock: Clock) -> bool {
        self.refills[0]
            .amount
            .checked_sub(used)
            .is_some_and(|left| left >= clock.min_budget())
    }
}

/// `new` of 04, section 4: the whole `budget` is there now. A period of 0 means round-robin.
///
/// Preconditions: at least the least budget; `max_refills` at least 2.
pub fn new(context: &mut SchedContext, max_refills: u64, budget: Ticks, period: Ticks, now: Ticks) {
    configure(context, max_refills, period);
    context.refills = vec![Refill {
        amount: budget,
        time: now,
    }];
    if period == 0 {
        append_empty(context, now);
    }
}

/// `update` of 04, section 4: new parameters, and in the first period not more than the head had.
///
/// Preconditions: the context is active; at least the least budget.
pub fn update(
    context: &mut SchedContext,
    max_refills: u64,
    budget: Ticks,
    period: Ticks,
    now: Ticks,
) {
    let mut head = context.refills[0];
    configure(context, max_refills, period);
    head.time = head.time.max(now);
    let rest = budget.saturating_sub(head.amount);
    head.amount = head.amount.min(budget);
    context.refills = vec![head];
    if rest > 0 {
        context.refills.push(Refill {
            amount: rest,
            time: head.time + period,
        });
    } else if period == 0 {
        append_empty(context, now);
    }
}

fn configure(context: &mut SchedContext, max_refills: u64, period: Ticks) {
    context.max_refills = max_refills.min(MAX_REFILLS);
    context.period = period;
}

/// Nothing of the slice was used.
fn append_empty(context: &mut SchedContext, now: Ticks) {
    context.refills.push(Refill {
        amount: 0,
        time: now,
    });
}

/// `scheduleUsed` of 04, section 4: what was used comes back at `used.time`, or later if there is no
/// room for another refill, or with the last refill if that ends then or later.
///
/// Precondition: `used.time` is not before the last refill's.
pub fn schedule_used(context: &mut SchedContext, used: Refill) {
    let is_full = context.refills.len() as u64 >= context.max_refills;
    let tail = context
        .refills
        .last_mut()
        .expect("an active context has refills");
    if tail.end() >= used.time {
        tail.amount += used.amount;
    } else if !is_full {
        context.refills.push(used);
    } else {
        tail.time = used.time - tail.amount;
        tail.amount += used.amount;
    }
}

/// `budgetCheck` of 04, section 4: the first `used` ticks, in the order of the queue, come back one
/// period after the start of the refill that they came from.
///
/// Preconditions: not round-robin; the head is ready.
pub fn budget_check(context: &mut SchedContext, used: Ticks, clock: Clock) {
    let rest = charge_whole_refills(context, used, clock);
    charge_part_of_head(context, rest, clock);
    merge_small_heads(context, clock);
}

/// Step 1; returns what is left to charge.
fn charge_whole_refills(context: &mut SchedContext, used: Ticks, clock: Clock) -> Ticks {
    let mut rest = used;
    for _ in 0..MAX_CHARGED {
        let head = context.refills[0];
        if head.amount > rest || head.time >= clock.max_release() {
            break;
        }
        rest -= head.amount;
        let again = Refill {
            amount: head.amount,
            time: head.time + context.period,
        };
        if context.refills.len() == 1 {
            context.refills[0] = again;
        } else {
            context.refills.remove(0);
            schedule_used(context, again);
        }
    }
    rest
}

/// Step 2.
fn charge_part_of_head(context: &mut SchedContext, used: Ticks, clock: Clock) {
    let head = context.refills[0];
    let is_part = 0 < used && used < head.amount;
    if is_part && head.time < clock.max_release() {
        context.refills[0] = Refill {
            amount: head.amount - used,
            time: head.time + used,
        };
        let again = Refill {
            amount: used,
            time: head.time + context.period,
        };
        schedule_used(context, again);
    }
}

/// Step 3: a head that is too small to run on is joined to the next one, not to come earlier.
fn merge_small_heads(context: &mut SchedContext, clock: Clock) {
    while context.refills[0].amount < clock.min_budget() {
        let small = context.refills.remove(0);
        let head = &mut context.refills[0];
        head.amount += small.amount;
        head.time -= small.amount;
    }
}

/// `unblockCheck` of 04, section 4: what is ready is there from now on, in one piece. Returns
/// whether anything may have changed, so that the timer is to be programmed.
pub fn unblock_check(context: &mut SchedContext, now: Ticks) -> bool {
    if context.is_round_robin() || !context.is_ready(now) {
        return false;
    }
    start_head(context, now);
    true
}

/// The head starts at `time`, and what it reaches then is joined to it.
pub fn start_head(context: &mut SchedContext, time: Ticks) {
    context.refills[0].time = time;
    while context.refills.len() > 1 && context.refills[1].time <= context.refills[0].end() {
        let head = context.refills.remove(0);
        context.refills[0] = Refill {
            amount: head.amount + context.refills[0].amount,
            time: head.time,
        };
    }
}

/// Round-robin: `used` ticks of the slice are over (04, section 3).
pub fn use_slice(context: &mut SchedContext, used: Ticks) {
    let used = used.min(context.refills[0].amount);
    context.refills[0].amount -= used;
    context.refills[1].amount += used;
}

/// Round-robin: the slice is whole again (04, section 6.2).
pub fn renew_slice(context: &mut SchedContext) {
    context.refills[0].amount += context.refills[1].amount;
    context.refills[1].amount = 0;
}
