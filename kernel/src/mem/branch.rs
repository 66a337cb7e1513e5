//! [`Branch`]: a link of the tree of a queue, and [`Fork`], what it leads to.
//!
//! A search takes many steps, so a step is short: leaves look as nodes do, of another kind of key. What tells keys of one node
//! apart from others is compared all the same, and no key that is searched for agrees with a leaf.

use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::num::NonZeroU64;

use super::{Memory, Packed, Ref};
use crate::arch::{opaque_pointer, Platform};

/// The bit that no key has.
const TOP: u64 = 1 << 63;

/// What queues are ordered by: less than 2^63.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(u64);

impl Key {
    /// Of a `number` below 2^63; of another one, the greatest. Times, in ticks, are below, but for centuries: nobody waits much
    /// longer than for a period from now on, and periods are at most an eighth of what 64 bits count (04, section 1).
    #[inline(always)]
    pub const fn new(number: u64) -> Self {
        Key(if number < TOP { number } else { TOP - 1 })
    }

    pub const fn number(self) -> u64 {
        self.0
    }

    /// The bits in which two keys differ.
    #[inline(always)]
    pub fn apart(self, other: Key) -> u64 {
        self.0 ^ other.0
    }

    /// On which branch of a node for `bit` the key is.
    #[inline(always)]
    pub fn side(self, bit: u8) -> usize {
        (self.0 >> bit & 1) as usize
    }

    /// To search for it.
    #[inline(always)]
    pub fn probe(self) -> Probe {
        Probe(self.0 | TOP)
    }
}

/// A key that is searched for.
#[derive(Clone, Copy)]
pub struct Probe(u64);

/// What a search compares: at a leaf its key, and at a node what all keys below it agree in, and [`TOP`].
#[repr(C)]
struct Entry {
    agreed: Cell<u64>,
    /// Of a node: the number of its bit, which a shift sees alone; at a leaf 0.
    bit: Cell<u8>,
}

/// What has a leaf and a node in a tree.
///
/// # Safety
/// There is a [`Fork`] of the type in each object of it, so many bytes from its beginning.
pub unsafe trait Forked: Sized {
    const FORK: usize;
}

/// The leaf and the node of a thread, in one line of a cache.
#[repr(C, align(64))]
pub struct Fork<T> {
    leaf: Entry,
    node: Entry,
    branches: [Cell<Branch<T>>; 2],
}

/// In the address of a branch: to a node.
const NODE: u64 = (offset_of!(Fork<()>, node) - offset_of!(Fork<()>, leaf)) as u64;
/// From a node to its branches.
const BRANCHES: usize = offset_of!(Fork<()>, branches) - offset_of!(Fork<()>, node);

impl<T: Forked> Fork<T> {
    /// That of `own`.
    pub const fn new(own: Ref<T>) -> Self {
        Fork {
            leaf: Entry {
                agreed: Cell::new(0),
                bit: Cell::new(0),
            },
            node: Entry {
                agreed: Cell::new(TOP),
                bit: Cell::new(0),
            },
            branches: [Cell::new(Branch::leaf(own)), Cell::new(Branch::leaf(own))],
        }
    }

    /// The key of the leaf.
    #[inline(always)]
    pub fn key(&self) -> Key {
        Key(self.leaf.agreed.get())
    }

    #[inline(always)]
    pub fn set_key(&self, key: Key) {
        self.leaf.agreed.set(key.0);
    }

    /// The number of the node's bit, as it was [set](Self::set_bit).
    #[inline(always)]
    pub fn bit(&self) -> u8 {
        self.node.bit.get()
    }

    /// A shift sees the lower six bits.
    #[inline(always)]
    pub fn set_bit(&self, bit: u8) {
        self.node.bit.set(bit);
    }

    /// What all keys below the node agree in, and a zero; whatever is behind does not matter.
    #[inline(always)]
    pub fn agreed(&self) -> Key {
        Key(self.node.agreed.get() & !TOP)
    }

    #[inline(always)]
    pub fn set_agreed(&self, agreed: Key) {
        self.node.agreed.set(agreed.0 | TOP);
    }

    #[inline(always)]
    pub fn branch(&self, side: usize) -> &Cell<Branch<T>> {
        &self.branches[side & 1]
    }
}

/// A link of the tree: to the leaf of a thread, or to its node.
pub struct Branch<T>(NonZeroU64, PhantomData<Ref<T>>);

impl<T: Forked> Branch<T> {
    /// From the beginning of the thread of a branch to the leaf.
    const LEAF: usize = {
        assert!(NODE.is_power_of_two() && NODE < align_of::<T>() as u64);
        T::FORK + offset_of!(Fork<T>, leaf)
    };

    /// To the leaf of `thread`.
    #[inline(always)]
    pub const fn leaf(thread: Ref<T>) -> Self {
        Branch(thread.number(), PhantomData)
    }

    /// To its node.
    #[inline(always)]
    pub fn node(thread: Ref<T>) -> Self {
        Branch(thread.number() | NODE, PhantomData)
    }

    /// Whether it is a leaf, and `other` names its thread and has no flag. `other` has no flag where a node has its mark.
    #[inline(always)]
    pub fn is_leaf_that(self, other: Packed<T>) -> bool {
        other.word() == self.0.get()
    }

    #[inline(always)]
    pub fn is_node(self) -> bool {
        self.0.get() & NODE != 0
    }

    /// The thread whose leaf or node it is.
    #[inline(always)]
    pub fn thread(self) -> Ref<T> {
        // SAFETY: made of the address of a thread, which is aligned to more than `NODE` and is not 0.
        unsafe { Ref::mint_at(self.0.get() & !NODE) }
    }

    /// The thread, if it is its node.
    #[inline(always)]
    pub fn as_node(self) -> Option<Ref<T>> {
        // SAFETY: as in `thread`.
        self.is_node()
            .then(|| unsafe { Ref::mint_at(self.0.get() - NODE) })
    }

    /// The branch of a node on which the key is, if that agrees with the keys below; none of a leaf.
    #[inline(always)]
    pub fn towards(self, k: &Memory, Probe(key): Probe) -> Option<Branch<T>> {
        #[cfg(not(target_os = "none"))]
        let _ = self.thread().at(k);
        let base = k.machine.base().wrapping_add(self.0.get() as usize);
        // Added up once: compilers do it for each access.
        let entry = opaque_pointer(base)
            .wrapping_add(Self::LEAF)
            .cast::<Entry>();
        // SAFETY: a branch is the address of a thread, with or without `NODE`: so this is the leaf or the node of its `Fork`
        // (`Forked`), of which `Ref::at` might borrow the same: shared borrows of cells. Whoever has the branch answers for it
        // that the thread is still there, as for a `Ref`.
        let Entry { agreed, bit } = unsafe { &*entry };
        let side = (agreed.get() ^ key).wrapping_shr(bit.get().into());
        // Not of a leaf: `TOP` is in the key that is searched for, and not in that of a leaf; no shift of `TOP` by less than
        // 63 is below 2, and that of a leaf is by 0.
        (side < 2).then(|| {
            // SAFETY: so it is a node, and its two branches are behind it in the same `Fork`.
            unsafe {
                (*entry.byte_add(BRANCHES).cast::<[Cell<Branch<T>>; 2]>())[side as usize & 1].get()
            }
        })
    }
}

impl<T> Clone for Branch<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Branch<T> {}
