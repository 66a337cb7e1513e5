//! A look into [`ReadyQueues`] and [`ReadyLinks`].

use super::{ReadyLinks, ReadyQueues};
use crate::inspect::{ReadyLinksView, ReadyView};

impl ReadyLinks {
    /// All links.
    pub fn inspect(&self) -> ReadyLinksView {
        ReadyLinksView {
            prev: self.prev.get(),
            next: self.next.get(),
            since: self.since.get(),
        }
    }
}

impl ReadyQueues {
    /// The queue of `priority`.
    pub fn inspect(&self, priority: u8) -> ReadyView {
        let list = self.lists[usize::from(priority)].get();
        ReadyView {
            head: list.head,
            tail: list.tail,
            marked: self.taken.has(priority),
        }
    }
}
