//! The ordered queue: endpoints, notifications and the release queues are one and the same.
//!
//! A red-black tree with parent links, threaded through the TCBs, ordered by [`Key`]. Insertion,
//! removal and every search are O(log n); the first element is O(1).
//!
//! Invariants: keys are unique and in order; a node's children name it as their parent; the root is black, and no red
//! node is below a red one; all ways from the root to where nothing is below have the same number of black nodes;
//! `first` is the leftmost node. A thread is in at most one queue.

#[cfg(not(target_os = "none"))]
mod inspect;

use core::cell::Cell;

use super::Tcb;
use crate::arch::bounds::{turns, HALF_HEIGHT, HEIGHT, MOST_HEIGHT};
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
    is_red: Cell<bool>,
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
            is_red: Cell::new(false),
        }
    }

    /// On which side `child` hangs.
    fn side_of(&self, child: Ref<Tcb>) -> Side {
        if self.left.get() == Some(child) {
            Side::Left
        } else {
            Side::Right
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
        let links = thread.at(k).links();
        let sequence = k.next_sequence();
        links.key.set(Key { rank, sequence });
        links.left.set(None);
        links.right.set(None);
        match self.root.get().get() {
            None => {
                links.parent.set(None);
                links.is_red.set(false);
                self.set_root(k, Some(thread));
                self.first.set(Some(thread));
            }
            Some(root) => {
                links.is_red.set(true);
                self.attach(k, root, thread, rank);
            }
        }
    }

    /// Hangs `thread`, which is red, below the node where a search for the end of those of `rank` ends.
    fn attach(&self, k: &Kernel, root: Ref<Tcb>, thread: Ref<Tcb>, rank: u64) {
        let mut at = root;
        for _ in turns::<HEIGHT, _>(0..MAX_HEIGHT) {
            let links = at.at(k).links();
            let side = if rank < links.key.get().rank {
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
            .is_none_or(|first| rank < first.at(k).links().key.get().rank)
        {
            self.first.set(Some(thread));
        }
        self.separate(k, thread, at);
    }

    /// Removes `thread`, which is in this queue.
    #[inline(always)]
    pub fn remove(&self, k: &Kernel, thread: Ref<Tcb>) {
        let links = thread.at(k).links();
        if self.first.get() == Some(thread)
            && links.parent.get().is_none()
            && links.right.get().is_none()
        {
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
        if let (Some(left), Some(right)) = (links.left.get(), links.right.get()) {
            self.exchange_with_successor(k, thread, left, right);
        }
        let parent = links.parent.get();
        if let Some(child) = links.left.get().or(links.right.get()) {
            // A single child is red and has no children: it takes over the place, and its colour.
            child.at(k).links().is_red.set(false);
            self.replace(k, parent, thread, Some(child));
            return;
        }
        let side = self.replace(k, parent, thread, None);
        if let (false, Some(parent)) = (links.is_red.get(), parent) {
            self.restore_black(k, parent, side);
        }
    }

    /// Exchanges the places and colours of `thread`, which has both children, and of its successor.
    fn exchange_with_successor(
        &self,
        k: &Kernel,
        thread: Ref<Tcb>,
        left: Ref<Tcb>,
        right: Ref<Tcb>,
    ) {
        let successor = leftmost(k, right);
        let (links, next) = (thread.at(k).links(), successor.at(k).links());
        let (parent, below) = (next.parent.get(), next.right.get());
        self.replace(k, links.parent.get(), thread, Some(successor));
        next.left.set(Some(left));
        left.at(k).links().parent.set(Some(successor));
        let is_red = links.is_red.replace(next.is_red.get());
        next.is_red.set(is_red);
        links.left.set(None);
        links.right.set(below);
        if successor == right {
            next.right.set(Some(thread));
            links.parent.set(Some(successor));
        } else {
            next.right.set(Some(right));
            right.at(k).links().parent.set(Some(successor));
            self.replace(k, parent, successor, Some(thread));
        }
    }

    /// Makes `parent` (or the root) lead to `new` where it led to `old`; on which side that is.
    fn replace(
        &self,
        k: &Kernel,
        parent: Option<Ref<Tcb>>,
        old: Ref<Tcb>,
        new: Option<Ref<Tcb>>,
    ) -> Side {
        if let Some(new) = new {
            new.at(k).links().parent.set(parent);
        }
        let Some(parent) = parent else {
            self.set_root(k, new);
            return Side::Left;
        };
        let side = parent.at(k).links().side_of(old);
        parent.at(k).links().child(side).set(new);
        side
    }

    /// `node`, below `parent`, is red: makes it that no red node is below a red one, from there upwards. Each turn goes up
    /// by two.
    fn separate(&self, k: &Kernel, node: Ref<Tcb>, parent: Ref<Tcb>) {
        let (mut node, mut parent) = (node, parent);
        for _ in turns::<HALF_HEIGHT, _>(0..MAX_HEIGHT) {
            let upper = parent.at(k).links();
            if !upper.is_red.get() {
                return;
            }
            let Some(grandparent) = upper.parent.get() else {
                return upper.is_red.set(false);
            };
            let top = grandparent.at(k).links();
            let side = top.side_of(parent);
            match red(k, top.child(side.other()).get()) {
                Some(uncle) => {
                    uncle.at(k).links().is_red.set(false);
                    upper.is_red.set(false);
                    let Some(next) = top.parent.get() else { return };
                    top.is_red.set(true);
                    (node, parent) = (grandparent, next);
                }
                None => {
                    if upper.child(side).get() != Some(node) {
                        self.lift(k, node, parent, side.other());
                        parent = node;
                    }
                    return self.lift(k, parent, grandparent, side);
                }
            }
        }
    }

    /// On the ways over `side` of `parent` there is a black node less than on others: makes up for it, from there upwards.
    /// As long as all nodes around are black, those beside lose one, too; each turn goes up a black node, which are at
    /// most half of a way.
    fn restore_black(&self, k: &Kernel, parent: Ref<Tcb>, side: Side) {
        let (mut parent, mut side) = (parent, side);
        for _ in turns::<HALF_HEIGHT, _>(0..MAX_HEIGHT) {
            let links = parent.at(k).links();
            let Some(sibling) = links.child(side.other()).get() else {
                break;
            };
            let beside = sibling.at(k).links();
            let is_red_around = links.is_red.get()
                || beside.is_red.get()
                || red(k, beside.left.get()).is_some()
                || red(k, beside.right.get()).is_some();
            if is_red_around {
                return self.take_black_from_beside(k, parent, side);
            }
            beside.is_red.set(true);
            let Some(next) = links.parent.get() else {
                return;
            };
            side = next.at(k).links().side_of(parent);
            parent = next;
        }
        never!("where there is a black node more, there is one");
    }

    /// The same where a node around is red.
    #[inline(always)]
    fn take_black_from_beside(&self, k: &Kernel, parent: Ref<Tcb>, side: Side) {
        let links = parent.at(k).links();
        let sibling = links.child(side.other());
        if let Some(sibling) = red(k, sibling.get()) {
            self.lift(k, sibling, parent, side.other());
        }
        let Some(sibling) = sibling.get() else {
            never!("a red node with black ones below has two children");
            return;
        };
        let beside = sibling.at(k).links();
        if let Some(far) = red(k, beside.child(side.other()).get()) {
            far.at(k).links().is_red.set(false);
            self.lift(k, sibling, parent, side.other());
        } else if let Some(near) = red(k, beside.child(side).get()) {
            near.at(k).links().is_red.set(false);
            self.lift(k, near, sibling, side);
            self.lift(k, near, parent, side.other());
        } else {
            beside.is_red.set(true);
            links.is_red.set(false);
        }
    }

    /// `node`, on `side` of `parent`, takes its place and colour, and has it below, in its own colour.
    fn lift(&self, k: &Kernel, node: Ref<Tcb>, parent: Ref<Tcb>, side: Side) {
        let (links, upper) = (node.at(k).links(), parent.at(k).links());
        let inner = links.child(side.other()).get();
        self.replace(k, upper.parent.get(), parent, Some(node));
        upper.child(side).set(inner);
        if let Some(inner) = inner {
            inner.at(k).links().parent.set(Some(parent));
        }
        links.child(side.other()).set(Some(parent));
        upper.parent.set(Some(node));
        let is_red = upper.is_red.replace(links.is_red.get());
        links.is_red.set(is_red);
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

/// `node`, if it is red; where there is none it is black.
fn red(k: &Kernel, node: Option<Ref<Tcb>>) -> Option<Ref<Tcb>> {
    node.filter(|node| node.at(k).links().is_red.get())
}
