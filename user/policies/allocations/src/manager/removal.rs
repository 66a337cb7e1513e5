//! Removing: A3, A4, revocation, the end of a client, and what comes of removed reservations.
//!
//! Who calls is asked, for each reservation that goes, for the current deadline of its server, and has its task
//! demoted to best effort: `end`. `None` says that the server never had a turn.

use super::{ClientId, Manager};
use crate::capability::CapabilityId;
use crate::records::{AllocationId, Content, ReservationId};
use crate::refusal::Refusal;

/// What became of a reservation that was removed.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Its server never had a turn: its demand is available again.
    Free,
    /// It counts until this time, and until its processor is idle after that.
    Held { until: u64 },
}

/// What was revoked.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revoked {
    /// Capabilities that are gone.
    pub capabilities: u32,
    /// Reservations that are removed.
    pub reservations: u32,
    /// Of these, how many still count.
    pub held: u32,
}

impl<const K: usize> Manager<'_, K> {
    /// A3: removes a reservation that is directly in one of the capability's allocations. Its task is best effort
    /// from now on.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn remove_reservation(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        reservation: ReservationId,
        now: u64,
        mut end: impl FnMut(ReservationId) -> Option<u64>,
    ) -> Result<Removal, Refusal> {
        let found = self.directly_in(client, capability, reservation.0)?;
        let is_reservation = |&index: &u32| !self.records.at(index).is_allocation();
        let index = found
            .filter(is_reservation)
            .ok_or(Refusal::NoSuchReservation)?;
        Ok(self.end_reservation(index, now, &mut end))
    }

    /// A4: removes an allocation with nothing in it, which is directly in one of the capability's.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn remove_allocation(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
    ) -> Result<(), Refusal> {
        let index = self.sub_allocation(client, capability, allocation)?;
        if self.records.at(index).first_child != crate::records::NONE {
            return Err(Refusal::NotEmpty);
        }
        self.free(index);
        self.sweep(None);
        Ok(())
    }

    /// A4 with all that must come before it: removes an allocation that is directly in one of the capability's, and
    /// everything in it.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn reclaim_allocation(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
        now: u64,
        mut end: impl FnMut(ReservationId) -> Option<u64>,
    ) -> Result<Revoked, Refusal> {
        let index = self.sub_allocation(client, capability, allocation)?;
        let mut revoked = self.clear(index, now, &mut end);
        revoked.capabilities += self.sweep(None);
        Ok(revoked)
    }

    /// Takes back what a capability was used for: all that was made by it and by those that stem from it, and those
    /// themselves. It stays.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn revoke(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        now: u64,
        mut end: impl FnMut(ReservationId) -> Option<u64>,
    ) -> Result<Revoked, Refusal> {
        self.held(client, capability)?;
        Ok(self.revoke_all(capability, now, &mut end))
    }

    /// Revokes a capability, and gives it up.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn delete(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        now: u64,
        mut end: impl FnMut(ReservationId) -> Option<u64>,
    ) -> Result<Revoked, Refusal> {
        if self.held(client, capability)?.origin.is_none() {
            return Err(Refusal::Root);
        }
        let mut revoked = self.revoke_all(capability, now, &mut end);
        self.capabilities.mark(capability);
        revoked.capabilities += self.sweep(None);
        Ok(revoked)
    }

    /// A client has crashed, or is gone: its capabilities are revoked, and are gone, too. (But the root capability
    /// stays, for whoever is started in the client's place.)
    ///
    /// # Errors
    /// There is no such client.
    pub fn end_client(
        &mut self,
        client: ClientId,
        now: u64,
        mut end: impl FnMut(ReservationId) -> Option<u64>,
    ) -> Result<Revoked, Refusal> {
        self.client(client)?;
        let mut all = Revoked::default();
        for place in 0..self.capabilities.len() {
            let Some((id, held)) = self.capabilities.at(place) else {
                continue;
            };
            if held.holder != client {
                continue;
            }
            let is_root = held.origin.is_none();
            all += self.revoke_all(id, now, &mut end);
            if !is_root {
                self.capabilities.mark(id);
                all.capabilities += self.sweep(None);
            }
        }
        Ok(all)
    }

    /// To be called when a processor is idle: at `now`, nothing that was released on it before is unfinished (turns
    /// of soft servers that run before their release may be). Then removed reservations whose time has come count no
    /// more. Returns how many.
    pub fn settle(&mut self, processor: u16, now: u64) -> u32 {
        let mut settled = 0;
        for index in 0..self.records.len() as u32 {
            let record = self.records.at(index);
            let is_reservation = matches!(record.content, Content::Reservation { .. });
            let is_due = record.leaving.is_some_and(|hold| hold <= now);
            if is_reservation && is_due && self.records.processor(index) == processor {
                self.free_upwards(index);
                settled += 1;
            }
        }
        settled
    }

    /// Whether a removed reservation still counts on the processor: whether [`Self::settle`] has something to do.
    pub fn is_settling(&self, processor: u16) -> bool {
        let mut all = 0..self.records.len() as u32;
        all.any(|index| {
            let record = self.records.at(index);
            record.leaving.is_some() && self.records.processor(index) == processor
        })
    }

    /// A record that is directly in one of the capability's allocations, if there is one of that name.
    fn directly_in(
        &self,
        client: ClientId,
        capability: CapabilityId,
        id: crate::records::RecordId,
    ) -> Result<Option<u32>, Refusal> {
        let held = self.held(client, capability)?;
        let is_member = |parent: u32| {
            let mut members = held.members();
            members.any(|member| self.records.find(member.0) == Some(parent))
        };
        let index = self.records.find(id);
        Ok(index.filter(|&index| is_member(self.records.at(index).parent)))
    }

    fn sub_allocation(
        &self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
    ) -> Result<u32, Refusal> {
        let found = self.directly_in(client, capability, allocation.0)?;
        let is_allocation = |&index: &u32| self.records.at(index).is_allocation();
        found.filter(is_allocation).ok_or(Refusal::NoSuchAllocation)
    }

    fn revoke_all(
        &mut self,
        capability: CapabilityId,
        now: u64,
        end: &mut impl FnMut(ReservationId) -> Option<u64>,
    ) -> Revoked {
        let mut revoked = Revoked::default();
        for index in 0..self.records.len() as u32 {
            let record = self.records.at(index);
            let is_used = record.content != Content::Free && record.leaving.is_none();
            if is_used
                && self
                    .capabilities
                    .stems_from(record.maker.capability, capability)
            {
                revoked += self.clear(index, now, end);
            }
        }
        revoked.capabilities += self.sweep(Some(capability));
        revoked
    }

    /// Removes capabilities: those that stem from `origin` and are not it, those that are marked, and those whose
    /// allocations are all gone.
    fn sweep(&mut self, origin: Option<CapabilityId>) -> u32 {
        for place in 0..self.capabilities.len() {
            let Some((id, held)) = self.capabilities.at(place) else {
                continue;
            };
            let stems = origin
                .is_some_and(|origin| id != origin && self.capabilities.stems_from(id, origin));
            let is_empty = !held
                .members()
                .any(|member| self.records.find(member.0).is_some());
            if stems || is_empty {
                self.capabilities.mark(id);
            }
        }
        let mut removed = 0;
        while let Some(charged) = self.capabilities.remove_going() {
            self.clients[usize::from(charged.0)].used.capabilities -= 1;
            removed += 1;
        }
        removed
    }

    /// Removes a record and everything in it, from below.
    fn clear(
        &mut self,
        top: u32,
        now: u64,
        end: &mut impl FnMut(ReservationId) -> Option<u64>,
    ) -> Revoked {
        let mut revoked = Revoked::default();
        let mut current = Some(self.records.deepest(top));
        while let Some(index) = current {
            // Before it may be free.
            current = self.records.after(index, top);
            let record = self.records.at(index);
            if record.leaving.is_some() {
                continue;
            }
            if !record.is_allocation() {
                revoked.reservations += 1;
                let removal = self.end_reservation(index, now, end);
                revoked.held += u32::from(removal != Removal::Free);
            } else if record.first_child == crate::records::NONE {
                self.free(index);
            } else {
                self.records.leave(index, now);
            }
        }
        revoked
    }

    fn end_reservation(
        &mut self,
        index: u32,
        now: u64,
        end: &mut impl FnMut(ReservationId) -> Option<u64>,
    ) -> Removal {
        let record = self.records.at(index);
        let Content::Reservation { task, .. } = record.content else {
            return Removal::Free;
        };
        match end(ReservationId(self.records.id(index))) {
            None => {
                self.free(index);
                Removal::Free
            }
            Some(deadline) => {
                let until = deadline.min(now.saturating_add(task.period()));
                self.records.leave(index, until);
                Removal::Held { until }
            }
        }
    }

    /// Gives back a record, and the allocations above it that were only waiting for it.
    fn free_upwards(&mut self, index: u32) {
        let mut current = index;
        loop {
            let parent = self.records.at(current).parent;
            self.free(current);
            let above = self.records.at(parent);
            if above.leaving.is_none() || above.first_child != crate::records::NONE {
                return;
            }
            current = parent;
        }
    }

    fn free(&mut self, index: u32) {
        let client = self.records.at(index).maker.client;
        self.records.remove(index);
        self.clients[usize::from(client.0)].used.records -= 1;
    }
}

impl core::ops::AddAssign for Revoked {
    fn add_assign(&mut self, other: Self) {
        self.capabilities += other.capabilities;
        self.reservations += other.reservations;
        self.held += other.held;
    }
}
