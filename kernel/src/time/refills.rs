//! The refills of a scheduling context (04, sections 2 and 4; thesis, appendix B, as corrected by
//! 08, section 2).
//!
//! A context's budget is spread over a queue of refills: amounts of time, each usable from a
//! certain instant on. What is used comes back one period after the start of the refill it came
//! from, so in any window of one period at most the budget is used.
//!
//! Invariants of an active context that is not round-robin, between operations: the amounts add
//! up to the budget; refills are disjoint and in order; the head has at least the minimum budget.
//!
//! A round-robin context has two refills by the ABI (04, section 2.5): the head, what is left of
//! the slice, and one of what was used, which has no time of its own. The second is a number in
//! the context, not in the queue.

use ::core::cell::Cell;

use crate::arch::bounds::{Together, Turns};
use crate::mem::{objects, Ref};
use crate::object::{Refill, SchedContext};
use crate::Kernel;

/// Bound of the loop over refills that a charge used up. A charge is at most the head, since the
/// timer fires before its end, and the longest kernel path, which is less than the least budget; so
/// it can use up every refill once, and the first of them a second time. Only a machine that stood
/// still while its clock went on (a virtual one that was paused) has larger charges: what exceeds
/// the bound is forgiven.
const MAX_CHARGED: u16 = 2 * Refill::MAX as u16;

/// What is left of `head` when `used` ticks of it are used, and the refill that gives them back.
#[inline(always)]
fn split(head: Refill, used: u64, period: u64) -> (Refill, Refill) {
    let Refill { amount, time } = head;
    let rest = Refill::new(amount - used, time + used);
    (rest, Refill::new(used, time + period))
}

/// The refills of a context while an operation goes through them: the head, and what follows it in the ring.
struct Queue<'k> {
    refills: Refills<'k>,
    ring: &'k [Cell<Refill>],
    head: Refill,
    /// Place of the refill that follows the head, and how many do.
    first: usize,
    queued: usize,
    /// Place of the last of them, and the last refill itself: the head if nothing follows it.
    last: usize,
    tail: Refill,
}

impl<'k> Queue<'k> {
    #[inline(always)]
    fn of(refills: Refills<'k>) -> Self {
        let context = refills.context();
        let ring = objects::refills(refills.k, refills.handle);
        let (first, queued) = (context.first().into(), context.queued().into());
        let last = usize::wrapping_sub(first + queued, 1);
        let last = last.min(last.wrapping_sub(ring.len()));
        let head = context.head();
        let tail = ring.get(last).filter(|_| queued > 0);
        Queue {
            refills,
            ring,
            head,
            first,
            queued,
            last,
            tail: tail.map_or(head, Cell::get),
        }
    }

    #[inline(always)]
    fn store(self) {
        let (k, context) = (self.refills.k, self.refills.context());
        context.set_head(k, self.head);
        context.set_first(k, self.first as u8);
        context.set_queued(k, self.queued as u8);
    }

    /// The place behind `place`, around the ring.
    #[inline(always)]
    fn after(&self, place: usize) -> usize {
        let next = place.wrapping_add(1);
        if next < self.ring.len() {
            next
        } else {
            0
        }
    }

    /// Takes the refill that follows the head, if there is one.
    #[inline(always)]
    fn take_second(&mut self) -> Option<Refill> {
        let second = self.ring.get(self.first).filter(|_| self.queued > 0)?;
        self.first = self.after(self.first);
        self.queued -= 1;
        Some(second.get())
    }

    /// The head is used up: it comes back one period later, at the end of the queue.
    #[inline(always)]
    fn use_head(&mut self, period: u64) {
        let again = Refill::new(self.head.amount, self.head.time + period);
        trace!(self.refills.k, refill(self.refills.handle, again));
        match self.take_second() {
            None => (self.head, self.tail) = (again, again),
            Some(second) => {
                self.head = second;
                self.schedule_used(again, true);
            }
        }
    }

    /// `used` ticks of the head, which has more, are used.
    #[inline(always)]
    fn use_part(&mut self, used: u64, period: u64) {
        if used == 0 || self.head.time >= self.refills.k.constants.max_release() {
            return;
        }
        let (rest, again) = split(self.head, used, period);
        self.head = rest;
        if self.queued == 0 {
            self.tail = rest;
        }
        trace!(self.refills.k, refill(self.refills.handle, again));
        let places = self.refills.context().max_refills().into();
        self.schedule_used(again, self.queued + 1 < places);
    }

    /// Schedules used time to come back at `used.time`, which is not before the last refill's; whether there is room for
    /// another refill.
    #[inline(always)]
    fn schedule_used(&mut self, used: Refill, has_room: bool) {
        if self.tail.end() >= used.time {
            self.tail.amount += used.amount;
        } else if has_room {
            self.last = match self.queued {
                0 => self.first,
                _ => self.after(self.last),
            };
            self.queued += 1;
            self.tail = used;
        } else {
            let time = used.time - self.tail.amount;
            self.tail = Refill::new(self.tail.amount + used.amount, time);
        }
        if self.queued == 0 {
            self.head = self.tail;
        } else if let Some(last) = self.ring.get(self.last) {
            last.set(self.tail);
        }
    }
}

/// A view of the refill queue of one context: the head in the context itself, what follows it in
/// a ring behind the context.
#[derive(Clone, Copy)]
pub struct Refills<'k> {
    k: &'k Kernel,
    handle: Ref<SchedContext>,
}

impl<'k> Refills<'k> {
    pub fn of(k: &'k Kernel, handle: Ref<SchedContext>) -> Self {
        Refills { k, handle }
    }

    fn context(self) -> &'k SchedContext {
        self.handle.at(self.k)
    }

    /// The place `i` behind that of the refill that follows the head.
    fn behind(self, i: u8) -> &'k Cell<Refill> {
        objects::refill(self.k, self.handle, self.context().first() + i)
    }

    /// The refill that follows the head, if there is one.
    #[inline(always)]
    fn second(self) -> Option<Refill> {
        (self.context().queued() > 0).then(|| self.behind(0).get())
    }

    /// Number of refills in the queue, the head included.
    pub fn count(self) -> u8 {
        self.context().queued() + 1
    }

    /// The refill in use, or next to be used.
    pub fn head(self) -> Refill {
        self.context().head()
    }

    fn set_head(self, refill: Refill) {
        self.context().set_head(self.k, refill);
    }

    /// Makes `head` the only refill.
    fn reset(self, head: Refill) {
        self.set_head(head);
        self.context().set_slice_used(self.k, 0);
        self.context().set_first(self.k, 0);
        self.context().set_queued(self.k, 0);
    }

    /// All refills, from the head on.
    pub fn iter(self) -> impl Iterator<Item = Refill> + 'k {
        let queued = (0..self.context().queued()).map(move |i| self.behind(i).get());
        core::iter::once(self.head()).chain(queued)
    }

    /// Whether the head may be used now.
    pub fn ready(self) -> bool {
        self.head().time <= self.k.core().now()
    }

    /// Whether the head may be used now and has the least budget.
    pub fn usable(self) -> bool {
        self.ready() && self.head().amount >= self.k.constants.min_budget()
    }

    /// Starts with the whole `budget` usable now; a `period` of 0 means round-robin. At least the
    /// minimum budget; `max` from 2 on. All in ticks.
    pub fn start(self, max: u8, budget: u64, period: u64) {
        let now = self.k.core().now();
        self.context().configure(self.k, period, max);
        self.reset(Refill::new(budget, now));
    }

    /// Changes the parameters of an active context and keeps its history: of the new `budget`
    /// (ticks, at least the minimum, less than `period`) no more than the head had is usable in
    /// the first period.
    pub fn update(self, max: u8, budget: u64, period: u64) {
        let mut head = self.head();
        self.context().configure(self.k, period, max);
        head.time = head.time.max(self.k.core().now());
        let rest = budget.saturating_sub(head.amount);
        head.amount = head.amount.min(budget);
        self.reset(head);
        if rest > 0 {
            self.behind(0)
                .set(Refill::new(rest, head.time.saturating_add(period)));
            self.context().set_queued(self.k, 1);
        }
    }

    /// Charges `used` ticks to the context, which is not round-robin: the first `used` ticks of
    /// its queue move to one period after the start of the refill that they came from.
    #[inline(never)]
    pub fn charge(self, used: u64) {
        let (head, constants) = (self.head(), self.k.constants);
        let is_only = self.context().queued() == 0 && head.time < constants.max_release();
        match head.amount.checked_sub(used) {
            // The only refill, which has all the budget, comes back whole, earlier by what is left.
            Some(left) if is_only && left < constants.min_budget() => {
                let again = head.time + self.context().period();
                trace!(self.k, refill(self.handle, Refill::new(used, again)));
                self.set_head(Refill::new(head.amount, again - left));
            }
            _ => self.charge_in_order(used),
        }
    }

    /// [`Refills::charge`], in general.
    ///
    /// The refills that are used up and those that are joined are no more than there are, and one, unless the machine
    /// stood still: the head has the least budget when a charge begins, so whatever is joined to what follows it, that
    /// has the least budget when the old head, which came last, has been joined.
    #[inline(never)]
    fn charge_in_order(self, used: u64) {
        // In this order: the other takes three instructions more for each refill.
        let constants = self.k.constants;
        let period = self.context().period();
        let mut queue = Queue::of(self);
        let stood_still = used > queue.head.amount + constants.min_budget();
        let mut turns = Together::<{ Refill::MAX as u64 + 1 }>::new(!stood_still);
        let mut rest = used;
        for _ in 0..MAX_CHARGED {
            if queue.head.amount > rest || queue.head.time >= constants.max_release() {
                break;
            }
            turns.turn();
            rest -= queue.head.amount;
            queue.use_head(period);
        }
        // The rest is a part of the head, but for a charge that the bound cut short.
        if rest < queue.head.amount {
            queue.use_part(rest, period);
        }
        // The head is joined to what follows it until it has the least budget, and delays what comes too early.
        for _ in 0..Refill::MAX {
            let small = queue.head;
            if small.amount >= constants.min_budget() {
                break;
            }
            turns.turn();
            let Some(next) = queue.take_second() else {
                break;
            };
            queue.head = Refill::new(next.amount + small.amount, next.time - small.amount);
        }
        queue.store();
    }

    /// Charges `used` ticks of the head, which has more. Mostly they come back together with what was used before, which is
    /// all that is looked at then.
    #[inline(always)]
    pub fn charge_part(self, used: u64) {
        let (head, queued) = (self.head(), self.context().queued());
        if queued > 0 && head.time < self.k.constants.max_release() {
            let (rest, again) = split(head, used, self.context().period());
            let last = self.behind(queued - 1);
            let tail = last.get();
            if tail.end() >= again.time {
                trace!(self.k, refill(self.handle, again));
                self.set_head(rest);
                return last.set(Refill::new(tail.amount + used, tail.time));
            }
        }
        self.schedule_part(used);
    }

    /// [`Refills::charge_part`], in general.
    #[inline(never)]
    fn schedule_part(self, used: u64) {
        let mut queue = Queue::of(self);
        queue.use_part(used, self.context().period());
        queue.store();
    }

    /// The context, which is not round-robin, was not in use: what is ready starts anew from now
    /// on. Returns whether anything may have changed, so that the timer is to be programmed again.
    pub fn unblock(self) -> bool {
        if !self.ready() {
            return false;
        }
        self.start_head(self.k.core().now());
        true
    }

    /// The context, which is not round-robin, could not be used for `ticks`: its head starts later by
    /// as much.
    pub fn delay(self, ticks: u64) {
        self.start_head(self.head().time + ticks);
    }

    /// The head starts at `time`, which is not before it did.
    #[inline(always)]
    fn start_head(self, time: u64) {
        let head = Refill::new(self.head().amount, time);
        self.set_head(head);
        if self.second().is_some_and(|next| next.time <= head.end()) {
            self.absorb();
        }
    }

    /// Joins to the head the refills that begin before its end, as it grows.
    #[inline(never)]
    fn absorb(self) {
        let mut queue = Queue::of(self);
        let mut end = queue.head.end();
        let mut all = Together::<{ Refill::MAX as u64 + 1 }>::new(true);
        // In the ring from where they start to its end, and from its beginning.
        let (lower, upper) = queue.ring.split_at_checked(queue.first).unwrap_or_default();
        let mut parts = Turns::<2>::new();
        for part in [upper, lower] {
            parts.turn();
            let part = part.get(..queue.queued).unwrap_or(part);
            let mut joined = 0;
            while let Some(next) = part.get(joined).map(Cell::get) {
                all.turn();
                if next.time > end {
                    break;
                }
                end += next.amount;
                joined += 1;
            }
            queue.queued -= joined;
            queue.first += joined;
            if queue.first < queue.ring.len() {
                break;
            }
            queue.first = 0;
        }
        queue.head.amount = end - queue.head.time;
        queue.store();
    }

    /// Round-robin: `used` ticks of the slice are over.
    #[inline(always)]
    pub fn spend_slice(self, used: u64) {
        let (head, context) = (self.head(), self.context());
        let used = used.min(head.amount);
        self.set_head(Refill::new(head.amount - used, head.time));
        context.set_slice_used(self.k, context.slice_used() + used);
    }

    /// Round-robin: the slice is over, the next one is full.
    #[inline(always)]
    pub fn renew_slice(self) {
        let head = self.head();
        let amount = head.amount + self.context().slice_used();
        self.set_head(Refill::new(amount, head.time));
        self.context().set_slice_used(self.k, 0);
    }
}
