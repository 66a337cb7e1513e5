//! Deep capability spaces, and threads that live in them.

use alloc::vec::Vec;

use sandglass::abi::message::ipc_buffer;
use sandglass::cap::{CNode, Capability, GuardData, Rights, SchedContext, Slot};
use sandglass::thread::ThreadParams;
use sandglass::{Process, SetupError};

use crate::crowd::Member;

/// log2 of the slots at the end.
const LEAF_BITS: u32 = 4;
pub const LEAVES: u64 = 1 << LEAF_BITS;

/// A capability space in which every address leads through as many CNodes as asked for.
///
/// Each CNode on the way has two slots, and a guard that makes the levels share the 64 bits of an
/// address evenly; where only one bit is left for each level, the last of them fan out.
pub struct Space {
    pub levels: u32,
    pub root: CNode,
    pub guard: GuardData,
    /// What the address of every leaf begins with.
    stem: u64,
    leaves: Vec<Slot>,
}

impl Space {
    /// A space of `levels` levels: 1, 8 or 64.
    pub fn new(process: &mut Process, levels: u32) -> Result<Self, SetupError> {
        let bits = 64 / levels;
        // Bits of an address that each of the CNodes on the stem translates but one are guard.
        let guard = GuardData::new(0, bits - 1);
        let fan_out = bits < LEAF_BITS;
        let stem_levels = if fan_out {
            levels - LEAF_BITS / bits
        } else {
            levels - 1
        };
        let mut stem = 0;
        let resources = &mut process.resources;
        let last_guard = GuardData::new(0, bits.saturating_sub(LEAF_BITS));
        let crown = if fan_out { 1 } else { LEAF_BITS };
        let radix = |level: u32| if level < stem_levels { 1 } else { crown };
        let guard_of = |level: u32| {
            if level < stem_levels || fan_out {
                guard
            } else {
                last_guard
            }
        };
        let root = resources.cnode(radix(0))?;
        let mut tips = alloc::vec![root];
        for level in 1..levels {
            let mut next = Vec::new();
            for &tip in &tips {
                // On the stem, one slot leads on; in the crown, both.
                let first = u64::from(level <= stem_levels);
                for index in first..2 {
                    let node = resources.cnode(radix(level))?;
                    let from = resources.slot_of(node);
                    tip.slot_at(index, radix(level - 1) as u8).mint_from(
                        from,
                        Rights::ALL,
                        guard_of(level).raw(),
                    )?;
                    next.push(node);
                }
            }
            if level <= stem_levels {
                stem = stem << bits | 1;
            }
            tips = next;
        }
        let depth = crown as u8;
        let leaves = tips
            .iter()
            .flat_map(|tip| (0..1u64 << crown).map(move |i| tip.slot_at(i, depth)))
            .collect();
        Ok(Self {
            levels,
            root,
            guard: guard_of(0),
            stem,
            leaves,
        })
    }

    /// Address of leaf `i`.
    pub fn address(&self, i: u64) -> u64 {
        let leaf_bits = if 64 / self.levels < LEAF_BITS {
            LEAF_BITS
        } else {
            64 / self.levels
        };
        if self.levels == 1 {
            i
        } else {
            self.stem << leaf_bits | i
        }
    }

    /// Slot of leaf `i`.
    pub fn leaf(&self, i: u64) -> Slot {
        self.leaves[i as usize]
    }

    /// Puts a copy of `cap`, of this task, into leaf `i`; returns its address.
    pub fn put<C: Capability>(
        &self,
        process: &Process,
        i: u64,
        cap: C,
        rights: Rights,
    ) -> Result<u64, SetupError> {
        self.leaf(i)
            .copy_from(process.resources.slot_of(cap), rights)?;
        Ok(self.address(i))
    }

    /// Puts the root of this space into its leaf `i`, so that slots are named by it with all 64
    /// bits; returns the address.
    pub fn put_root(&self, process: &Process, i: u64) -> Result<u64, SetupError> {
        let from = process.resources.slot_of(self.root);
        self.leaf(i)
            .mint_from(from, Rights::ALL, self.guard.raw())?;
        Ok(self.address(i))
    }

    /// Empties leaf `i`.
    pub fn clear(&self, i: u64) -> Result<(), SetupError> {
        Ok(self.leaf(i).delete()?)
    }
}

/// A thread in a deep capability space, with an IPC buffer.
pub struct Dweller {
    pub member: Member,
    buffer: *mut u64,
}

impl Dweller {
    /// A thread in `space`; it does not run.
    pub fn new(
        process: &mut Process,
        space: &Space,
        priority: u8,
        context: SchedContext,
    ) -> Result<Self, SetupError> {
        let tcb = process.resources.tcb()?;
        let buffer = process.space.map_new(&mut process.resources, 4096)?;
        let frame = buffer.frames().next().expect("a page has a frame");
        let vspace = process.space.vspace().root();
        let params = ThreadParams::new(priority, context);
        sandglass::thread::configure(process, tcb, params, None)?;
        tcb.configure(
            space.root,
            space.guard,
            vspace,
            Some((buffer.address(), frame)),
        )?;
        Ok(Self {
            member: Member { tcb, context },
            buffer: buffer.as_mut_ptr().cast(),
        })
    }

    fn write(&self, word: usize, value: u64) {
        assert!(word < ipc_buffer::WORDS);
        // SAFETY: a word of the buffer, which is this thread's while the other is stopped.
        unsafe { self.buffer.add(word).write_volatile(value) }
    }

    /// Word `i` of its message, if that is not in a register.
    pub fn set_word(&self, i: usize, value: u64) {
        self.write(ipc_buffer::MESSAGE + i, value);
    }

    /// The capabilities that it sends.
    pub fn set_caps(&self, addresses: &[u64]) {
        for (i, &address) in addresses.iter().enumerate() {
            self.write(ipc_buffer::CAPS_OR_BADGES + i, address);
        }
    }

    /// Where it receives a capability: slot `index`, with 64 bits, of the CNode at `node`.
    pub fn set_receive_slot(&self, node: u64, index: u64) {
        self.write(ipc_buffer::RECEIVE_CNODE, node);
        self.write(ipc_buffer::RECEIVE_INDEX, index);
        self.write(ipc_buffer::RECEIVE_DEPTH, 64);
    }
}
