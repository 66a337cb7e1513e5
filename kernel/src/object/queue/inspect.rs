//! A look into [`Queue`] and [`Links`].

use super::{leftmost, red, Links};
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
            is_red: self.is_red.get(),
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

    /// Whether every invariant of the queue holds: order, links both ways, colours, the first node. Takes a step for
    /// each thread and each of those above it.
    pub fn is_consistent(&self, k: &Kernel) -> bool {
        let root = self.root.get().get();
        let mut next = root.map(|root| leftmost(k, root));
        let mut consistent = self.first.get() == next
            && red(k, root).is_none()
            && root.is_none_or(|root| root.at(k).links().parent.get().is_none());
        let mut blacks = None;
        while let Some(node) = next {
            let links = node.at(k).links();
            let is_end = links.left.get().is_none() || links.right.get().is_none();
            consistent &= is_sound(k, node)
                && !(is_end
                    && *blacks.get_or_insert(blacks_above(k, node)) != blacks_above(k, node));
            next = self.first_after(k, links.key.get());
        }
        consistent
    }
}

/// Black nodes on the way from `node` to the root.
fn blacks_above(k: &Kernel, node: Ref<Tcb>) -> usize {
    let above = |node: &Ref<Tcb>| node.at(k).links().parent.get();
    let way = core::iter::successors(Some(node), above);
    way.filter(|&node| red(k, Some(node)).is_none()).count()
}

/// Whether `node` agrees with its children.
fn is_sound(k: &Kernel, node: Ref<Tcb>) -> bool {
    let links = node.at(k).links();
    let (left, right) = (links.left.get(), links.right.get());
    let children = || [left, right].into_iter().flatten();
    let linked = children().all(|child| child.at(k).links().parent.get() == Some(node));
    let ordered = left.is_none_or(|left| left.at(k).links().key.get() < links.key.get())
        && right.is_none_or(|right| right.at(k).links().key.get() > links.key.get());
    let apart = !links.is_red.get() || children().all(|child| red(k, Some(child)).is_none());
    linked && ordered && apart
}
