//! A look into [`Queue`] and [`Links`].

use super::{Links, Queue};
use crate::inspect::{LinksView, QueueView};

impl Links {
    /// All links and the key.
    pub fn inspect(&self) -> LinksView {
        LinksView {
            parent: self.parent.get(),
            left: self.left.get(),
            right: self.right.get(),
            key: self.key.get(),
            height: self.height.get(),
        }
    }
}

impl Queue {
    /// Where the queue begins.
    pub fn inspect(&self) -> QueueView {
        QueueView {
            root: self.root.get().get(),
            first: self.first.get(),
        }
    }
}
