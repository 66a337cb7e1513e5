//! A deep capability space: every address leads through as many CNodes as asked for, which share
//! its 64 bits evenly.
//!
//! Those on the way have two slots each, of which one leads on; the rest of their bits are a guard.
//! The last ones fan out to the leaves.

use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::cnode::GuardData;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::rights::Rights;

use crate::machine::{Machine, Refused};
use crate::workshop::Workshop;

/// log2 of the leaves.
const LEAF_BITS: u32 = 2;

/// A slot, named by a CNode, an index and a depth.
#[derive(Clone, Copy)]
struct Place {
    node: u64,
    index: u64,
    depth: u64,
}

pub struct Space {
    /// The root, in the root task's space, and the guard that it is used with.
    pub root: u64,
    pub guard: u64,
    /// What the address of every leaf begins with.
    stem: u64,
    leaves: Vec<Place>,
}

/// The CNodes of one level: log2 of their slots, their guard, and the first slot that leads on.
struct Level {
    radix: u32,
    guard: u64,
    first: u64,
}

impl Level {
    fn new(levels: u32, level: u32) -> Self {
        let bits = 64 / levels;
        let crown_radix = bits.min(LEAF_BITS);
        let is_stem = level < levels - LEAF_BITS / crown_radix;
        let radix = if is_stem { 1 } else { crown_radix };
        Self {
            radix,
            guard: GuardData::new(0, bits - radix).raw(),
            first: u64::from(is_stem),
        }
    }

    fn places(&self, node: u64) -> impl Iterator<Item = Place> {
        let depth = u64::from(self.radix);
        (self.first..1 << self.radix).map(move |index| Place { node, index, depth })
    }
}

impl Space {
    /// A space of `levels` levels, a power of two up to 64.
    pub fn new<M: Machine>(workshop: &mut Workshop<M>, levels: u32) -> Result<Self, Refused> {
        let top = Level::new(levels, 0);
        let root = workshop.make(types::CNODE, u64::from(top.radix), 1)?;
        let mut stem = 0;
        let mut leaves: Vec<Place> = top.places(root).collect();
        for level in 1..levels {
            stem = stem << (64 / levels) | Level::new(levels, level - 1).first;
            let here = Level::new(levels, level);
            let mut next = Vec::new();
            for place in leaves {
                let node = workshop.make(types::CNODE, u64::from(here.radix), 1)?;
                insert(workshop, label::CNODE_MINT, place, node, Some(here.guard))?;
                next.extend(here.places(node));
            }
            leaves = next;
        }
        Ok(Self {
            root,
            guard: top.guard,
            stem: stem.checked_shl(64 / levels).unwrap_or(0),
            leaves,
        })
    }

    /// Address of leaf `i`.
    pub fn address(&self, i: usize) -> u64 {
        self.stem | i as u64
    }

    /// Puts the root of this space into its leaf `i`, so that slots are named by it with all bits.
    pub fn put_root<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        i: usize,
    ) -> Result<(), Refused> {
        let guard = Some(self.guard);
        insert(
            workshop,
            label::CNODE_MINT,
            self.leaves[i],
            self.root,
            guard,
        )
    }

    /// Puts a copy of the capability `cap` of the root task into leaf `i`.
    pub fn copy<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        i: usize,
        cap: u64,
    ) -> Result<(), Refused> {
        insert(workshop, label::CNODE_MINT, self.leaves[i], cap, Some(0))
    }

    /// Empties leaf `i`.
    pub fn clear<M: Machine>(&self, workshop: &mut Workshop<M>, i: usize) -> Result<(), Refused> {
        let place = self.leaves[i];
        let words = [place.index, place.depth];
        let label = label::CNODE_DELETE;
        workshop.machine.invoke(place.node, label, &words, &[])
    }

    /// Moves the capability `cap` of the root task into leaf `i`.
    pub fn take<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        i: usize,
        cap: u64,
    ) -> Result<(), Refused> {
        insert(workshop, label::CNODE_MOVE, self.leaves[i], cap, None)
    }
}

/// Mints a copy of `cap` with `data` into `place`, or moves `cap` there.
fn insert<M: Machine>(
    workshop: &mut Workshop<M>,
    label: u64,
    place: Place,
    cap: u64,
    data: Option<u64>,
) -> Result<(), Refused> {
    let rights = Rights::ALL.raw();
    let words = [place.index, place.depth, cap, 64, rights, data.unwrap_or(0)];
    let count = if data.is_some() { 6 } else { 4 };
    let words = &words[..count];
    workshop
        .machine
        .invoke(place.node, label, words, &[slot::CNODE])
}
