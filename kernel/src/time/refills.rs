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

use crate::arch::abi::clock::PRECISION_US;
use crate::arch::bounds::{self, Together, Turns};
use crate::mem::{objects, Ref};
use crate::object::{Queued, Refill, SchedContext};
use crate::Kernel;

/// Bound of the loop over refills that a charge used up. A charge is at most the head, and what passes until the clock is
/// read ([`LATE`]): an event is let in only while the head has the least budget, which is twice the longest kernel path, and
/// the timer fires when the head ends, or before. Only where the clock went on while the machine stood still (a virtual one that was paused, firmware that took the
/// processor) or the kernel is slower than it assumes of itself, there are larger charges: these use up every refill once, and
/// the first of them a second time, and what exceeds this bound is forgiven.
const MAX_CHARGED: usize = 2 * Refill::MAX as usize;

/// How many ticks behind the end of the head the clock is read at most, where the timer is to fire just then: about a
/// microsecond of the usual clocks. None, where it fires a microsecond before.
const LATE: u64 = match PRECISION_US {
    0 => 64,
    _ => 0,
};
/// Whether it can be late at all.
const IS_LATE: u64 = match LATE {
    0 => 0,
    _ => 1,
};

/// Refills behind the head that are used up until the clock is read, if any are. Each is what passed between two such readings
/// at least, to which the way into the kernel belongs that it is here all; but for one: what the last charge that was late left, or
/// a change of the budget.
type Behind = Together<IS_LATE>;
/// The parts in which they are moved, as the ring ends where they lie, or where they go.
type Parts = Together<IS_LATE>;
/// Rounds of what is used up, and searches for how much that is.
type Rounds = Together<{ 1 + IS_LATE }>;
type Searches = Together<0>;

/// The refills of a context while an operation goes through them: the head, and what follows it in the ring.
struct Queue<'k> {
    refills: Refills<'k>,
    ring: &'k [Cell<Queued>],
    head: Queued,
    /// Place of the refill that follows the head, and how many do.
    first: usize,
    queued: usize,
    /// Where a refill behind the last one would start.
    end: u64,
}

impl<'k> Queue<'k> {
    #[inline(always)]
    fn of(refills: Refills<'k>) -> Self {
        let context = refills.context();
        let ring = objects::refills(refills.k, refills.handle);
        let (first, queued) = (context.first().into(), context.queued().into());
        let mut queue = Queue {
            refills,
            ring,
            head: Queued { start: 0, time: 0 },
            first,
            queued,
            end: context.end(),
        };
        let Refill { amount, time } = context.head();
        let start = queue.head_end() - amount;
        queue.head = Queued { start, time };
        queue
    }

    #[inline(always)]
    fn store(self) {
        let (k, context) = (self.refills.k, self.refills.context());
        let amount = self.head_end() - self.head.start;
        context.set_head(k, Refill::new(amount, self.head.time));
        context.set_first(k, self.first as u8);
        context.set_queued(k, self.queued as u8);
        context.set_end(k, self.end);
    }

    /// The refill that follows the head, if there is one.
    #[inline(always)]
    fn second(&self) -> Option<Queued> {
        let second = self.ring.get(self.first).filter(|_| self.queued > 0)?;
        Some(second.get())
    }

    /// Where the head ends, and what follows it starts.
    #[inline(always)]
    fn head_end(&self) -> u64 {
        self.second().map_or(self.end, |second| second.start)
    }

    /// The last refill: the head if nothing follows it.
    #[inline(always)]
    fn tail(&self) -> Queued {
        self.last().map_or(self.head, Cell::get)
    }

    /// The place of the last of those that follow the head, if one does.
    #[inline(always)]
    fn last(&self) -> Option<&Cell<Queued>> {
        let before = self.queued.checked_sub(1)?;
        self.ring.get(self.wrap(self.first + before))
    }

    /// Uses up the refills, from the head on, that end at `goal` or before and are usable before `latest`: each comes back
    /// one period later, at the end of the queue. Returns where the head ends then.
    #[inline(always)]
    fn use_whole(&mut self, goal: u64, latest: u64, stood_still: bool) -> u64 {
        let is_used = |each: Queued| each.start <= goal && each.time < latest;
        let in_time = cfg!(target_os = "none") || !stood_still && goal < self.third_end();
        let mut turns = Turns::<{ MAX_CHARGED as u64 }>::new();
        let (mut rounds, mut searches) = (Rounds::new(in_time), Searches::new(in_time));
        let (mut parts, mut behind) = (Parts::new(in_time), Behind::new(in_time));
        let mut left = MAX_CHARGED;
        loop {
            let head_end = self.head_end();
            if left == 0 || head_end > goal || self.head.time >= latest {
                return head_end;
            }
            turns.turn();
            rounds.turn();
            // Some may be joined to the last one: it is left to the next round.
            let mut count = 1;
            if goal > head_end && self.queued > 2 {
                if self.follower(2).is_some_and(is_used) {
                    searches.turn();
                    count = self.count_while(is_used).clamp(1, left);
                } else if self.follower(1).is_some_and(is_used) {
                    count = left.min(2);
                }
            }
            self.use_first(count, &mut parts, &mut behind);
            left -= count;
        }
    }

    /// Where the third refill ends that is used up, the head included; where there are fewer, they come back. For checks of
    /// bounds.
    #[inline(always)]
    fn third_end(&self) -> u64 {
        let [all, head] = [self.end, self.head_end()].map(|end| end - self.head.start);
        match self.queued {
            0 => self.head.start + 3 * all,
            1 => self.end + head,
            _ => self.follower(2).map_or(self.end, |third| third.start),
        }
    }

    /// Follower `i` of the head, counted from 0, if there are so many.
    #[inline(always)]
    fn follower(&self, i: usize) -> Option<Queued> {
        let place = self.ring.get(self.wrap(self.first + i));
        place.filter(|_| i < self.queued).map(Cell::get)
    }

    /// The first `count` refills, of more if it is more than one, are used up. The head may be joined to the last one; what
    /// follows it is apart from what is before it, and stays so.
    #[inline(always)]
    fn use_first(&mut self, count: usize, parts: &mut Parts, behind: &mut Behind) {
        let (period, amount) = (self.refills.context().period(), self.end - self.head.start);
        let again = |used: Queued| Queued {
            start: used.start + amount,
            time: used.time + period,
        };
        self.first_come_back(count, period);
        let head = again(self.head);
        if self.tail().end(self.end) < head.time {
            self.append(head);
        }
        if count > 1 {
            self.use_behind(count - 1, again, parts, behind);
        }
        let used = self.head.start;
        self.head = self.second().unwrap_or(head);
        self.end += self.head.start - used;
        self.join(1);
    }

    /// The `count` refills behind the head come back as `again` says, and are left out where they were.
    #[inline(always)]
    fn use_behind(
        &mut self,
        count: usize,
        again: impl Fn(Queued) -> Queued,
        parts: &mut Parts,
        behind: &mut Behind,
    ) {
        // There is a place that is not in use, so none is written before it is read.
        let (ring, mut from) = (self.ring, self.first);
        let mut to = self.wrap(self.first + self.queued);
        let mut rest = count;
        let mut of_this = Turns::<3>::new();
        while rest > 0 {
            of_this.turn();
            parts.turn();
            let (source, target) = (ring.get(from..), ring.get(to..));
            let (source, target) = (source.unwrap_or_default(), target.unwrap_or_default());
            let length = rest.min(source.len()).min(target.len());
            let (source, target) = (source.get(..length), target.get(..length));
            let (fours, last) = source.unwrap_or_default().as_chunks::<4>();
            let (target_fours, last_target) = target.unwrap_or_default().as_chunks::<4>();
            let fours = fours.iter().zip(target_fours);
            bounds::turns::<{ Refill::MAX as u64 / 4 }, _>(fours).for_each(|(source, target)| {
                behind.turns::<4>();
                let ([a, b, c, d], [to_a, to_b, to_c, to_d]) = (source, target);
                to_a.set(again(a.get()));
                to_b.set(again(b.get()));
                to_c.set(again(c.get()));
                to_d.set(again(d.get()));
            });
            bounds::turns::<3, _>(last.iter().zip(last_target)).for_each(|(source, target)| {
                behind.turn();
                target.set(again(source.get()));
            });
            (from, to) = (self.wrap(from + length), self.wrap(to + length));
            rest -= length;
        }
        self.queued += count;
        self.join(count);
    }

    /// Traces say that the first `count` refills, of more, come back.
    #[inline(always)]
    fn first_come_back(&self, count: usize, period: u64) {
        if cfg!(not(feature = "trace")) {
            return;
        }
        let (mut used, queued) = (self.head, self.queued);
        for i in 0..count {
            let next = self
                .ring
                .get(self.wrap(self.first + i))
                .map_or(used, Cell::get);
            let end = if i < queued { next.start } else { self.end };
            self.comes_back(end - used.start, used.time + period);
            used = next;
        }
    }

    /// Place `i` of the ring: past its end it goes on from the beginning, once.
    #[inline(always)]
    fn wrap(&self, i: usize) -> usize {
        i.min(i.wrapping_sub(self.ring.len()))
    }

    /// Traces say that `amount` comes back at `time`.
    #[inline(always)]
    fn comes_back(&self, amount: u64, time: u64) {
        let (k, context, again) = (
            self.refills.k,
            self.refills.handle,
            Refill::new(amount, time),
        );
        trace!(k, refill(context, again));
        let _ = (k, context, again);
    }

    /// Puts a refill behind the last one. There is room.
    #[inline(always)]
    fn append(&mut self, refill: Queued) {
        if let Some(free) = self.ring.get(self.wrap(self.first + self.queued)) {
            free.set(refill);
        }
        self.queued += 1;
    }

    /// `used` ticks of the head, which has more, are used: one at least.
    #[inline(always)]
    fn use_part(&mut self, used: u64, period: u64) {
        if self.head.time >= self.refills.k.constants.max_release() {
            return;
        }
        let time = self.head.time + period;
        self.head.start += used;
        self.head.time += used;
        self.comes_back(used, time);
        // It is not before the last refill's.
        let (tail, start) = (self.tail(), self.end);
        let early = time.saturating_sub(tail.end(start));
        let places: usize = self.refills.context().max_refills().into();
        if early > 0 && self.queued + 1 < places {
            self.append(Queued { start, time });
        } else if early > 0 {
            // One follows the head, as there is room for two.
            let time = tail.time + early;
            if let Some(last) = self.last() {
                last.set(Queued { time, ..tail });
            }
        }
        self.end += used;
    }

    /// Leaves out `count` of the refills that follow the head, which there are: it has their time too.
    #[inline(always)]
    fn join(&mut self, count: usize) {
        self.first = self.wrap(self.first + count);
        self.queued -= count;
    }

    /// The head, which has less, is joined to what follows it until it has the `least` budget, and delays what comes too early.
    #[inline(always)]
    fn fill_head(&mut self, least: u64) {
        let start = self.head.start;
        // Those that start before it has so much, the last of which is not delayed.
        let count = self.count_while(|each| each.start - start < least);
        self.join(count.saturating_sub(1));
        if let Some(last) = self.second() {
            self.head.time = last.time - (last.start - start);
            self.join(1);
        }
    }

    /// How many of the refills that follow the head, from the first on, are `wanted`: the others follow these.
    #[inline(always)]
    fn count_while(&self, wanted: impl Fn(Queued) -> bool) -> usize {
        // Of those before the end of the ring, or of those behind it, if one of these is the first that is not.
        let before = self.ring.get(self.first..).unwrap_or_default();
        let (mut among, mut passed) = (before.get(..self.queued), 0);
        if among.is_none() {
            let behind = self.ring.get(..self.queued - before.len());
            among = Some(before);
            if self.ring.first().is_some_and(|each| wanted(each.get())) {
                (among, passed) = (behind, before.len());
            }
        }
        let among = among.unwrap_or_default();
        let (mut from, mut to) = (0, among.len());
        let mut turns = Turns::<{ (Refill::MAX - 1).ilog2() as u64 + 1 }>::new();
        while from < to {
            turns.turn();
            let middle = (from + to) / 2;
            if among.get(middle).is_some_and(|each| wanted(each.get())) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        passed + from
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
    fn behind(self, i: u8) -> &'k Cell<Queued> {
        objects::refill(self.k, self.handle, self.context().first() + i)
    }

    /// The refill that follows the head, if there is one.
    #[inline(always)]
    fn second(self) -> Option<Queued> {
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
        self.context().set_end(self.k, head.amount);
    }

    /// All refills, from the head on.
    pub fn iter(self) -> impl Iterator<Item = Refill> + 'k {
        let queued = self.context().queued();
        let following = (0..queued).map(move |i| {
            let Queued { start, time } = self.behind(i).get();
            let end = if i + 1 < queued {
                self.behind(i + 1).get().start
            } else {
                self.context().end()
            };
            Refill::new(end.wrapping_sub(start), time)
        });
        core::iter::once(self.head()).chain(following)
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
            let (start, time) = (head.amount, head.time.saturating_add(period));
            self.behind(0).set(Queued { start, time });
            self.context().set_queued(self.k, 1);
            self.context().set_end(self.k, start + rest);
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
    #[inline(never)]
    fn charge_in_order(self, used: u64) {
        let (mut queue, least) = (Queue::of(self), self.k.constants.min_budget());
        let (start, head_end) = (queue.head.start, queue.head_end());
        if used >= head_end - start {
            self.charge_whole(&mut queue, start + used, head_end);
        } else if used > 0 {
            queue.use_part(used, self.context().period());
        }
        if queue.head_end() - queue.head.start < least {
            queue.fill_head(least);
        }
        queue.store();
    }

    /// Uses up the refills of `queue` up to `goal`, where the head ends, or beyond if the machine stood still.
    #[inline(always)]
    fn charge_whole(self, queue: &mut Queue<'k>, goal: u64, head_end: u64) {
        let stood_still = goal > head_end + LATE;
        let head_end = queue.use_whole(goal, self.k.constants.max_release(), stood_still);
        // The rest is a part of the head, but for a charge that the bound cut short.
        let rest = goal - queue.head.start;
        if rest > 0 && goal < head_end {
            Together::<IS_LATE>::new(!stood_still).turn();
            queue.use_part(rest, self.context().period());
        }
    }

    /// Charges `used` ticks of the head, which has more. Mostly they come back together with what was used before, which is
    /// all that is looked at then.
    #[inline(always)]
    pub fn charge_part(self, used: u64) {
        let (head, context) = (self.head(), self.context());
        let (queued, end) = (context.queued(), context.end());
        if queued > 0 && head.time < self.k.constants.max_release() {
            let again = Refill::new(used, head.time + context.period());
            if self.behind(queued - 1).get().end(end) >= again.time {
                trace!(self.k, refill(self.handle, again));
                self.set_head(Refill::new(head.amount - used, head.time + used));
                return context.set_end(self.k, end + used);
            }
        }
        // It is nothing behind an event that has paid for itself.
        if used > 0 {
            self.schedule_part(used);
        }
    }

    /// [`Refills::charge_part`], in general: something is used.
    #[inline(never)]
    fn schedule_part(self, used: u64) {
        let mut queue = Queue::of(self);
        queue.use_part(used, self.context().period());
        queue.store();
    }

    /// The context, which is not round-robin, was not in use: what is ready starts anew from now
    /// on. Returns whether anything may have changed, so that the timer is to be programmed again.
    #[inline(always)]
    pub fn unblock(self) -> bool {
        let now = self.k.core().now();
        let is_ready = self.head().time <= now;
        if is_ready {
            self.start_head(now);
        }
        is_ready
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
        let head = queue.head;
        let count = queue.count_while(|each| each.time <= head.end(each.start));
        queue.join(count);
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
