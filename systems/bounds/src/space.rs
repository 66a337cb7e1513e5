//! Deep capability spaces, and threads that live in them.

use alloc::vec::Vec;

use sandglass::abi::message::ipc_buffer;
use sandglass::cap::{
    Attributes, CNode, Capability, Frame, FrameSize, GuardData, ObjectType, Rights, SchedContext,
    Slot, Tcb, Untyped,
};
use sandglass::resources::Resources;
use sandglass::thread::ThreadParams;
use sandglass::{Process, SetupError};

use crate::crowd::Member;
use crate::lines;

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
enum Fan {
    /// At the first levels.
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

impl Leaf {
    /// Puts CNodes of `memory` below it, each of which leads on once; the leaf is at their end.
    fn lengthen(
        &mut self,
        resources: &mut Resources,
        memory: Untyped,
        levels: &[Level],
    ) -> Result<(), SetupError> {
        let mut above = None;
        for level in levels {
            let node: CNode = resources.fill_slot(|slot| memory.retype(level.kind(), slot, 1))?;
            for next in level.put(resources, node, *self)? {
                *self = next;
            }
            // The way leads there. Only the last one has to be named.
            if let Some(above) = above.replace(node) {
                resources.delete(above)?;
            }
        }
        Ok(())
    }
}

/// The CNodes of one level: the bits of an address that they take, log2 of their slots, and their guard.
#[derive(Clone, Copy)]
struct Level {
    bits: u32,
    radix: u32,
    guard: GuardData,
    /// The first slot that leads on.
    first: u64,
    /// From one of those to the next.
    step: usize,
}

impl Level {
    /// Of `level` in a space of `levels`.
    fn new(levels: u32, level: u32, fan: Fan) -> Self {
        let bits = 64 / levels;
        let crown = crown(levels);
        let crown_radix = LEAF_BITS / crown;
        let is_stem = match fan {
            Fan::First => level >= crown,
            Fan::Last => level < levels - crown,
        };
        // Where there is room, those that lead on are in lines of their own.
        let is_spread = fan == Fan::First && !is_stem && crown_radix < bits;
        let radix = match is_stem {
            true => 1,
            false => crown_radix + u32::from(is_spread),
        };
        Self {
            bits,
            radix,
            guard: GuardData::new(0, bits - radix),
            first: u64::from(is_stem),
            step: 1 + usize::from(is_spread),
        }
    }

    fn kind(self) -> ObjectType {
        ObjectType::CNode(self.radix)
    }

    /// The slots that lead on from `node`, to which this address leads.
    fn slots(self, node: CNode, address: u64) -> impl Iterator<Item = Leaf> {
        (self.first..1 << self.radix)
            .step_by(self.step)
            .map(move |i| Leaf {
                slot: node.slot_at(i, self.radix as u8),
                address: address.checked_shl(self.bits).unwrap_or(0) | i,
            })
    }

    /// Puts `node` below a slot; returns those that lead on.
    fn put(
        self,
        resources: &Resources,
        node: CNode,
        above: Leaf,
    ) -> Result<impl Iterator<Item = Leaf>, SetupError> {
        let from = resources.slot_of(node);
        above.slot.mint_from(from, Rights::ALL, self.guard.raw())?;
        Ok(self.slots(node, above.address))
    }
}

/// How many levels it takes to fan out, in a space of `levels`.
const fn crown(levels: u32) -> u32 {
    match 64 / levels < LEAF_BITS {
        true => LEAF_BITS * levels / 64,
        false => 1,
    }
}

/// Where the CNodes of a space lie in a cache: the lines of a row ([`lines`]) at which the root, and the way to each leaf, begin.
#[derive(Clone, Copy)]
pub struct Ways {
    pub root: u64,
    pub leaves: [u64; LEAVES as usize],
}

impl Space {
    /// A space of `levels` levels, a power of two up to 64, whose last ones fan out.
    pub fn new(process: &mut Process, levels: u32) -> Result<Self, SetupError> {
        let resources = &mut process.resources;
        let top = Level::new(levels, 0, Fan::Last);
        let root = resources.create(top.kind())?;
        let mut space = Self::at(root, top, levels);
        for level in 1..levels {
            space.grow(resources, Level::new(levels, level, Fan::Last))?;
        }
        Ok(space)
    }

    /// The same, but the first ones fan out: behind them each leaf has a way of its own, whose CNodes lie one behind the other.
    pub fn with_ways(process: &mut Process, levels: u32, ways: &Ways) -> Result<Self, SetupError> {
        let resources = &mut process.resources;
        let top = Level::new(levels, 0, Fan::First);
        let root = lines::object(resources, ways.root, top.kind())?;
        let mut space = Self::at(root, top, levels);
        let crown = crown(levels);
        for level in 1..crown {
            space.grow(resources, Level::new(levels, level, Fan::First))?;
        }
        let stem: Vec<Level> = (crown..levels)
            .map(|level| Level::new(levels, level, Fan::First))
            .collect();
        for (leaf, &line) in space.leaves.iter_mut().zip(&ways.leaves) {
            lines::at(resources, line, stem.len() as u64, |resources, memory| {
                leaf.lengthen(resources, memory, &stem)
            })?;
        }
        Ok(space)
    }

    /// A space that ends below its root.
    fn at(root: CNode, top: Level, levels: u32) -> Self {
        Self {
            levels,
            root,
            guard: top.guard,
            leaves: top.slots(root, 0).collect(),
        }
    }

    /// Goes on one level deeper.
    fn grow(&mut self, resources: &mut Resources, level: Level) -> Result<(), SetupError> {
        let mut next = Vec::new();
        for &above in &self.leaves {
            let node = resources.create(level.kind())?;
            next.extend(level.put(resources, node, above)?);
        }
        self.leaves = next;
        Ok(())
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
        let frame = process.resources.frame(FrameSize::Small)?;
        Self::made_of(process, space, priority, context, tcb, frame)
    }

    /// The same; `frame` is for its buffer.
    pub fn made_of(
        process: &mut Process,
        space: &Space,
        priority: u8,
        context: SchedContext,
        tcb: Tcb,
        frame: Frame,
    ) -> Result<Self, SetupError> {
        let buffer = process.space.map_frame(
            &mut process.resources,
            frame,
            FrameSize::Small,
            Rights::READ_WRITE,
            Attributes::WriteBack,
        )?;
        let vspace = process.space.vspace().root();
        let params = ThreadParams::new(priority, context);
        sandglass::thread::configure(process, tcb, params, None)?;
        tcb.configure(space.root, space.guard, vspace, Some((buffer, frame)))?;
        Ok(Self {
            member: Member { tcb, context },
            buffer: buffer as *mut u64,
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
