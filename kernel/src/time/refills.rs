//! The refills of a scheduling context (04, sections 2 and 4; thesis, appendix B, as corrected by
//! 08, section 2).
//!
//! A context's budget is spread over a queue of refills: amounts of time, each usable from a
//! certain instant on. What is used comes back one period after the start of the refill it came
//! from, so in any window of one period at most the budget is used.
//!
//! Invariants of an active context that is not round-robin, between operations: the amounts add
//! up to the budget; refills are disjoint and in order; the head has at least the minimum budget.

use ::core::cell::Cell;

use crate::mem::{self, Ref};
use crate::object::sched_context::SchedContext;
use crate::Kernel;

/// An amount of processor time that may be used from a certain time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Refill {
    /// Ticks.
    pub amount: u64,
    /// Tick from which on it may be used.
    pub time: u64,
}

impl Refill {
    /// Most refills of one context that the kernel uses, so that no loop is under the control of
    /// whoever configures contexts (design, section 6).
    pub const MAX: u8 = 128;

    /// One tick after the refill, were it used without interruption.
    const fn end(self) -> u64 {
        self.time.saturating_add(self.amount)
    }
}

const _: () = assert!(size_of::<Refill>() as u64 == sandglass_abi::sched::REFILL_SIZE);

/// Bound of the loop over refills that a charge used up. A charge is at most the head, since the
/// timer fires at its end, and the longest kernel path, which is less than the least budget; so
/// it can use up every refill once, and the first of them a second time.
const MAX_CHARGED: u16 = 2 * Refill::MAX as u16;

/// A view of the refill queue of one context.
#[derive(Clone, Copy)]
pub struct Refills<'k> {
    k: &'k Kernel,
    handle: Ref<SchedContext>,
    context: &'k SchedContext,
}

impl<'k> Refills<'k> {
    #[inline(always)]
    pub fn of(k: &'k Kernel, handle: Ref<SchedContext>) -> Self {
        Refills {
            k,
            handle,
            context: handle.at(k),
        }
    }

    /// The refill `i` places behind the head; `None` past the end of the array.
    #[inline(always)]
    fn cell(self, i: u8) -> Option<&'k Cell<Refill>> {
        let index = self.context.head().wrapping_add(i);
        let limit = self.context.max_refills();
        mem::refill(
            self.k,
            self.handle,
            if index >= limit {
                index.wrapping_sub(limit)
            } else {
                index
            },
        )
    }

    #[inline(always)]
    fn get(self, i: u8) -> Refill {
        self.cell(i).map_or(Refill::default(), Cell::get)
    }

    #[inline(always)]
    fn set(self, i: u8, refill: Refill) {
        if let Some(cell) = self.cell(i) {
            cell.set(refill);
        }
    }

    /// Number of refills in the queue.
    #[inline(always)]
    pub fn count(self) -> u8 {
        self.context.count()
    }

    /// The refill in use, or next to be used.
    #[inline(always)]
    pub fn head(self) -> Refill {
        self.get(0)
    }

    #[inline(always)]
    fn set_head(self, refill: Refill) {
        self.set(0, refill);
    }

    fn tail(self) -> Refill {
        self.get(self.count().wrapping_sub(1))
    }

    fn set_tail(self, refill: Refill) {
        self.set(self.count().wrapping_sub(1), refill);
    }

    fn pop(self) -> Refill {
        let head = self.head();
        let next = self.context.head().wrapping_add(1);
        self.context
            .set_head(if next >= self.context.max_refills() {
                0
            } else {
                next
            });
        self.context.set_count(self.count().wrapping_sub(1));
        head
    }

    fn append(self, refill: Refill) {
        let count = self.count();
        self.context.set_count(count.wrapping_add(1));
        self.set(count, refill);
    }

    fn is_full(self) -> bool {
        self.count() >= self.context.max_refills()
    }

    /// All refills, from the head on.
    pub fn iter(self) -> impl Iterator<Item = Refill> + 'k {
        (0..self.count()).map(move |i| self.get(i))
    }

    /// Whether the head may be used now.
    #[inline(always)]
    pub fn ready(self) -> bool {
        self.head().time <= self.k.core().now()
    }

    /// Whether the head has the least budget left after `used` ticks: the one function that
    /// decides budget sufficiency.
    #[inline(always)]
    pub fn sufficient(self, used: u64) -> bool {
        match self.head().amount.checked_sub(used) {
            Some(rest) => rest >= self.k.constants.min_budget(),
            None => false,
        }
    }

    /// Starts with the whole `budget` usable now; a `period` of 0 means round-robin. At least the
    /// minimum budget; `max` from 2 on. All in ticks.
    pub fn start(self, max: u8, budget: u64, period: u64) {
        let now = self.k.core().now();
        self.context.configure(period, max);
        self.context.set_head(0);
        self.context.set_count(0);
        self.append(Refill {
            amount: budget,
            time: now,
        });
        if period == 0 {
            self.append(Refill {
                amount: 0,
                time: now,
            });
        }
    }

    /// Changes the parameters of an active context and keeps its history: of the new `budget`
    /// (ticks, at least the minimum) no more than the head had is usable in the first period.
    pub fn update(self, max: u8, budget: u64, period: u64) {
        let mut head = self.head();
        self.context.configure(period, max);
        self.context.set_head(0);
        self.context.set_count(0);
        if head.time <= self.k.core().now() {
            head.time = self.k.core().now();
        }
        let rest = budget.saturating_sub(head.amount);
        head.amount = head.amount.min(budget);
        self.append(head);
        if rest > 0 {
            self.append(Refill {
                amount: rest,
                time: head.time.saturating_add(period),
            });
        } else if period == 0 {
            self.append(Refill {
                amount: 0,
                time: head.time,
            });
        }
    }

    /// Schedules used time to come back at `used.time`, which is not before the tail's.
    fn schedule_used(self, used: Refill) {
        let tail = self.tail();
        if tail.end() >= used.time {
            self.set_tail(Refill {
                amount: tail.amount.wrapping_add(used.amount),
                ..tail
            });
        } else if !self.is_full() {
            self.append(used);
        } else {
            self.set_tail(Refill {
                amount: tail.amount.wrapping_add(used.amount),
                time: used.time.wrapping_sub(tail.amount),
            });
        }
    }

    /// Charges `used` ticks to the context, which is not round-robin: the first `used` ticks of
    /// its queue move to one period after the start of the refill that they came from.
    pub fn charge(self, used: u64) {
        let rest = self.charge_whole(used);
        let head = self.head();
        if rest > 0 && head.time < self.k.constants.max_release() {
            self.set_head(Refill {
                amount: head.amount.saturating_sub(rest),
                time: head.time.wrapping_add(rest),
            });
            let time = head.time.wrapping_add(self.context.period());
            self.schedule_used(Refill { amount: rest, time });
        }
        self.merge_small_head();
    }

    /// Charges whole refills as far as `used` covers them; returns the rest in ticks.
    fn charge_whole(self, used: u64) -> u64 {
        let period = self.context.period();
        let mut rest = used;
        for _ in 0..MAX_CHARGED {
            let head = self.head();
            if head.amount > rest || head.time >= self.k.constants.max_release() {
                break;
            }
            rest -= head.amount;
            let time = head.time.wrapping_add(period);
            if self.count() == 1 {
                self.set_head(Refill {
                    amount: head.amount,
                    time,
                });
            } else {
                let _ = self.pop();
                self.schedule_used(Refill {
                    amount: head.amount,
                    time,
                });
            }
        }
        rest
    }

    /// Joins refills to the head until it has the least budget, delaying what comes too early.
    fn merge_small_head(self) {
        for _ in 0..Refill::MAX {
            if self.count() < 2 || self.head().amount >= self.k.constants.min_budget() {
                break;
            }
            let small = self.pop();
            let head = self.head();
            self.set_head(Refill {
                amount: head.amount.wrapping_add(small.amount),
                time: head.time.wrapping_sub(small.amount),
            });
        }
    }

    /// The context was not in use: what is ready starts anew from now on. Returns whether
    /// anything may have changed, so that the timer is to be programmed again.
    pub fn unblock(self) -> bool {
        if self.context.is_round_robin() || !self.ready() {
            return false;
        }
        let now = self.k.core().now();
        self.set_head(Refill {
            time: now,
            ..self.head()
        });
        for _ in 0..Refill::MAX {
            if self.count() < 2 || self.get(1).time > self.head().end() {
                break;
            }
            let first = self.pop();
            let head = self.head();
            self.set_head(Refill {
                amount: head.amount.wrapping_add(first.amount),
                time: first.time,
            });
        }
        true
    }

    /// Round-robin: `used` ticks of the head move to the tail.
    pub fn spend_slice(self, used: u64) {
        let head = self.head();
        let tail = self.tail();
        let used = used.min(head.amount);
        self.set_head(Refill {
            amount: head.amount - used,
            ..head
        });
        self.set_tail(Refill {
            amount: tail.amount.wrapping_add(used),
            ..tail
        });
    }

    /// Round-robin: the slice is over, the next one is full.
    pub fn renew_slice(self) {
        let head = self.head();
        let tail = self.tail();
        self.set_head(Refill {
            amount: head.amount.wrapping_add(tail.amount),
            ..head
        });
        self.set_tail(Refill { amount: 0, ..tail });
    }
}
