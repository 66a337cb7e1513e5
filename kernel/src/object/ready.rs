//! The ready queues of a core: 256 priorities, a bitmap of four words, doubly linked: every
//! operation is O(1).
//!
//! *Enqueue* puts a thread at the head of its queue, *append* at the tail (04, section 8.1).

#[cfg(not(target_os = "none"))]
mod inspect;

use core::cell::Cell;
use core::num::NonZeroU64;

use super::tcb::{Place, Tcb};
use crate::mem::Ref;
use crate::Kernel;

#[derive(Clone, Copy)]
struct List {
    head: Option<Ref<Tcb>>,
    tail: Option<Ref<Tcb>>,
}

impl List {
    const EMPTY: List = List {
        head: None,
        tail: None,
    };
}

/// The ready queues. Invariants: a priority's bit is set exactly if its list has a thread; `levels`
/// is one more than the highest such priority, 0 if there is none.
pub struct ReadyQueues {
    lists: [Cell<List>; 256],
    words: [Cell<u64>; 4],
    levels: Cell<u16>,
}

/// A thread's links in the ready queue.
pub struct ReadyLinks {
    prev: Cell<Option<Ref<Tcb>>>,
    next: Cell<Option<Ref<Tcb>>>,
    /// When the thread was appended, in ticks; 0 if it was enqueued at the head. A released
    /// thread of the same priority runs before those that were appended at its release or later.
    since: Cell<u64>,
}

impl ReadyLinks {
    pub const fn new() -> Self {
        ReadyLinks {
            prev: Cell::new(None),
            next: Cell::new(None),
            since: Cell::new(0),
        }
    }

    #[inline(always)]
    pub fn since(&self) -> u64 {
        self.since.get()
    }

    pub fn next(&self) -> Option<Ref<Tcb>> {
        self.next.get()
    }
}

impl ReadyQueues {
    pub const fn new() -> Self {
        ReadyQueues {
            lists: [const { Cell::new(List::EMPTY) }; 256],
            words: [const { Cell::new(0) }; 4],
            levels: Cell::new(0),
        }
    }

    /// The highest priority that has a thread.
    #[inline(always)]
    pub fn highest(&self) -> Option<u8> {
        self.levels
            .get()
            .checked_sub(1)
            .map(|highest| highest as u8)
    }

    /// Whether some thread has a priority above `priority`.
    #[inline(always)]
    pub fn has_above(&self, priority: u8) -> bool {
        self.levels.get() > u16::from(priority) + 1
    }

    /// Whether some thread has `priority` or a higher one.
    #[inline(always)]
    pub fn has_from(&self, priority: u8) -> bool {
        self.levels.get() > u16::from(priority)
    }

    /// Takes the first thread of the highest priority that has one out.
    #[inline(always)]
    pub fn take_first(&self, k: &Kernel) -> Option<Ref<Tcb>> {
        let priority = self.highest()?;
        let cell = &self.lists[usize::from(priority)];
        let list = cell.get();
        let first = list.head?;
        let next = first.at(k).ready_links().next.get();
        match next {
            Some(next) => {
                next.at(k).ready_links().prev.set(None);
                cell.set(List {
                    head: Some(next),
                    ..list
                });
            }
            None => {
                cell.set(List::EMPTY);
                self.clear(priority);
                self.levels.set(self.count_levels());
            }
        }
        first.at(k).set_place(Place::None);
        Some(first)
    }

    /// The first thread of `priority`.
    pub fn first_of(&self, priority: u8) -> Option<Ref<Tcb>> {
        self.lists[usize::from(priority)].get().head
    }

    #[inline(always)]
    fn mark(&self, priority: u8) {
        let word = &self.words[usize::from(priority >> 6)];
        word.set(word.get() | 1 << (priority & 63));
        self.levels
            .set(self.levels.get().max(u16::from(priority) + 1));
    }

    #[inline(always)]
    fn clear(&self, priority: u8) {
        let word = &self.words[usize::from(priority >> 6)];
        word.set(word.get() & !(1 << (priority & 63)));
    }

    #[inline(always)]
    fn unmark(&self, priority: u8) {
        self.clear(priority);
        if !self.has_above(priority) {
            self.levels.set(self.count_levels());
        }
    }

    /// What `levels` is to be, by the bitmap: what is urgent is found in the first step.
    #[inline(always)]
    fn count_levels(&self) -> u16 {
        self.levels_in(3)
            .or_else(|| self.levels_in(2))
            .or_else(|| self.levels_in(1))
            .or_else(|| self.levels_in(0))
            .unwrap_or(0)
    }

    /// One more than the highest priority of word `word` of the bitmap that has a thread.
    #[inline(always)]
    fn levels_in(&self, word: usize) -> Option<u16> {
        let bits = NonZeroU64::new(self.words[word & 3].get())?;
        Some((word as u16 * 64).wrapping_add(bits.ilog2() as u16 + 1))
    }

    /// Puts `thread`, which is in no queue, at the head of the queue of its priority.
    #[inline(always)]
    pub fn enqueue(&self, k: &Kernel, thread: Ref<Tcb>) {
        let tcb = thread.at(k);
        let links = tcb.ready_links();
        let cell = &self.lists[usize::from(tcb.priority())];
        let list = cell.get();
        links.prev.set(None);
        links.next.set(list.head);
        links.since.set(0);
        let tail = match list.head {
            None => {
                self.mark(tcb.priority());
                Some(thread)
            }
            Some(head) => {
                head.at(k).ready_links().prev.set(Some(thread));
                list.tail
            }
        };
        cell.set(List {
            head: Some(thread),
            tail,
        });
        tcb.set_place(Place::Ready);
    }

    /// Puts `thread`, which is in no queue, at the tail of the queue of its priority.
    #[inline(never)]
    pub fn append(&self, k: &Kernel, thread: Ref<Tcb>) {
        if broken!(TailIsHead) {
            return self.enqueue(k, thread);
        }
        let tcb = thread.at(k);
        let links = tcb.ready_links();
        let cell = &self.lists[usize::from(tcb.priority())];
        let list = cell.get();
        links.prev.set(list.tail);
        links.next.set(None);
        links.since.set(k.core().now());
        let head = match list.tail {
            None => {
                self.mark(tcb.priority());
                Some(thread)
            }
            Some(tail) => {
                tail.at(k).ready_links().next.set(Some(thread));
                list.head
            }
        };
        cell.set(List {
            head,
            tail: Some(thread),
        });
        tcb.set_place(Place::Ready);
    }

    /// Takes `thread`, which is in these queues, out.
    #[inline(never)]
    pub fn remove(&self, k: &Kernel, thread: Ref<Tcb>) {
        let tcb = thread.at(k);
        let links = tcb.ready_links();
        let cell = &self.lists[usize::from(tcb.priority())];
        let mut list = cell.get();
        let (prev, next) = (links.prev.get(), links.next.get());
        match prev {
            Some(prev) => prev.at(k).ready_links().next.set(next),
            None => list.head = next,
        }
        match next {
            Some(next) => next.at(k).ready_links().prev.set(prev),
            None => list.tail = prev,
        }
        cell.set(list);
        if list.head.is_none() {
            self.unmark(tcb.priority());
        }
        tcb.set_place(Place::None);
    }
}
