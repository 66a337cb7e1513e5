//! What arenas of both kinds are built with.

use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use sandglass::cap::{Attributes, CNode, Capability, ObjectType, Pml4, Rights, Slot};
use sandglass::resources::Resources;
use sandglass::vspace::VSpace;
use sandglass::{boot, SetupError};

use super::Storm;
use crate::actor::Dice;
use crate::area::{
    buffer_address, Area, Control, AREAS_ADDRESS, AREA_BYTES, EDGE_ADDRESS, LOW_ADDRESS, THREADS,
};
use crate::catalogue::{Catalogue, Kind, Node, Position};
use crate::ground::Ground;

/// An arena in the making.
pub struct Builder<'g> {
    pub(super) ground: &'g Ground,
    storm: Storm,
    seed: u64,
    pub(super) resources: Resources,
    catalogue: &'static Catalogue,
    random: Xoshiro256PlusPlus,
    pub(super) main: CNode,
    pub(super) small: CNode,
    /// Slots of the two that are not used yet, in random order.
    free: [Vec<usize>; 2],
}

impl<'g> Builder<'g> {
    /// For an arena with this seed, which takes nothing but [`Ground::resources`].
    pub(super) fn new(ground: &'g Ground, storm: Storm, seed: u64) -> Result<Self, SetupError> {
        let mut resources = ground.resources();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let catalogue = ground.catalogue();
        catalogue.clear();
        let main = resources.cnode(Node::Main.radix())?;
        let small = resources.cnode(Node::Small.radix())?;
        let free = [Node::Main, Node::Small].map(|node| shuffled(node.slots(), &mut random));
        Ok(Self {
            ground,
            storm,
            seed,
            resources,
            catalogue,
            random,
            main,
            small,
            free,
        })
    }

    pub(super) fn dice(&mut self) -> Dice<'_> {
        Dice(&mut self.random)
    }

    /// An address space with everything that threads need.
    pub(super) fn space(&mut self, index: usize) -> Result<Pml4, SetupError> {
        let space = VSpace::new(&mut self.resources)?;
        let ground = self.ground;
        let image = &ground.images[index];
        let image = image.iter().map(|&(at, frame)| (at, frame, Rights::READ));
        let copies = ground.buffer_copies[index].iter().enumerate();
        let buffers = copies.map(|(i, &frame)| (buffer_address(i), frame, Rights::READ_WRITE));
        let areas = (AREAS_ADDRESS, ground.areas[index], Rights::READ_WRITE);
        let edge = (EDGE_ADDRESS, ground.edges[index], Rights::READ);
        let low = (LOW_ADDRESS, ground.low[index], Rights::READ_WRITE);
        let top = (EDGE_ADDRESS, ground.tops[index], Rights::READ_WRITE);
        let ends = match self.storm {
            Storm::Calls => [None, Some(edge)],
            Storm::Instructions => [Some(low), Some(top)],
        };
        let ends = ends.into_iter().flatten();
        for (address, frame, rights) in image.chain(buffers).chain([areas]).chain(ends) {
            // It remembers its mapping in the last arena.
            frame.unmap()?;
            space.map(
                &mut self.resources,
                frame,
                address,
                rights,
                Attributes::WriteBack,
            )?;
        }
        Ok(space.root())
    }

    /// An unused slot of `node`, which is believed to hold a `kind` from now on.
    pub fn slot(&mut self, node: Node, kind: Kind) -> Result<Slot, SetupError> {
        let none = SetupError::NoSlots { wanted: 1 };
        let slot = self.free[node as usize].pop().ok_or(none)?;
        self.catalogue.set(Position { node, slot }, kind);
        let cnode = match node {
            Node::Main => self.main,
            Node::Small => self.small,
        };
        Ok(cnode.slot_at(slot as u64, node.radix() as u8))
    }

    /// Gives the storm a copy of a capability.
    pub(super) fn lend<C: Capability>(
        &mut self,
        node: Node,
        kind: Kind,
        cap: C,
    ) -> Result<(), SetupError> {
        let slot = self.slot(node, kind)?;
        Ok(slot.copy_from(own_slot(cap), Rights::ALL)?)
    }

    /// Gives the storm a capability that the supervisor does not keep.
    pub(super) fn hand_over<C: Capability>(
        &mut self,
        kind: Kind,
        cap: C,
    ) -> Result<(), SetupError> {
        let slot = self.slot(Node::Main, kind)?;
        Ok(slot.move_from(own_slot(cap))?)
    }

    /// Makes `count` objects for the storm alone.
    pub(super) fn make(
        &mut self,
        node: Node,
        kind: Kind,
        object: ObjectType,
        count: usize,
    ) -> Result<(), SetupError> {
        for _ in 0..count {
            let slot = self.slot(node, kind)?;
            self.resources.retype(object, slot, 1)?;
        }
        Ok(())
    }

    /// Sets an area up.
    pub(super) fn area(&mut self, index: usize) {
        let first = self.ground.first_area();
        // SAFETY: `AREAS` of them are mapped, and no thread of the storm runs now.
        let area: &mut Area = unsafe { &mut *first.byte_add(index * AREA_BYTES as usize) };
        let (home, has_shelf) = home(index);
        area.control = Control {
            seed: self.dice().word(),
            starts: AtomicU64::new(0),
            made: AtomicU64::new(0),
            arena: self.seed,
            index: index as u64,
            home,
            has_shelf,
            is_alone: self.ground.controls.len() == 1,
        };
        area.tally.clear();
        area.batch.clear();
    }
}

/// Where the supervisor holds a capability.
pub(super) fn own_slot<C: Capability>(cap: C) -> Slot {
    boot::CNODE.slot(cap.cptr().raw())
}

/// Which CNode thread `index` finds its capabilities in, and whether its CSpace has the shelf.
pub(super) fn home(index: usize) -> (Node, bool) {
    match index % 4 {
        1 => (Node::Main, false),
        2 if index > THREADS / 2 => (Node::Small, false),
        _ => (Node::Main, true),
    }
}

/// The numbers below `count` in random order.
fn shuffled(count: usize, random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        numbers.swap(i, Dice(random).index(i + 1));
    }
    numbers
}
