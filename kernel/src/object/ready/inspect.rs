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
        let word = self.words[usize::from(priority >> 6)].get();
        ReadyView {
            head: list.head,
            tail: list.tail,
            marked: word & 1 << (priority & 63) != 0,
        }
    }
}
