//! A look into [`Queue`] and [`Links`].

use super::{height, leftmost, Links};
use crate::inspect::{LinksView, QueueView};
use crate::mem::Ref;
use crate::object::{Queue, Tcb};
use crate::Kernel;

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

    /// Whether every invariant of the queue holds: order, links both ways, balance, heights, the first
    /// node. Takes a step for each thread.
    pub fn is_consistent(&self, k: &Kernel) -> bool {
        let root = self.root.get().get();
        let mut next = root.map(|root| leftmost(k, root));
        let mut consistent = self.first.get() == next
            && root.is_none_or(|root| root.at(k).links().parent.get().is_none());
        while let Some(node) = next {
            consistent &= is_sound(k, node);
            next = self.first_after(k, node.at(k).links().key.get());
        }
        consistent
    }
}

/// Whether `node` agrees with its children.
fn is_sound(k: &Kernel, node: Ref<Tcb>) -> bool {
    let links = node.at(k).links();
    let (left, right) = (links.left.get(), links.right.get());
    let balanced = height(k, left).abs_diff(height(k, right)) <= 1;
    let linked = [left, right]
        .into_iter()
        .flatten()
        .all(|child| child.at(k).links().parent.get() == Some(node));
    let ordered = left.is_none_or(|left| left.at(k).links().key.get() < links.key.get())
        && right.is_none_or(|right| right.at(k).links().key.get() > links.key.get());
    let described = links.height.get() == 1 + height(k, left).max(height(k, right));
    balanced && linked && ordered && described
}
