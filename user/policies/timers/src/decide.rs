//! What the timer service decides: a state machine without a system call. All times are ticks of one clock, which the
//! caller has.
//!
//! Timers belong to [groups](Group): a group is what one capability of a user stands for, one timer or several with
//! numbers. A group's timers expire one at a time, in the order of their deadlines, and between two of them every other
//! group has its turn: so the number of timers of one group delays nobody else. A group has a [`Limit`], beyond which
//! its own timers expire later.
//!
//! Groups wait in a heap by the time of their next expiry, the timers of each group in a heap of their own by their
//! deadlines. Every operation is O(log n).

use alloc::vec::Vec;
use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::heap::{self, Element, Heap, Node};

/// How often the timers of a group expire, all together: in any time t at most `burst + t / every` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Ticks; not 0. Also the shortest period of a timer.
    pub every: u64,
    /// That may expire at once; not 0.
    pub burst: u32,
}

/// A group as the description has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// How many timers it has.
    pub timers: u32,
    pub limit: Limit,
}

/// When a timer is to expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub first: u64,
    /// From one expiry to the next: expiry k is at `first + k * period`. `None`: there is only one.
    pub period: Option<u64>,
}

/// What became of a request to arm a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Armed {
    /// The timer will expire.
    Set,
    /// A single expiry is not in the future any more: the timer is not armed, and nothing is signalled.
    Passed,
}

/// Why a request is refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The group has no timer of that number.
    NoSuchTimer,
    /// The period is shorter than the group's limit.
    TooFrequent,
    /// It is no request that the service knows.
    NoSuchRequest,
}

impl core::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchTimer => "the `[[timer]]` has no timer of that number: see its `count`",
            Self::TooFrequent => "the period is below the `every` of the `[[timer]]`",
            Self::NoSuchRequest => "the timer service knows no such request",
        })
    }
}

/// A timer. All zeros: it is not armed, and has never expired.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Slot {
    /// The next expiry.
    deadline: u64,
    /// 0: there is only one.
    period: u64,
    expiries: u64,
    node: Node,
}

impl Element for Slot {
    type Key = u64;

    fn key(&self) -> u64 {
        self.deadline
    }

    fn node(&self) -> Node {
        self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

/// A user's timers.
#[derive(Clone, Debug)]
struct Group {
    /// Its slots: the first, and how many.
    base: usize,
    timers: u32,
    /// Those that are armed.
    armed: u32,
    limit: Limit,
    /// The theoretical arrival time of the generic cell rate algorithm: when the next expiry would be if they came
    /// `limit.every` apart. It may come `limit.burst - 1` of these earlier.
    arrival: u64,
    /// When one of its timers expired last: the groups that were due then have their turns first.
    last: u64,
    /// When it is its turn. Of a group that is in the heap.
    turn: Turn,
    node: Node,
}

/// By time; at the same time, in the order in which groups came to wait.
type Turn = (u64, u64);

impl Group {
    /// The earliest time at which the limit lets a timer expire.
    fn allowed_at(&self) -> u64 {
        let burst = u64::from(self.limit.burst).saturating_sub(1);
        self.arrival
            .saturating_sub(burst.saturating_mul(self.limit.every))
    }

    /// Counts an expiry whose turn was at the time `at` against the limit. That it happened later does not make the next
    /// one late.
    fn charge(&mut self, at: u64) {
        self.arrival = self.arrival.max(at).saturating_add(self.limit.every);
    }
}

impl Element for Group {
    type Key = Turn;

    fn key(&self) -> Turn {
        self.turn
    }

    fn node(&self) -> Node {
        self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

/// All timers.
#[derive(Debug)]
pub struct Timers<'m> {
    slots: &'m mut [Slot],
    groups: Vec<Group>,
    /// Groups with armed timers.
    waiting: u32,
    /// Orders groups with the same time.
    turns: u64,
    /// What the device was last set to, for which group.
    alarm: Option<(u64, usize)>,
}

impl<'m> Timers<'m> {
    /// Timers that are not armed. The only allocation is here.
    ///
    /// # Panics
    /// `slots` are fewer than the timers.
    pub fn new(described: &[Described], slots: &'m mut [Slot]) -> Self {
        let mut base = 0;
        let groups = described.iter().map(|described| {
            let first = base;
            base += described.timers as usize;
            Group {
                base: first,
                timers: described.timers,
                armed: 0,
                limit: described.limit,
                arrival: 0,
                last: 0,
                turn: (0, 0),
                node: Node::default(),
            }
        });
        let groups = groups.collect();
        assert!(base <= slots.len(), "each timer needs a slot");
        slots[..base].fill(Slot::default());
        Self {
            slots,
            groups,
            waiting: 0,
            turns: 0,
            alarm: None,
        }
    }

    /// Arms a timer anew. Expiries of a periodic one that have passed already are counted and not signalled; the first to
    /// come is next. O(log n).
    ///
    /// # Errors
    /// The request is refused.
    pub fn arm(
        &mut self,
        now: u64,
        group: usize,
        timer: u64,
        timing: Timing,
    ) -> Result<Armed, Refusal> {
        let slot = self.slot(group, timer)?;
        if timing
            .period
            .is_some_and(|period| period < self.groups[group].limit.every)
        {
            return Err(Refusal::TooFrequent);
        }
        let period = timing.period.unwrap_or(0);
        let mut slot_now = self.slots[slot];
        (slot_now.deadline, slot_now.period, slot_now.expiries) = (timing.first, period, 0);
        if timing.first <= now {
            if period == 0 {
                self.disarm(group, slot);
                return Ok(Armed::Passed);
            }
            pass(&mut slot_now, now);
        }
        self.slots[slot] = slot_now;
        let base = self.groups[group].base;
        self.heap(group).put(slot - base);
        self.queue(group);
        Ok(Armed::Set)
    }

    /// Whether the timer was armed: it is not any more. O(log n).
    ///
    /// # Errors
    /// There is no such timer.
    pub fn cancel(&mut self, group: usize, timer: u64) -> Result<bool, Refusal> {
        let slot = self.slot(group, timer)?;
        let was_armed = self.slots[slot].node.is_queued();
        self.disarm(group, slot);
        Ok(was_armed)
    }

    /// How often a timer has expired since it was armed, missed expiries of periodic ones included. O(1).
    ///
    /// # Errors
    /// There is no such timer.
    pub fn expiries(&self, group: usize, timer: u64) -> Result<u64, Refusal> {
        Ok(self.slots[self.slot(group, timer)?].expiries)
    }

    /// Lets a timer expire that is due, if one is. Returns its group, which is to be told. O(log n).
    ///
    /// Groups with timers that are due take turns. So between the instant at which a group is due and its expiry, every
    /// other group has at most one.
    pub fn expire(&mut self, now: u64) -> Option<usize> {
        let group = self.first().filter(|&(at, _)| at <= now)?.1;
        let base = self.groups[group].base;
        let slot = base + self.first_of(group)?;
        if self.slots[slot].period == 0 {
            self.slots[slot].expiries += 1;
            self.heap(group).remove(slot - base);
        } else {
            pass(&mut self.slots[slot], now);
            self.heap(group).put(slot - base);
        }
        let waiting = &mut self.groups[group];
        waiting.charge(waiting.turn.0);
        waiting.last = now;
        self.queue(group);
        Some(group)
    }

    /// When the next timer may expire. O(1).
    pub fn next(&self) -> Option<u64> {
        self.first().map(|(at, _)| at)
    }

    /// What the device must be set to, if not to what it is: `Some(None)` to nothing. To be asked after every other
    /// operation; [`Self::was_set`] follows.
    pub fn setting(&self) -> Option<Option<u64>> {
        let next = self.next();
        (next != self.alarm.map(|(at, _)| at)).then_some(next)
    }

    /// The device was set as [`Self::setting`] says, by the time `now`. If it rang before, and nothing is due, that counts
    /// against the limit of the group that it was set for, as an expiry does: arming and cancelling in turns must not make
    /// the service work more often.
    pub fn was_set(&mut self, now: u64) {
        let first = self.first();
        if let Some((at, group)) = self.alarm.filter(|&(at, _)| at <= now) {
            if first.is_none_or(|(next, _)| next > at) {
                self.groups[group].charge(at);
            }
        }
        self.alarm = first;
    }

    /// The device has rung, and does not again before it is set.
    pub fn rang(&mut self) {
        self.alarm = None;
    }

    /// The first group, and its time.
    fn first(&self) -> Option<(u64, usize)> {
        let group = heap::first(&self.groups, self.waiting)?;
        Some((self.groups[group].turn.0, group))
    }

    /// The timer of a group whose deadline is the earliest, counted within the group.
    fn first_of(&self, group: usize) -> Option<usize> {
        let group = &self.groups[group];
        heap::first(&self.slots[group.base..], group.armed)
    }

    fn slot(&self, group: usize, timer: u64) -> Result<usize, Refusal> {
        let group = self.groups.get(group).ok_or(Refusal::NoSuchTimer)?;
        match timer < u64::from(group.timers) {
            true => Ok(group.base + timer as usize),
            false => Err(Refusal::NoSuchTimer),
        }
    }

    fn disarm(&mut self, group: usize, slot: usize) {
        let base = self.groups[group].base;
        self.heap(group).remove(slot - base);
        self.queue(group);
    }

    /// The timers of a group.
    fn heap(&mut self, group: usize) -> Heap<'_, Slot> {
        let group = &mut self.groups[group];
        Heap {
            elements: &mut self.slots[group.base..][..group.timers as usize],
            len: &mut group.armed,
        }
    }

    /// Lets a group wait for its turn, if one of its timers is armed.
    fn queue(&mut self, index: usize) {
        let base = self.groups[index].base;
        let deadline = self.first_of(index);
        let deadline = deadline.map(|first| self.slots[base + first].deadline);
        let mut heap = Heap {
            elements: &mut self.groups,
            len: &mut self.waiting,
        };
        let Some(deadline) = deadline else {
            heap.remove(index);
            return;
        };
        let group = &mut heap.elements[index];
        let at = deadline.max(group.allowed_at()).max(group.last);
        // At the time of its last expiry, the others come first that are due.
        if !group.node.is_queued() || group.turn.0 != at || group.last == at {
            self.turns += 1;
            group.turn = (at, self.turns);
            heap.put(index);
        }
    }
}

/// Counts the expiries of a periodic timer that are due at `now`, and goes on to the next.
fn pass(slot: &mut Slot, now: u64) {
    let periods = now.saturating_sub(slot.deadline) / slot.period + 1;
    slot.expiries = slot.expiries.saturating_add(periods);
    let time = slot.period.saturating_mul(periods);
    slot.deadline = slot.deadline.saturating_add(time);
}
