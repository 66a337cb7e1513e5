//! The ready queues of a core: 256 priorities, and the set of those that have somebody, doubly linked:
//! every operation is O(1).
//!
//! *Enqueue* puts a thread at the head of its queue, *append* at the tail (04, section 8.1).

#[cfg(not(target_os = "none"))]
mod inspect;

use core::cell::Cell;

use super::priorities::Priorities;
use super::{Place, Tcb};
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

/// The ready queues. Invariant: a priority is `taken` exactly if its list has a thread.
#[repr(C)]
pub struct ReadyQueues {
    lists: [Cell<List>; 256],
    taken: Priorities,
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

    cells! {
        since: u64;
        next: Option<Ref<Tcb>>;
    }
}

impl ReadyQueues {
    pub const fn new() -> Self {
        ReadyQueues {
            lists: [const { Cell::new(List::EMPTY) }; 256],
            taken: Priorities::new(),
        }
    }

    /// The highest priority that has a thread.
    #[inline(always)]
    pub fn highest(&self) -> Option<u8> {
        self.taken.highest()
    }

    /// Whether some thread has a priority above `priority`.
    pub fn has_above(&self, priority: u8) -> bool {
        self.taken.has_above(priority)
    }

    /// Whether some thread has `priority` or a higher one.
    pub fn has_from(&self, priority: u8) -> bool {
        self.taken.has_from(priority)
    }

    /// Takes the first thread of the highest priority that has one out.
    #[inline(always)]
    pub fn take_first(&self, k: &Kernel) -> Option<Ref<Tcb>> {
        let priority = self.highest()?;
        let first = self.first_of(priority)?;
        self.take_head(k, priority, first);
        Some(first)
    }

    /// Takes `first`, the first thread of `priority`, the highest one that has any, out.
    #[inline(always)]
    pub fn take_head(&self, k: &Kernel, priority: u8, first: Ref<Tcb>) {
        let cell = &self.lists[usize::from(priority)];
        let next = first.at(k).ready_links().next.get();
        match next {
            Some(next) => {
                next.at(k).ready_links().prev.set(None);
                cell.set(List {
                    head: Some(next),
                    ..cell.get()
                });
            }
            None => {
                cell.set(List::EMPTY);
                self.taken.remove_highest(priority);
            }
        }
        first.at(k).set_place(k, Place::None);
    }

    /// The first thread of `priority`.
    pub fn first_of(&self, priority: u8) -> Option<Ref<Tcb>> {
        self.lists[usize::from(priority)].get().head
    }

    /// Puts `thread`, which is in no queue, at the head of the queue of its priority.
    #[inline(always)]
    pub fn enqueue(&self, k: &Kernel, thread: Ref<Tcb>) {
        let tcb = thread.at(k);
        let links = tcb.ready_links();
        let cell = &self.lists[usize::from(tcb.priority())];
        let mut list = cell.get();
        links.prev.set(None);
        links.next.set(list.head);
        links.since.set(0);
        match list.head.replace(thread) {
            Some(head) => head.at(k).ready_links().prev.set(Some(thread)),
            None => {
                self.taken.insert(tcb.priority());
                list.tail = Some(thread);
            }
        }
        cell.set(list);
        tcb.set_place(k, Place::Ready);
    }

    /// Puts `thread`, which is in no queue and ready since `now`, at the tail of the queue of its priority. Where it is called: a
    /// straight line has no place for what it knows while it calls something.
    #[inline(always)]
    pub fn append(&self, k: &Kernel, thread: Ref<Tcb>, now: u64) {
        let tcb = thread.at(k);
        let links = tcb.ready_links();
        let cell = &self.lists[usize::from(tcb.priority())];
        let mut list = cell.get();
        links.prev.set(list.tail);
        links.next.set(None);
        links.since.set(now);
        match list.tail.replace(thread) {
            Some(tail) => tail.at(k).ready_links().next.set(Some(thread)),
            None => {
                self.taken.insert(tcb.priority());
                list.head = Some(thread);
            }
        }
        cell.set(list);
        tcb.set_place(k, Place::Ready);
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
            self.taken.remove(tcb.priority());
        }
        tcb.set_place(k, Place::None);
    }
}
