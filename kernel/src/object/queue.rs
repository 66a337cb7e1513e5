//! The ordered queue: endpoints, notifications and the release queues are one and the same.
//!
//! An AVL tree with parent links, threaded through the TCBs, ordered by [`Key`]. Insertion,
//! removal and every search are O(log n); the first element is O(1).
//!
//! Invariants: keys are unique and in order; a node's children name it as their parent; heights of
//! siblings differ by at most one; `height` describes the subtree; `first` is the leftmost node. A
//! thread is in at most one queue.

#[cfg(not(target_os = "none"))]
mod inspect;

use core::cell::Cell;

use super::Tcb;
use crate::arch::bounds::{turns, Turns, HEIGHT, MOST_HEIGHT};
use crate::mem::{Packed, Ref};
use crate::Kernel;

/// No walk takes more steps than this.
const MAX_HEIGHT: usize = MOST_HEIGHT as usize;

const MARK: u64 = 1;
const DYING: u64 = 2;

/// Order in a queue: by `rank`, then by `sequence`, which is unique.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// Release time in ticks, or 255 − priority.
    pub rank: u64,
    /// Position among equals: the kernel's count of insertions.
    pub sequence: u64,
}

/// The two children of a node.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

/// The part of a TCB that belongs to the queue it is in.
pub struct Links {
    parent: Cell<Option<Ref<Tcb>>>,
    left: Cell<Option<Ref<Tcb>>>,
    right: Cell<Option<Ref<Tcb>>>,
    key: Cell<Key>,
    height: Cell<u8>,
}

impl Links {
    pub const fn new() -> Self {
        Links {
            parent: Cell::new(None),
            left: Cell::new(None),
            right: Cell::new(None),
            key: Cell::new(Key {
                rank: 0,
                sequence: 0,
            }),
            height: Cell::new(0),
        }
    }

    fn child(&self, side: Side) -> &Cell<Option<Ref<Tcb>>> {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    cells! {
        /// The key under which the thread was last inserted.
        key: Key;
    }
}

/// A queue of threads. Its root word has a flag of its own, and one for its owner's state, such as that of
/// an endpoint. The zero value is the empty queue without flags.
#[repr(C)]
pub struct Queue {
    root: Cell<Packed<Tcb>>,
    first: Cell<Option<Ref<Tcb>>>,
}

impl Queue {
    pub const fn new() -> Self {
        Queue {
            root: Cell::new(Packed::empty()),
            first: Cell::new(None),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.first.get().is_none()
    }

    cells! {
        /// The thread with the least key.
        first: Option<Ref<Tcb>>;
    }

    fn flags(&self) -> u64 {
        self.root.get().flags()
    }

    fn set_flags(&self, flags: u64) {
        self.root.set(Packed::new(self.root.get().get(), flags));
    }

    /// The owner's flag.
    pub fn mark(&self) -> bool {
        self.flags() & MARK != 0
    }

    #[inline(always)]
    pub fn set_mark(&self, _: &Kernel, mark: bool) {
        let rest = self.flags() & !MARK;
        self.set_flags(if mark { rest | MARK } else { rest });
    }

    /// Whether threads may be queued here, and send, signal or receive: not once the deletion of the last
    /// capability has begun.
    pub fn admits(&self) -> bool {
        self.flags() & DYING == 0
    }

    /// Whether the queue is being emptied.
    pub fn set_dying(&self, _: &Kernel, dying: bool) {
        let rest = self.flags() & !DYING;
        self.set_flags(if dying { rest | DYING } else { rest });
    }

    fn set_root(&self, _: &Kernel, root: Option<Ref<Tcb>>) {
        self.root.set(Packed::new(root, self.flags()));
    }

    /// Inserts `thread`, which is in no queue, with `rank` behind its equals.
    #[inline(always)]
    pub fn insert(&self, k: &Kernel, thread: Ref<Tcb>, rank: u64) {
        let key = Key {
            rank,
            sequence: k.next_sequence(),
        };
        let links = thread.at(k).links();
        links.key.set(key);
        links.left.set(None);
        links.right.set(None);
        links.height.set(1);
        match self.root.get().get() {
            None => {
                links.parent.set(None);
                self.set_root(k, Some(thread));
                self.first.set(Some(thread));
            }
            Some(root) => self.attach(k, root, thread, key),
        }
    }

    /// Hangs `thread` below the node where a search for `key` ends.
    fn attach(&self, k: &Kernel, root: Ref<Tcb>, thread: Ref<Tcb>, key: Key) {
        let mut at = root;
        for _ in turns::<HEIGHT, _>(0..MAX_HEIGHT) {
            let links = at.at(k).links();
            let side = if key < links.key.get() {
                &links.left
            } else {
                &links.right
            };
            match side.get() {
                Some(next) => at = next,
                None => {
                    side.set(Some(thread));
                    break;
                }
            }
        }
        thread.at(k).links().parent.set(Some(at));
        if self
            .first
            .get()
            .is_none_or(|first| key < first.at(k).links().key.get())
        {
            self.first.set(Some(thread));
        }
        self.retrace_growth(k, Some(at));
    }

    /// Removes `thread`, which is in this queue.
    #[inline(always)]
    pub fn remove(&self, k: &Kernel, thread: Ref<Tcb>) {
        let links = thread.at(k).links();
        if links.height.get() == 1 && links.parent.get().is_none() {
            // The only one: the common case of a server's endpoint.
            self.set_root(k, None);
            self.first.set(None);
        } else {
            self.detach(k, thread);
        }
    }

    fn detach(&self, k: &Kernel, thread: Ref<Tcb>) {
        let links = thread.at(k).links();
        if self.first.get() == Some(thread) {
            // The first has nothing on its left, so at most one node on its right: that is next, else its
            // parent.
            self.first.set(links.right.get().or(links.parent.get()));
        }
        let lowest = match (links.left.get(), links.right.get()) {
            (None, child) | (child, None) => {
                self.replace(k, links.parent.get(), thread, child);
                links.parent.get()
            }
            (Some(left), Some(right)) => self.replace_by_successor(k, thread, left, right),
        };
        self.retrace_loss(k, lowest);
    }

    /// Puts the successor of `thread`, which has both children, into its place. Returns the
    /// lowest node whose subtree changed.
    fn replace_by_successor(
        &self,
        k: &Kernel,
        thread: Ref<Tcb>,
        left: Ref<Tcb>,
        right: Ref<Tcb>,
    ) -> Option<Ref<Tcb>> {
        let successor = leftmost(k, right);
        let next = successor.at(k).links();
        let parent = next.parent.get();
        // It takes over the place, and with it the height that the walk upwards compares with.
        next.height.set(thread.at(k).links().height.get());
        let lowest = if successor == right {
            successor
        } else {
            self.replace(k, parent, successor, next.right.get());
            next.right.set(Some(right));
            right.at(k).links().parent.set(Some(successor));
            parent.unwrap_or(successor)
        };
        next.left.set(Some(left));
        left.at(k).links().parent.set(Some(successor));
        self.replace(
            k,
            thread.at(k).links().parent.get(),
            thread,
            Some(successor),
        );
        Some(lowest)
    }

    /// Makes `parent` (or the root) lead to `new` where it led to `old`.
    fn replace(&self, k: &Kernel, parent: Option<Ref<Tcb>>, old: Ref<Tcb>, new: Option<Ref<Tcb>>) {
        match parent {
            None => self.set_root(k, new),
            Some(parent) => {
                let links = parent.at(k).links();
                let side = if links.left.get() == Some(old) {
                    &links.left
                } else {
                    &links.right
                };
                side.set(new);
            }
        }
        if let Some(new) = new {
            new.at(k).links().parent.set(parent);
        }
    }

    /// Restores heights and balance from `at`, below which something grew, upwards, as far as heights
    /// change. Where a rotation is due, it makes the subtree as high as it was.
    fn retrace_growth(&self, k: &Kernel, at: Option<Ref<Tcb>>) {
        let mut at = at;
        for _ in turns::<HEIGHT, _>(0..MAX_HEIGHT) {
            let Some(node) = at else { return };
            let links = node.at(k).links();
            let left = height(k, links.left.get());
            let right = height(k, links.right.get());
            if left > right + 1 {
                self.lean(k, node, Side::Left);
                return;
            }
            if right > left + 1 {
                self.lean(k, node, Side::Right);
                return;
            }
            let now = left.max(right) + 1;
            if links.height.get() == now {
                return;
            }
            links.height.set(now);
            at = links.parent.get();
        }
    }

    /// Restores heights and balance from `at`, below which something shrank, upwards, as far as heights
    /// change. A rotation makes the subtree lower by one if it goes on, and then the next node that needs
    /// one is two higher: each takes two turns.
    fn retrace_loss(&self, k: &Kernel, at: Option<Ref<Tcb>>) {
        let mut at = at;
        let mut turns = Turns::<HEIGHT>::new();
        for _ in 0..MAX_HEIGHT {
            turns.turn();
            let Some(node) = at else { return };
            let links = node.at(k).links();
            let before = links.height.get();
            let left = height(k, links.left.get());
            let right = height(k, links.right.get());
            let top = if left > right + 1 {
                turns.turn();
                self.lean(k, node, Side::Left)
            } else if right > left + 1 {
                turns.turn();
                self.lean(k, node, Side::Right)
            } else {
                links.height.set(left.max(right) + 1);
                node
            };
            let now = top.at(k).links();
            if now.height.get() == before {
                return;
            }
            at = now.parent.get();
        }
    }

    /// The subtree of `node` is too high on `side`, by two. Returns the node that stands there now.
    fn lean(&self, k: &Kernel, node: Ref<Tcb>, side: Side) -> Ref<Tcb> {
        let links = node.at(k).links();
        let Some(high) = links.child(side).get() else {
            never!("the higher side is not empty");
            return node;
        };
        let upper = high.at(k).links();
        let inner = upper.child(side.other()).get();
        let inner_height = height(k, inner);
        let Some(inner) = inner.filter(|_| inner_height > height(k, upper.child(side).get()))
        else {
            // `high` takes the place of `node`, which gets its inner subtree.
            self.replace(k, links.parent.get(), node, Some(high));
            Self::hang(k, node, side, inner);
            upper.child(side.other()).set(Some(node));
            links.parent.set(Some(high));
            links.height.set(inner_height + 1);
            upper.height.set(inner_height + 2);
            return high;
        };
        // The root of the inner subtree takes the place of `node`, and its subtrees go to both.
        let top = inner.at(k).links();
        self.replace(k, links.parent.get(), node, Some(inner));
        Self::hang(k, node, side, top.child(side.other()).get());
        Self::hang(k, high, side.other(), top.child(side).get());
        top.child(side).set(Some(high));
        top.child(side.other()).set(Some(node));
        upper.parent.set(Some(inner));
        links.parent.set(Some(inner));
        links.height.set(inner_height);
        upper.height.set(inner_height);
        top.height.set(inner_height + 1);
        inner
    }

    /// Makes `child` what is below `node` on `side`.
    #[inline(always)]
    fn hang(k: &Kernel, node: Ref<Tcb>, side: Side, child: Option<Ref<Tcb>>) {
        node.at(k).links().child(side).set(child);
        if let Some(child) = child {
            child.at(k).links().parent.set(Some(node));
        }
    }

    /// The first thread whose key is greater than `key`.
    pub fn first_after(&self, k: &Kernel, key: Key) -> Option<Ref<Tcb>> {
        let mut found = None;
        let mut next = self.root.get().get();
        for _ in turns::<HEIGHT, _>(0..MAX_HEIGHT) {
            let Some(at) = next else { break };
            let links = at.at(k).links();
            if links.key.get() > key {
                found = Some(at);
                next = links.left.get();
            } else {
                next = links.right.get();
            }
        }
        found
    }
}

fn leftmost(k: &Kernel, from: Ref<Tcb>) -> Ref<Tcb> {
    let mut at = from;
    for _ in turns::<HEIGHT, _>(0..MAX_HEIGHT) {
        match at.at(k).links().left.get() {
            Some(left) => at = left,
            None => break,
        }
    }
    at
}

fn height(k: &Kernel, node: Option<Ref<Tcb>>) -> u8 {
    node.map_or(0, |node| node.at(k).links().height.get())
}
