//! The ordered queue: endpoints, notifications and the release queues are one and the same.
//!
//! A list in order, and over it a tree of the bits in which keys differ (PATRICIA, Morrison 1968), both threaded through the
//! TCBs: each has the links of one leaf, and of one inner node (as in Tarreau's elastic binary trees), as n leaves have
//! n - 1 inner nodes above them. An insertion or a search takes a step for each bit of the key at most, and log n where keys
//! are dense; a removal has no loop; the first element is at hand.
//!
//! Invariants: the list is linked both ways, in the order of keys, from `first` on. Of equals, which keep the order in which
//! they came, the last is a leaf, the others are not in the tree; the first and the last name each other. A node tells by its
//! `bit` keys apart that agree in all higher ones: those that have it are below its right branch; both branches lead
//! somewhere, and the leaf of the node's owner is below it; it has a copy of the bits that they agree in. Whoever is below
//! something names it. A thread is in at most one queue. In one, all keys are of one kind: ranks, numbered ranks or times. A
//! queue that is being emptied is a list alone, and keys in it do not matter.

#[cfg(not(target_os = "none"))]
mod inspect;

use core::cell::Cell;
use core::mem::offset_of;

use super::Tcb;
use crate::arch::bounds::Together;
pub use crate::mem::Key;
use crate::mem::{self, Fork, Packed, Ref};
use crate::Kernel;

const MARK: u64 = 1;
const DYING: u64 = 2;

/// Flag of what is above a leaf or a node: it is below the right branch.
const RIGHT: u64 = 1;
/// Flag in place of what is above a leaf: an equal is in the tree; it is named if this is the first of them.
const EQUAL: u64 = 2;

/// In place of the number of a bit: the node is not in the tree.
const UNUSED: u8 = 0;
/// Beside the number of a bit: the node is in the tree. A shift does not see it.
const USED: u8 = u64::BITS as u8;

/// A search looks at each bit in which keys can differ once at most; at the node where it leaves the way that it goes on to
/// beside it, twice.
const STEPS_BY_ALL: u64 = Key::BITS as u64 + 1;
/// Of ranks.
const STEPS_BY_RANK: u64 = u8::BITS as u64 + 1;

type Branch = mem::Branch<Tcb>;

/// Where a search ends: a branch, and a thread beside.
type Found = (Branch, Ref<Tcb>);

impl Key {
    const BITS: u32 = u64::BITS - 1;
    /// Bits of the position among those of a rank.
    const POSITION_BITS: u32 = Self::BITS - u8::BITS;

    /// By `rank`.
    fn ranked(rank: u8) -> Self {
        Self::numbered(rank, 0)
    }

    /// By `rank`, then by `position`, the kernel's count of insertions: unique. Its bits do not run out at one insertion in
    /// 20 ns in 22 years.
    fn numbered(rank: u8, position: u64) -> Self {
        Key::new(u64::from(rank) << Self::POSITION_BITS | position)
    }

    /// The position of a numbered key among those of its rank; 0 of others.
    pub fn position(self) -> u64 {
        self.number() & ((1 << Self::POSITION_BITS) - 1)
    }

    /// In a queue that is ordered by time, in ticks.
    pub fn time(self) -> u64 {
        self.number()
    }
}

/// The part of a TCB that belongs to the queue it is in.
#[repr(C)]
pub struct Links {
    fork: Fork<Tcb>,
    prev: Cell<Option<Ref<Tcb>>>,
    next: Cell<Option<Ref<Tcb>>>,
    /// The thread whose node is above the leaf, and the one whose node is above the node.
    above_leaf: Cell<Packed<Tcb>>,
    above_node: Cell<Packed<Tcb>>,
    /// Of a leaf: the first of its equals, if it has any.
    first_equal: Cell<Option<Ref<Tcb>>>,
}

impl Links {
    /// Where the leaf and the node are in it, in bytes.
    pub const FORK: usize = offset_of!(Links, fork);

    /// Those of `own`.
    pub const fn new(own: Ref<Tcb>) -> Self {
        Links {
            fork: Fork::new(own),
            prev: Cell::new(None),
            next: Cell::new(None),
            above_leaf: Cell::new(Packed::empty()),
            above_node: Cell::new(Packed::empty()),
            first_equal: Cell::new(None),
        }
    }

    cells! {
        /// The thread behind, while it is in a queue.
        next: Option<Ref<Tcb>>;
    }

    /// The key under which the thread was last inserted.
    #[inline(always)]
    pub fn key(&self) -> Key {
        self.fork.key()
    }

    /// Whether the node is in the tree.
    #[inline(always)]
    fn has_node(&self) -> bool {
        self.fork.bit() != UNUSED
    }

    /// The thread gets a leaf of this key, and its node is not in the tree.
    #[inline(always)]
    fn begin(&self, key: Key) {
        self.fork.set_key(key);
        self.fork.set_bit(UNUSED);
        self.first_equal.set(None);
    }
}

/// A queue of threads. Its word for the first one has a flag of its own, and one for its owner's state, such as that of
/// an endpoint. The zero value is the empty queue without flags.
#[repr(C)]
pub struct Queue {
    root: Cell<Option<Branch>>,
    first: Cell<Packed<Tcb>>,
}

impl Queue {
    pub const fn new() -> Self {
        Queue {
            root: Cell::new(None),
            first: Cell::new(Packed::empty()),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The thread with the least key.
    #[inline(always)]
    pub fn first(&self) -> Option<Ref<Tcb>> {
        self.first.get().get()
    }

    #[inline(always)]
    fn set_first(&self, first: Option<Ref<Tcb>>) {
        self.first.set(Packed::new(first, self.flags()));
    }

    /// The only thread of the queue, if no flag is set. The key of that is no other's.
    #[inline(always)]
    pub fn only_unflagged(&self) -> Option<Ref<Tcb>> {
        // Of one, the root is its leaf; of several, a node.
        let root = self.root.get()?;
        root.is_leaf_that(self.first.get()).then(|| root.thread())
    }

    /// Whether nobody is in the queue, and no flag is set.
    pub fn is_clear(&self) -> bool {
        self.first.get().is_zero()
    }

    /// Whether the owner's flag is set, no other is, and nobody is in the queue.
    pub fn is_marked(&self) -> bool {
        self.first.get() == Packed::new(None, MARK)
    }

    /// Removes the only thread of a queue without flags.
    #[inline(always)]
    pub fn remove_only(&self, _: &Kernel) {
        self.root.set(None);
        self.first.set(Packed::empty());
    }

    /// Inserts `thread`, which is in no queue, with `rank` into this one, which [is clear](Self::is_clear).
    #[inline(always)]
    pub fn insert_only(&self, k: &Kernel, thread: Ref<Tcb>, rank: u8) {
        let links = thread.at(k).links();
        links.begin(Key::ranked(rank));
        links.above_leaf.set(Packed::empty());
        links.prev.set(None);
        links.next.set(None);
        self.root.set(Some(Branch::leaf(thread)));
        self.first.set(Packed::new(Some(thread), 0));
    }

    fn flags(&self) -> u64 {
        self.first.get().flags()
    }

    #[inline(always)]
    fn set_flag(&self, flag: u64, on: bool) {
        let flags = if on { flag } else { 0 } | self.flags() & !flag;
        self.first.set(Packed::new(self.first(), flags));
    }

    /// The owner's flag.
    pub fn mark(&self) -> bool {
        self.flags() & MARK != 0
    }

    #[inline(always)]
    pub fn set_mark(&self, _: &Kernel, mark: bool) {
        self.set_flag(MARK, mark);
    }

    /// Whether threads may be queued here, and send, signal or receive: not once the deletion of the last
    /// capability has begun.
    pub fn admits(&self) -> bool {
        self.flags() & DYING == 0
    }

    /// The queue is to be emptied, by [`Self::take_first`]: whoever is in it stays at its place, or [leaves](Self::leave), and
    /// nobody is inserted. So there is no tree any more.
    pub fn begin_emptying(&self, _: &Kernel) {
        self.set_flag(DYING, true);
        self.root.set(None);
    }

    /// The queue is empty.
    pub fn end_emptying(&self, _: &Kernel) {
        self.set_flag(DYING, false);
    }

    /// Removes the first thread of a queue that is being emptied.
    #[inline(always)]
    pub fn take_first(&self, k: &Kernel) -> Option<Ref<Tcb>> {
        let first = self.first()?;
        self.join(k, None, first.at(k).links().next());
        Some(first)
    }

    /// Removes `thread`, which is in this queue, of an object: that may be being emptied.
    pub fn leave(&self, k: &Kernel, thread: Ref<Tcb>) {
        if self.admits() {
            return self.remove(k, thread);
        }
        let links = thread.at(k).links();
        self.join(k, links.prev.get(), links.next());
    }

    /// Inserts `thread`, which is in no queue, with `rank` behind its equals.
    #[inline(always)]
    pub fn insert(&self, k: &Kernel, thread: Ref<Tcb>, rank: u8) {
        self.insert_key::<STEPS_BY_RANK>(k, thread, Key::ranked(rank));
    }

    /// The same, under a key of its own: from there a walk [goes on](Self::first_after) when the thread is gone.
    #[inline(always)]
    pub fn insert_numbered(&self, k: &Kernel, thread: Ref<Tcb>, rank: u8) {
        let key = Key::numbered(rank, k.next_sequence());
        self.insert_key::<STEPS_BY_ALL>(k, thread, key);
    }

    /// Inserts `thread`, which is in no queue, with `time` in ticks behind its equals.
    #[inline(always)]
    pub fn insert_timed(&self, k: &Kernel, thread: Ref<Tcb>, time: u64) {
        self.insert_key::<STEPS_BY_ALL>(k, thread, Key::new(time));
    }

    #[inline(always)]
    fn insert_key<const STEPS: u64>(&self, k: &Kernel, thread: Ref<Tcb>, key: Key) {
        let links = thread.at(k).links();
        links.begin(key);
        let found = if self.is_empty() {
            None
        } else {
            self.search::<STEPS>(k, key)
        };
        if let Some(found) = found {
            return self.attach(k, thread, found);
        }
        links.above_leaf.set(Packed::empty());
        self.root.set(Some(Branch::leaf(thread)));
        self.link(k, None, None, thread);
    }

    /// Puts `thread` among others, where a search for its key ended.
    #[inline(never)]
    fn attach(&self, k: &Kernel, thread: Ref<Tcb>, (at, beside): Found) {
        let (links, key) = (thread.at(k).links(), thread.at(k).links().key());
        let owner = at.thread();
        let other = owner.at(k).links();
        let apart = other.key().apart(key);
        if apart == 0 {
            let first = other.first_equal.take().unwrap_or(owner);
            self.take_over(k, owner, thread);
            other.above_leaf.set(Packed::new(None, EQUAL));
            set_first_equal(k, thread, first);
            return self.link(k, Some(owner), other.next(), thread);
        }
        let above = if at.is_node() {
            other.above_node.get()
        } else {
            other.above_leaf.get()
        };
        let bit = apart.ilog2() as u8;
        let side = key.side(bit);
        links.fork.set_bit(bit | USED);
        links.fork.set_agreed(Key::new(key.number() & !(1 << bit)));
        self.hang(k, above, Branch::node(thread));
        hang_below(k, thread, side, Branch::leaf(thread));
        hang_below(k, thread, 1 - side, at);
        if side == 0 {
            let behind = first_equal(k, beside);
            self.link(k, behind.at(k).links().prev.get(), Some(behind), thread);
        } else {
            self.link(k, Some(beside), beside.at(k).links().next(), thread);
        }
    }

    /// Links `thread` into the list between `prev` and `next`.
    #[inline(always)]
    fn link(&self, k: &Kernel, prev: Option<Ref<Tcb>>, next: Option<Ref<Tcb>>, thread: Ref<Tcb>) {
        self.join(k, prev, Some(thread));
        self.join(k, Some(thread), next);
    }

    /// Makes `next` follow `prev`, or be the first.
    #[inline(always)]
    fn join(&self, k: &Kernel, prev: Option<Ref<Tcb>>, next: Option<Ref<Tcb>>) {
        match prev {
            Some(prev) => prev.at(k).links().next.set(next),
            None => self.set_first(next),
        }
        if let Some(next) = next {
            next.at(k).links().prev.set(prev);
        }
    }

    /// Removes `thread`, which is in this queue. It is not being emptied.
    #[inline(always)]
    pub fn remove(&self, k: &Kernel, thread: Ref<Tcb>) {
        debug_assert!(self.admits());
        // The common case of a server's endpoint.
        if self.is_only(k, thread) {
            self.clear();
        } else {
            self.detach(k, thread);
        }
    }

    /// Whether `thread`, which is in this queue, is the only one.
    #[inline(always)]
    pub fn is_only(&self, k: &Kernel, thread: Ref<Tcb>) -> bool {
        self.first() == Some(thread) && thread.at(k).links().next().is_none()
    }

    /// Removes the only thread.
    #[inline(always)]
    pub fn clear(&self) {
        self.root.set(None);
        self.set_first(None);
    }

    /// The key of the first thread, in a queue that is ordered by time, in ticks; `u64::MAX` without one.
    #[inline(always)]
    pub fn first_time(&self, k: &Kernel) -> u64 {
        self.first()
            .map_or(u64::MAX, |first| first.at(k).links().key().time())
    }

    /// Removes `thread`, which is in this queue, as others are.
    #[inline(never)]
    pub fn detach(&self, k: &Kernel, thread: Ref<Tcb>) {
        let links = thread.at(k).links();
        let (prev, next, above) = (links.prev.get(), links.next(), links.above_leaf.get());
        self.join(k, prev, next);
        if above.flags() & EQUAL != 0 {
            if let (Some(last), Some(next)) = (above.get(), next) {
                set_first_equal(k, last, next);
            }
            return;
        }
        if let (Some(first), Some(prev)) = (links.first_equal.get(), prev) {
            self.take_over(k, thread, prev);
            return set_first_equal(k, prev, first);
        }
        let Some(parent) = above.get() else {
            return self.root.set(None);
        };
        // What is beside takes the place of the node above, which can take over that of the leaf's own thread.
        let node = parent.at(k).links();
        let beside = node.fork.branch(1 - side_of(above)).get();
        self.hang(k, node.above_node.get(), beside);
        node.fork.set_bit(UNUSED);
        self.move_node(k, thread, parent);
    }

    /// The leaf of `to`, which is in the list, and its node take the places of those of `from`.
    #[inline(always)]
    fn take_over(&self, k: &Kernel, from: Ref<Tcb>, to: Ref<Tcb>) {
        let above = from.at(k).links().above_leaf.get();
        self.hang(k, above, Branch::leaf(to));
        self.move_node(k, from, to);
    }

    /// Makes `branch` that of the root, or of what is `above`, and has it name that.
    #[inline(always)]
    fn hang(&self, k: &Kernel, above: Packed<Tcb>, branch: Branch) {
        match above.get() {
            Some(parent) => hang_below(k, parent, side_of(above), branch),
            None => {
                self.root.set(Some(branch));
                set_above(k, branch, above);
            }
        }
    }

    /// The node of `to` takes the place of the node of `from`, if that is in the tree.
    #[inline(never)]
    fn move_node(&self, k: &Kernel, from: Ref<Tcb>, to: Ref<Tcb>) {
        let (old, new) = (from.at(k).links(), to.at(k).links());
        if !old.has_node() {
            return;
        }
        let bit = old.fork.bit();
        old.fork.set_bit(UNUSED);
        new.fork.set_bit(bit);
        new.fork.set_agreed(old.fork.agreed());
        self.hang(k, old.above_node.get(), Branch::node(to));
        hang_below(k, to, 0, old.fork.branch(0).get());
        hang_below(k, to, 1, old.fork.branch(1).get());
    }

    /// The first thread whose key is greater than `key`, which is numbered and that of no other.
    pub fn first_after(&self, k: &Kernel, key: Key) -> Option<Ref<Tcb>> {
        let (_, beside) = self.search::<STEPS_BY_ALL>(k, key)?;
        let links = beside.at(k).links();
        if links.key() > key {
            Some(first_equal(k, beside))
        } else {
            links.next()
        }
    }

    /// Where a search for `key` ends: at the leaf with it, or at the highest branch whose keys differ from it in a bit that they
    /// agree in; and of the threads there, all of which are on one side of the key, the one
    /// next to it. `None` in an empty queue. In `STEPS`, of which there are fewer where keys are ranks.
    #[inline(never)]
    fn search<const STEPS: u64>(&self, k: &Kernel, key: Key) -> Option<Found> {
        let mut steps = Together::<STEPS>::new(true);
        let (mut at, probe) = (self.root.get()?, key.probe());
        // Each node has a lower bit than the one above it: so both loops end.
        while let Some(branch) = at.towards(k, probe) {
            steps.turn();
            at = branch;
        }
        // To the side where the key is.
        let side = usize::from(at.thread().at(k).links().key() < key);
        let mut near = at;
        while let Some(node) = near.as_node() {
            steps.turn();
            near = node.at(k).links().fork.branch(side).get();
        }
        Some((at, near.thread()))
    }
}

/// The first of the equals of `leaf`, itself included.
fn first_equal(k: &Kernel, leaf: Ref<Tcb>) -> Ref<Tcb> {
    leaf.at(k).links().first_equal.get().unwrap_or(leaf)
}

/// Makes `first` the first of the equals of the leaf `last`; none, if it is that.
#[inline(always)]
fn set_first_equal(k: &Kernel, last: Ref<Tcb>, first: Ref<Tcb>) {
    let equal = Some(first).filter(|&first| first != last);
    last.at(k).links().first_equal.set(equal);
    if let Some(first) = equal {
        let named = Packed::new(Some(last), EQUAL);
        first.at(k).links().above_leaf.set(named);
    }
}

fn side_of(above: Packed<Tcb>) -> usize {
    (above.flags() & RIGHT) as usize
}

/// Makes `branch` that of the node of `parent` on `side`, and has it name that.
#[inline(always)]
fn hang_below(k: &Kernel, parent: Ref<Tcb>, side: usize, branch: Branch) {
    parent.at(k).links().fork.branch(side).set(branch);
    set_above(k, branch, Packed::new(Some(parent), side as u64));
}

fn set_above(k: &Kernel, branch: Branch, above: Packed<Tcb>) {
    let links = branch.thread().at(k).links();
    if branch.is_node() {
        links.above_node.set(above);
    } else {
        links.above_leaf.set(above);
    }
}
