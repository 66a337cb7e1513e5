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

/// A capability space in which every address leads through as many CNodes as asked for, which share
/// its 64 bits evenly.
///
/// Those on the way have two slots each, of which one leads on; the rest of their bits are a guard.
/// Some fan out to the leaves.
pub struct Space {
    pub levels: u32,
    pub root: CNode,
    pub guard: GuardData,
    leaves: Vec<Leaf>,
}

/// Where CNodes fan out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fan {
    /// At the first levels: each leaf has a way of its own, which no other leaf's shares a line of a cache with.
    First,
    /// At the last ones.
    Last,
}

/// A slot, and what its address begins with.
#[derive(Clone, Copy)]
struct Leaf {
    slot: Slot,
    address: u64,
}

/// The CNodes of one level: log2 of their slots, and their guard.
#[derive(Clone, Copy)]
struct Level {
    radix: u32,
    guard: GuardData,
    /// The first slot that leads on.
    first: u64,
}

impl Level {
    /// Of `level` in a space of `levels`.
    fn new(levels: u32, level: u32, fan: Fan) -> Self {
        let bits = 64 / levels;
        let crown_radix = bits.min(LEAF_BITS);
        let crown = LEAF_BITS / crown_radix;
        let is_stem = match fan {
            Fan::First => level >= crown,
            Fan::Last => level < levels - crown,
        };
        let radix = if is_stem { 1 } else { crown_radix };
        Self {
            radix,
            guard: GuardData::new(0, bits - radix),
            first: u64::from(is_stem),
        }
    }

    /// The slots that lead on from `node`, to which this address leads; each level has so many bits.
    fn slots(self, node: CNode, address: u64, bits: u32) -> impl Iterator<Item = Leaf> {
        (self.first..1 << self.radix).map(move |i| Leaf {
            slot: node.slot_at(i, self.radix as u8),
            address: address.checked_shl(bits).unwrap_or(0) | i,
        })
    }
}

impl Space {
    /// A space of `levels` levels, a power of two up to 64, whose last ones fan out.
    pub fn new(process: &mut Process, levels: u32) -> Result<Self, SetupError> {
        Self::fanned(process, levels, Fan::Last)
    }

    /// A space of `levels` levels, a power of two up to 64.
    pub fn fanned(process: &mut Process, levels: u32, fan: Fan) -> Result<Self, SetupError> {
        let resources = &mut process.resources;
        let bits = 64 / levels;
        let top = Level::new(levels, 0, fan);
        let root = resources.cnode(top.radix)?;
        let mut leaves: Vec<Leaf> = top.slots(root, 0, bits).collect();
        for level in 1..levels {
            let here = Level::new(levels, level, fan);
            let mut next = Vec::new();
            for above in leaves {
                let node = resources.cnode(here.radix)?;
                let from = resources.slot_of(node);
                above.slot.mint_from(from, Rights::ALL, here.guard.raw())?;
                next.extend(here.slots(node, above.address, bits));
            }
            leaves = next;
        }
        assert!(leaves.len() as u64 == LEAVES);
        Ok(Self {
            levels,
            root,
            guard: top.guard,
            leaves,
        })
    }

    /// Address of leaf `i`; behind the last, one at which there is nothing.
    pub fn address(&self, i: u64) -> u64 {
        match self.leaves.get(i as usize) {
            Some(leaf) => leaf.address,
            None => self.leaves[0].address | i,
        }
    }

    /// Slot of leaf `i`.
    pub fn leaf(&self, i: u64) -> Slot {
        self.leaves[i as usize].slot
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
