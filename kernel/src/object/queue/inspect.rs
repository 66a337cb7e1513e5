//! A look into [`Queue`] and [`Links`].

use super::{Branch, Key, Links, EQUAL, RIGHT, USED};
use crate::inspect::{AboveView, BranchView, LinksView, NodeView, QueueView};
use crate::mem::{Packed, Ref};
use crate::object::{Queue, Tcb};
use crate::Kernel;

impl Key {
    /// The rank of a ranked key.
    pub fn rank(self) -> u8 {
        (self.number() >> Self::POSITION_BITS) as u8
    }

    /// Whether it has `bit`.
    pub fn has(self, bit: u32) -> bool {
        self.side(bit as u8) == 1
    }

    /// Whether it agrees with `other` in all bits above `bit`.
    pub fn agrees(self, other: Key, bit: u32) -> bool {
        self.apart(other) >> bit <= 1
    }
}

impl Links {
    /// All links and the key.
    pub fn inspect(&self) -> LinksView {
        let above_leaf = self.above_leaf.get();
        LinksView {
            prev: self.prev.get(),
            next: self.next.get(),
            key: self.key(),
            first_equal: self.first_equal.get(),
            last_equal: above_leaf.get().filter(|_| above_leaf.flags() & EQUAL != 0),
            leaf: (above_leaf.flags() & EQUAL == 0).then(|| above(above_leaf)),
            node: self.has_node().then(|| NodeView {
                bit: (self.fork.bit() & !USED).into(),
                left: self.fork.agreed(),
                above: above(self.above_node.get()),
                branches: [0, 1].map(|side| branch(Some(self.fork.branch(side).get()))),
            }),
        }
    }
}

fn above(word: Packed<Tcb>) -> AboveView {
    AboveView {
        parent: word.get(),
        is_right: word.flags() & RIGHT != 0,
    }
}

fn branch(link: Option<Branch>) -> BranchView {
    match link {
        Some(link) if link.is_node() => BranchView::Node(link.thread()),
        Some(link) => BranchView::Leaf(link.thread()),
        None => BranchView::Nowhere,
    }
}

impl Queue {
    /// Where the queue begins.
    pub fn inspect(&self) -> QueueView {
        QueueView {
            root: branch(self.root.get()),
            first: self.first(),
        }
    }

    /// Whether every invariant of the queue, which is not being emptied, holds. Takes a step for each thread and each of the nodes above it.
    pub fn is_consistent(&self, k: &Kernel) -> bool {
        let mut next = self.first();
        let mut before: Option<Ref<Tcb>> = None;
        let mut first_equal = None;
        let (mut leaves, mut nodes) = (0, 0);
        let mut consistent = true;
        while let Some(thread) = next {
            let links = thread.at(k).links().inspect();
            let key_before = before.map(|before| before.at(k).links().key());
            consistent &= links.prev == before && key_before.is_none_or(|key| key <= links.key);
            let is_last = links
                .next
                .is_none_or(|next| next.at(k).links().key() != links.key);
            consistent &= links.leaf.is_some() == is_last;
            if key_before != Some(links.key) {
                first_equal = Some(thread);
            }
            consistent &= !is_last
                || links.first_equal == first_equal.filter(|&first| first != thread)
                    && first_equal.is_some_and(|first| {
                        let last = first.at(k).links().inspect().last_equal;
                        last == Some(thread).filter(|&last| first != last)
                    });
            leaves += usize::from(is_last);
            nodes += usize::from(links.node.is_some());
            consistent &= links.leaf.is_none_or(|_| self.leads_to(k, thread));
            (before, next) = (Some(thread), links.next);
        }
        let root = branch(self.root.get());
        let is_empty = matches!(root, BranchView::Nowhere);
        consistent && is_empty == self.is_empty() && nodes == leaves.max(1) - 1
    }

    /// Whether the bits of its key lead from the root to the leaf of `thread`, past its own node if that is in the tree,
    /// along branches that name what is above them.
    fn leads_to(&self, k: &Kernel, thread: Ref<Tcb>) -> bool {
        let own = thread.at(k).links().inspect();
        let mut passes = own.node.is_none();
        let mut bits = u64::BITS;
        let mut at = branch(self.root.get());
        let mut from = AboveView {
            parent: None,
            is_right: false,
        };
        while let BranchView::Node(node) = at {
            let links = node.at(k).links().inspect();
            let Some(inner) = links.node else {
                return false;
            };
            let agree = links.key.agrees(own.key, inner.bit)
                && inner.left.agrees(own.key, inner.bit)
                && !inner.left.has(inner.bit);
            if inner.bit >= bits || inner.above != from || !agree {
                return false;
            }
            passes |= node == thread;
            bits = inner.bit;
            let side = usize::from(own.key.has(inner.bit));
            from = AboveView {
                parent: Some(node),
                is_right: side == 1,
            };
            at = inner.branches[side];
        }
        passes && at == BranchView::Leaf(thread) && own.leaf == Some(from)
    }
}
