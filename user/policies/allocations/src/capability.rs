//! Capabilities: who may allocate what, and from whom that comes.

use crate::manager::ClientId;
use crate::records::AllocationId;

/// The most allocations in one capability.
pub const MEMBERS: usize = 16;

/// Names a capability for as long as it exists: never one that has its place later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CapabilityId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl CapabilityId {
    pub(crate) const NONE: Self = Self {
        index: u32::MAX,
        generation: 0,
    };

    /// As one word of a message.
    pub const fn to_word(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`Self::to_word`]. What it names is checked where it is used.
    pub const fn of_word(word: u64) -> Self {
        Self {
            index: word as u32,
            generation: (word >> 32) as u32,
        }
    }
}

/// What a capability is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) holder: ClientId,
    /// The client whose quota it is in: who asked for it.
    pub(crate) charged: ClientId,
    /// What it was derived or granted from; `None`: the root capability.
    pub(crate) origin: Option<CapabilityId>,
    members: [Option<AllocationId>; MEMBERS],
    /// It is found to go, with others; between finding and removing them, chains of origins are whole.
    is_going: bool,
}

impl Held {
    /// A capability of at most [`MEMBERS`] allocations; more are left out.
    pub(crate) fn new(
        holder: ClientId,
        charged: ClientId,
        origin: Option<CapabilityId>,
        allocations: impl Iterator<Item = AllocationId>,
    ) -> Self {
        let mut members = [None; MEMBERS];
        for (member, allocation) in members.iter_mut().zip(allocations) {
            *member = Some(allocation);
        }
        Self {
            holder,
            charged,
            origin,
            members,
            is_going: false,
        }
    }

    /// Its allocations, also those that have been removed since.
    pub(crate) fn members(&self) -> impl Iterator<Item = AllocationId> + '_ {
        self.members.iter().flatten().copied()
    }
}

/// Room for one capability.
#[derive(Clone, Debug)]
pub struct Capability {
    generation: u32,
    held: Option<Held>,
}

impl Capability {
    /// What storage is made of.
    pub const FREE: Self = Self {
        generation: 0,
        held: None,
    };
}

/// All capabilities: a tree of derivation, in storage of the caller's.
#[derive(Debug)]
pub(crate) struct Capabilities<'s> {
    slots: &'s mut [Capability],
}

impl<'s> Capabilities<'s> {
    /// None exists.
    pub(crate) fn new(slots: &'s mut [Capability]) -> Self {
        for slot in slots.iter_mut() {
            slot.held = None;
        }
        Self { slots }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn find(&self, id: CapabilityId) -> Option<&Held> {
        let slot = self.slots.get(id.index as usize)?;
        slot.held
            .as_ref()
            .filter(|_| slot.generation == id.generation)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (CapabilityId, &Held)> + '_ {
        (0..self.slots.len()).filter_map(|index| self.at(index))
    }

    /// The one at this place, if there is one.
    pub(crate) fn at(&self, index: usize) -> Option<(CapabilityId, &Held)> {
        let slot = self.slots.get(index)?;
        let id = CapabilityId {
            index: index as u32,
            generation: slot.generation,
        };
        Some((id, slot.held.as_ref()?))
    }

    /// `None`: there is no room.
    pub(crate) fn insert(&mut self, held: Held) -> Option<CapabilityId> {
        let index = self.slots.iter().position(|slot| slot.held.is_none())?;
        let slot = &mut self.slots[index];
        slot.held = Some(held);
        Some(CapabilityId {
            index: index as u32,
            generation: slot.generation,
        })
    }

    /// To be removed by [`Self::remove_going`].
    pub(crate) fn mark(&mut self, id: CapabilityId) {
        if let Some(held) = &mut self.slots[id.index as usize].held {
            held.is_going = true;
        }
    }

    /// Removes the next one that is marked, and says who is charged for it no more.
    pub(crate) fn remove_going(&mut self) -> Option<ClientId> {
        let is_going = |slot: &Capability| slot.held.as_ref().is_some_and(|held| held.is_going);
        let slot = self.slots.iter_mut().find(|slot| is_going(slot))?;
        slot.generation = slot.generation.wrapping_add(1);
        slot.held.take().map(|held| held.charged)
    }

    /// `id` is `ancestor`, or was derived or granted from it, in any number of steps.
    pub(crate) fn stems_from(&self, id: CapabilityId, ancestor: CapabilityId) -> bool {
        let mut current = Some(id);
        while let Some(id) = current {
            if id == ancestor {
                return true;
            }
            current = self.find(id).and_then(|held| held.origin);
        }
        false
    }
}
