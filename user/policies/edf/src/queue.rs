//! A queue of tasks, each at most once, ordered by a time and then by the task's number.
//!
//! A binary heap with the place of every task beside it, so that any task can be taken out. All
//! memory is allocated when the queue is made.

use alloc::vec;
use alloc::vec::Vec;

use crate::scheduler::TaskId;

/// Of a task that is not in the queue.
const NOWHERE: usize = usize::MAX;

/// Invariants: `places[heap[i].task] == i`; no entry is before its parent.
#[derive(Clone, Debug)]
pub struct Queue {
    heap: Vec<Entry>,
    /// By task; [`NOWHERE`] if it is not in the queue.
    places: Vec<usize>,
}

/// Ordered by time, then by task: the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    task: TaskId,
}

impl Queue {
    /// An empty queue for the tasks 0 to `tasks` - 1.
    pub fn new(tasks: usize) -> Self {
        Self {
            heap: Vec::with_capacity(tasks),
            places: vec![NOWHERE; tasks],
        }
    }

    /// The first time, and whose it is. O(1).
    pub fn first(&self) -> Option<(u64, TaskId)> {
        self.heap.first().map(|entry| (entry.time, entry.task))
    }

    /// Adds a task, which must not be in the queue. O(log n).
    ///
    /// # Panics
    /// There is no such task.
    pub fn insert(&mut self, time: u64, task: TaskId) {
        debug_assert_eq!(self.places[task.0], NOWHERE, "{task:?} is queued");
        self.places[task.0] = self.heap.len();
        self.heap.push(Entry { time, task });
        self.rise(self.heap.len() - 1);
    }

    /// Takes a task out, if it is in. O(log n).
    ///
    /// # Panics
    /// There is no such task.
    pub fn remove(&mut self, task: TaskId) {
        let place = self.places[task.0];
        if place == NOWHERE {
            return;
        }
        let last = self.heap.len() - 1;
        self.swap(place, last);
        self.heap.pop();
        self.places[task.0] = NOWHERE;
        if place < last {
            self.rise(place);
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = [2 * place + 1, 2 * place + 2];
            let present = children
                .into_iter()
                .filter(|&child| child < self.heap.len());
            match present.min_by_key(|&child| self.heap[child]) {
                Some(child) if self.heap[child] < self.heap[place] => {
                    self.swap(place, child);
                    place = child;
                }
                _ => return,
            }
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[self.heap[a].task.0] = a;
        self.places[self.heap[b].task.0] = b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const TASKS: usize = 9;

    proptest! {
        #[test]
        fn the_queue_is_an_ordered_set(
            steps in prop::collection::vec((any::<bool>(), 0..TASKS, 0u64..6), 0..200),
        ) {
            let mut queue = Queue::new(TASKS);
            let mut set = BTreeSet::new();
            for (insert, task, time) in steps {
                let queued = set.iter().find(|(_, other)| *other == task).copied();
                match (insert, queued) {
                    (true, None) => {
                        queue.insert(time, TaskId(task));
                        set.insert((time, task));
                    }
                    (true, Some(_)) => {}
                    (false, _) => {
                        queue.remove(TaskId(task));
                        set.retain(|(_, other)| *other != task);
                    }
                }
                let first = queue.first().map(|(time, task)| (time, task.0));
                prop_assert_eq!(first, set.first().copied());
            }
        }
    }
}
