//! A CSpace in which lookups fail in every way that a walk can (ABI 02, section 4).

use crate::prelude::*;

/// A lookup that fails, and what a fault says of it: the failure's type and details.
#[derive(Clone, Debug)]
pub struct Failing {
    pub address: u64,
    pub failure: Vec<u64>,
}

/// A CSpace whose root CNode resolves the first four bits of an address.
#[derive(Clone, Debug)]
pub struct OddSpace {
    pub root: CNode,
    pub failing: Vec<Failing>,
    /// The next slot of the root that is free.
    next: u64,
}

impl OddSpace {
    pub fn new(f: &mut Fixture) -> Result<Self, Failure> {
        // The root resolves 4 bits; slot 1 leads to a CNode with a guard of 50 bits and a radix
        // of 4, whose slots lead to CNodes that 6 bits are left for.
        let (root, middle) = (f.cnode(4)?, f.cnode(4)?);
        let guard = GuardData::new(0x5_5555, 50);
        let guarded = f.process.resources.mint(middle, Rights::ALL, guard.raw())?;
        root.slot_at(1, 4)
            .copy_from(f.slot_of(guarded), Rights::ALL)?;
        let below = |index: u64| 1 << 60 | 0x5_5555 << 10 | index << 6;

        let wide = f.cnode(8)?;
        middle
            .slot_at(1, 4)
            .copy_from(f.slot_of(wide), Rights::ALL)?;
        let narrow = f.cnode(3)?;
        let long_guard = GuardData::new(0x2b, 7);
        let narrow = f
            .process
            .resources
            .mint(narrow, Rights::ALL, long_guard.raw())?;
        middle
            .slot_at(2, 4)
            .copy_from(f.slot_of(narrow), Rights::ALL)?;

        let failing = |address, failure: &[u64]| Failing {
            address,
            failure: failure.into(),
        };
        let space = Self {
            root,
            failing: vec![
                // Another guard than that of the middle CNode.
                failing(below(1) ^ 1 << 30, &[4, 60, 0x5_5555, 50]),
                // A radix larger than what is left.
                failing(below(1), &[3, 6, 8]),
                // A guard longer than what is left.
                failing(below(2), &[4, 6, 0x2b, 7]),
            ],
            next: 2,
        };
        Ok(space)
    }

    /// Puts a copy of a capability into the CSpace; returns its address there. The low 60 bits
    /// of the address are of no account.
    pub fn add(&mut self, f: &Fixture, cap: impl Capability) -> Result<u64, Failure> {
        let index = self.next;
        self.next += 1;
        self.root
            .slot_at(index, 4)
            .copy_from(f.slot_of(cap), Rights::ALL)?;
        Ok(index << 60)
    }

    /// The address of an empty slot.
    pub const fn empty(&self) -> u64 {
        15 << 60
    }

    /// Makes it the CSpace of a thread.
    pub fn give_to(&self, thread: RawThread) -> TestResult {
        thread.use_cspace(self.root, GuardData(0))
    }
}
