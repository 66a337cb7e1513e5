//! What can be asked without changing anything.

use super::{ClientId, Manager, Quota};
use crate::allowance::Allowance;
use crate::capability::CapabilityId;
use crate::records::{AllocationId, Content, ReservationId, NONE};
use crate::refusal::Refusal;
use crate::server::Kind;
use crate::task::Task;

/// A reservation of the flattened view (paper, section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    pub id: ReservationId,
    /// Who made it.
    pub client: ClientId,
    pub task: Task,
    pub kind: Kind,
    /// It was removed, and still counts.
    pub is_leaving: bool,
}

impl<const K: usize> Manager<'_, K> {
    /// Whether A1 would be admitted as things are, quotas aside.
    ///
    /// # Errors
    /// As [`Self::add_reservation`].
    pub fn could_reserve(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
        task: Task,
    ) -> Result<(), Refusal> {
        self.could_allocate(client, capability, allocation, &Allowance::of_task(task))
    }

    /// Whether A2 would be admitted as things are, quotas aside.
    ///
    /// # Errors
    /// As [`Self::add_allocation`].
    pub fn could_allocate(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
        allowance: &Allowance<K>,
    ) -> Result<(), Refusal> {
        let parent = self.member(client, capability, allocation)?;
        let _admission = self.records.admit(parent, allowance)?;
        Ok(())
    }

    /// All reservations of a processor: what is scheduled by deadlines, and what still counts.
    pub fn flattened(&self, processor: u16) -> impl Iterator<Item = Reserved> + '_ {
        let all = 0..self.records.len() as u32;
        all.filter_map(move |index| {
            let record = self.records.at(index);
            let Content::Reservation { task, kind } = record.content else {
                return None;
            };
            (self.records.processor(index) == processor).then_some(Reserved {
                id: ReservationId(self.records.id(index)),
                client: record.maker.client,
                task,
                kind,
                is_leaving: record.leaving.is_some(),
            })
        })
    }

    /// The capabilities that a client holds.
    pub fn held_by(&self, client: ClientId) -> impl Iterator<Item = CapabilityId> + '_ {
        let all = self.capabilities.iter();
        all.filter_map(move |(id, held)| (held.holder == client).then_some(id))
    }

    /// The allocations of a capability that its holder may use.
    ///
    /// # Errors
    /// The client does not hold it.
    pub fn allocations(
        &self,
        client: ClientId,
        capability: CapabilityId,
    ) -> Result<impl Iterator<Item = AllocationId> + '_, Refusal> {
        let held = self.held(client, capability)?;
        Ok(held
            .members()
            .filter(|member| self.records.find(member.0).is_some()))
    }

    /// The allowance of an allocation; `None` if it is gone.
    pub fn allowance(&self, allocation: AllocationId) -> Option<&Allowance<K>> {
        let record = self.records.at(self.records.find(allocation.0)?);
        record.is_allocation().then(|| record.function())
    }

    /// The functions in an allocation, of its sub-allocations and reservations, in no order; what is leaving counts.
    pub fn functions_in(
        &self,
        allocation: AllocationId,
    ) -> impl Iterator<Item = &Allowance<K>> + '_ {
        let found = self.records.find(allocation.0);
        let some = |index: u32| (index != NONE).then_some(index);
        let first = found.and_then(|index| some(self.records.at(index).first_child));
        let all = core::iter::successors(first, move |&index| some(self.records.at(index).next));
        all.map(|index| self.records.at(index).function())
    }

    /// All allocations that can be used, roots among them.
    pub fn all_allocations(&self) -> impl Iterator<Item = AllocationId> + '_ {
        let all = 0..self.records.len() as u32;
        all.filter_map(|index| {
            let record = self.records.at(index);
            let is_usable = record.is_allocation() && record.leaving.is_none();
            is_usable.then(|| AllocationId(self.records.id(index)))
        })
    }

    /// The allocation in which this one is; `None` for a root, and if it is gone.
    pub fn parent(&self, allocation: AllocationId) -> Option<AllocationId> {
        let parent = self.records.at(self.records.find(allocation.0)?).parent;
        (parent != NONE).then(|| AllocationId(self.records.id(parent)))
    }

    /// What a client has of its quota.
    ///
    /// # Errors
    /// There is no such client.
    pub fn used(&self, client: ClientId) -> Result<Quota, Refusal> {
        self.client(client).map(|client| client.used)
    }

    /// Points that the admission test has looked at since the beginning: its cost, each a bounded number of
    /// instructions.
    pub fn steps(&self) -> u64 {
        self.records.steps()
    }
}
