//! The release queues of a core: threads that wait for their next refill.
//!
//! A queue for each priority, ordered by release time, and above them a tournament of the
//! priorities: each node of a tree over the 256 queues, four below each, has the earliest release time below
//! it. So the highest priority that has a due thread, and the earliest release above a priority,
//! are found in four steps, and a thread is inserted or removed in O(log n) of the threads *of
//! its own priority*: however many threads of lower priority wait, those above do not notice
//! (docs/src/architecture/scheduler.md).
//!
//! Nor are they asked for: the set of the priorities that have somebody answers at once that nobody
//! waits above a priority, which is so whenever the most urgent of all runs.
//!
//! Invariants: a priority is `taken` exactly if its queue has a thread; leaf p of the tournament has
//! the time of the first thread of queue p, `u64::MAX` if there is none; every other node has the
//! least of its four children's.

#[cfg(not(target_os = "none"))]
pub mod inspect;

use core::cell::Cell;

use super::priorities::Priorities;
use super::{Place, Queue, Tcb};
use crate::{arch::bounds::turns, arch::opaque_word, mem::Ref, Kernel};

const PRIORITIES: usize = 256;
/// Children of a node of the tournament.
const CHILDREN: usize = 4;
/// Steps from a leaf of the tournament to its root.
const DEPTH: usize = (PRIORITIES.trailing_zeros() / CHILDREN.trailing_zeros()) as usize;
/// The root of the tournament; the children of node i are 4i to 4i + 3. So the leaves are the upper half of the nodes, and the
/// levels above them, with gaps, the lower one.
const ROOT: usize = 1;
const NODES: usize = 2 * PRIORITIES;

/// Time of nothing.
const NEVER: u64 = u64::MAX;

/// The release queues.
#[repr(C)]
pub struct ReleaseQueues {
    /// That of the root, apart: most events look at it.
    earliest: Cell<u64>,
    nodes: [Cell<u64>; NODES],
    taken: Priorities,
    queues: [Queue; PRIORITIES],
}

impl ReleaseQueues {
    pub const fn new() -> Self {
        ReleaseQueues {
            earliest: Cell::new(NEVER),
            nodes: [const { Cell::new(NEVER) }; NODES],
            taken: Priorities::new(),
            queues: [const { Queue::new() }; PRIORITIES],
        }
    }

    /// Node `i`, which is not the root.
    fn node(&self, i: usize) -> &Cell<u64> {
        &self.nodes[i & (NODES - 1)]
    }

    #[inline(always)]
    fn children(&self, of: usize) -> [&Cell<u64>; CHILDREN] {
        let child = |i| self.node(CHILDREN * of + i);
        [child(0), child(1), child(2), child(3)]
    }

    /// The earliest of the children of node `of`.
    #[inline(always)]
    fn winner(&self, of: usize) -> u64 {
        let [first, second, third, fourth] = self.children(of);
        let winner = first.get().min(second.get());
        winner.min(third.get()).min(fourth.get())
    }

    /// The threads of `priority`, the earliest first.
    pub fn of(&self, priority: u8) -> &Queue {
        &self.queues[usize::from(priority)]
    }

    /// Time of the earliest release of all, in ticks; `u64::MAX` if nobody waits.
    pub fn earliest(&self) -> u64 {
        self.earliest.get()
    }

    /// Whether anybody waits.
    pub fn has_any(&self) -> bool {
        self.earliest() != NEVER
    }

    /// The highest priority that has somebody, due or not.
    pub fn highest(&self) -> Option<u8> {
        self.taken.highest()
    }

    /// Whether anybody of at least this `priority` waits, due or not.
    #[inline(always)]
    pub fn has_from(&self, priority: u8) -> bool {
        self.taken.has_from(priority)
    }

    /// Time of the earliest release of a priority above `floor` (with `None`, of any);
    /// `u64::MAX` if there is none.
    #[inline(never)]
    pub fn earliest_above(&self, floor: Option<u8>) -> u64 {
        let Some(floor) = floor else {
            return self.earliest();
        };
        let mut earliest = NEVER;
        if !self.taken.has_above(floor) {
            return earliest;
        }
        let mut at = PRIORITIES + usize::from(floor);
        for _ in turns::<{ DEPTH as u64 }, _>(0..DEPTH) {
            let place = at % CHILDREN;
            at /= CHILDREN;
            let [_, second, third, fourth] = self.children(at);
            // All are read here, so that it is known that they are in one line.
            let second = opaque_word(second.get());
            let third = opaque_word(third.get());
            let fourth = opaque_word(fourth.get());
            // Of those behind it.
            if place < 1 {
                earliest = earliest.min(second);
            }
            if place < 2 {
                earliest = earliest.min(third);
            }
            if place < 3 {
                earliest = earliest.min(fourth);
            }
        }
        earliest
    }

    /// The highest priority with a release at or before `now`, if it is above `floor` (with `None`, any is).
    #[inline(always)]
    pub fn highest_due_above(&self, now: u64, floor: Option<u8>) -> Option<u8> {
        if self.earliest() > now {
            None
        } else {
            self.descend(now, floor)
        }
    }

    #[inline(never)]
    fn descend(&self, now: u64, floor: Option<u8>) -> Option<u8> {
        if self.taken.highest() <= floor {
            return None;
        }
        let mut at = ROOT;
        for _ in turns::<{ DEPTH as u64 }, _>(0..DEPTH) {
            let [_, second, third, fourth] = self.children(at);
            // The last of those that are due; the first, if no other is.
            let mut due = usize::from(second.get() <= now);
            if third.get() <= now {
                due = 2;
            }
            if fourth.get() <= now {
                due = 3;
            }
            at = CHILDREN * at + due;
        }
        Some(at as u8).filter(|&due| Some(due) > floor)
    }

    /// Lets `thread`, which is in no queue, wait until `time`, in ticks.
    #[inline(never)]
    pub fn insert(&self, k: &Kernel, thread: Ref<Tcb>, time: u64) {
        let priority = thread.at(k).priority();
        let queue = self.of(priority);
        queue.insert_timed(k, thread, time);
        thread.at(k).set_place(k, Place::Release);
        self.taken.insert(priority);
        self.first_changed(priority, queue.first_time(k));
    }

    /// Takes `thread`, which waits here, out.
    #[inline(never)]
    pub fn remove(&self, k: &Kernel, thread: Ref<Tcb>) {
        let priority = thread.at(k).priority();
        thread.at(k).set_place(k, Place::None);
        let queue = self.of(priority);
        if queue.is_only(k, thread) {
            queue.clear();
            self.taken.remove(priority);
            self.first_changed(priority, NEVER);
        } else {
            queue.detach(k, thread);
            self.first_changed(priority, queue.first_time(k));
        }
    }

    /// Brings the tournament up to date with the first thread of `priority`, which waits until `time`.
    #[inline(never)]
    fn first_changed(&self, priority: u8, time: u64) {
        let mut at = PRIORITIES + usize::from(priority);
        self.node(at).set(time);
        for _ in turns::<{ DEPTH as u64 - 1 }, _>(1..DEPTH) {
            at /= CHILDREN;
            let winner = self.winner(at);
            if self.node(at).get() == winner {
                return;
            }
            self.node(at).set(winner);
        }
        self.earliest.set(self.winner(ROOT));
    }
}
