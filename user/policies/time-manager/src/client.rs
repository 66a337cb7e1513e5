//! The side of a client.

use sandglass::cap::Endpoint;
use sandglass::{Environment, Message};
use sandglass_allocations::records::RecordId;
use sandglass_allocations::{AllocationId, Allowance, CapabilityId, Kind, ReservationId, MEMBERS};
use sandglass_description::policy::allocations::{names, POINTS};

use crate::protocol::{ask, outcome, pack, Denial, Reservation, LONGEST_NAME};
use crate::scheduler::turn;

/// A time manager, as a client asks it for time. Requests are answered when no turn runs: a client that asks in its turn
/// loses it.
#[derive(Clone, Copy, Debug)]
pub struct TimeManager {
    requests: Endpoint,
    turns: Endpoint,
}

/// Another client, as the manager knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other(u64);

/// A turn, as its client is told; times are ticks of the time-stamp counter ([`sandglass::time::ticks`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnTurn {
    /// From 0, also over several reservations. The turns of a job that takes more than one budget are counted, too.
    pub number: u64,
    pub release: u64,
    pub deadline: u64,
}

impl TimeManager {
    /// The time manager that the description calls `name`.
    ///
    /// # Panics
    /// The component is none of its clients.
    pub fn described(env: &Environment, name: &str) -> Self {
        Self {
            requests: env.capability(name),
            turns: env.capability(&names::turns(name)),
        }
    }

    /// The capability that this client has, or is supplied with.
    ///
    /// # Errors
    /// It has none, and nobody supplies one.
    pub fn capability(self) -> Result<CapabilityId, Denial> {
        self.ask(ask::CAPABILITY, &[]).map(CapabilityId::of_word)
    }

    /// One of a capability's allocations, by its index from 0.
    ///
    /// # Errors
    /// The capability is not this client's, or has not so many.
    pub fn allocation(
        self,
        capability: CapabilityId,
        index: usize,
    ) -> Result<AllocationId, Denial> {
        let words = [capability.to_word(), index as u64];
        let made = self.ask(ask::ALLOCATION, &words)?;
        Ok(AllocationId(RecordId::of_word(made)))
    }

    /// The client of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn client(self, name: &str) -> Result<Other, Denial> {
        let mut words = [0; LONGEST_NAME / 8];
        let count = pack(name, &mut words);
        self.ask(ask::CLIENT, &words[..count]).map(Other)
    }

    /// A1: a reservation.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn reserve(
        self,
        capability: CapabilityId,
        allocation: AllocationId,
        wanted: Reservation,
    ) -> Result<ReservationId, Denial> {
        let words = [
            capability.to_word(),
            allocation.0.to_word(),
            wanted.budget_us,
            wanted.period_us,
            wanted.deadline_us,
            u64::from(wanted.kind == Kind::Hard),
        ];
        let made = self.ask(ask::RESERVE, &words)?;
        Ok(ReservationId(RecordId::of_word(made)))
    }

    /// A2: a sub-allocation, in µs.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn allocate(
        self,
        capability: CapabilityId,
        allocation: AllocationId,
        allowance: &Allowance<POINTS>,
    ) -> Result<AllocationId, Denial> {
        let mut words = [0; 2 + 4 * POINTS];
        words[0] = capability.to_word();
        words[1] = allocation.0.to_word();
        let points = allowance.points();
        for (place, point) in words[2..].chunks_exact_mut(4).zip(points) {
            place.copy_from_slice(&[
                point.at,
                point.value.ticks(),
                point.value.parts(),
                point.rate.parts(),
            ]);
        }
        let made = self.ask(ask::ALLOCATE, &words[..2 + 4 * points.len()])?;
        Ok(AllocationId(RecordId::of_word(made)))
    }

    /// A3: does without a reservation. Who is attached to it is best effort.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn remove(
        self,
        capability: CapabilityId,
        reservation: ReservationId,
    ) -> Result<(), Denial> {
        let words = [capability.to_word(), reservation.0.to_word()];
        self.ask(ask::REMOVE, &words).map(|_| ())
    }

    /// A4: does without a sub-allocation in which nothing is left.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn close(self, capability: CapabilityId, allocation: AllocationId) -> Result<(), Denial> {
        let words = [capability.to_word(), allocation.0.to_word()];
        self.ask(ask::CLOSE, &words).map(|_| ())
    }

    /// A4, with everything that is in it.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn reclaim(self, capability: CapabilityId, allocation: AllocationId) -> Result<(), Denial> {
        let words = [capability.to_word(), allocation.0.to_word()];
        self.ask(ask::RECLAIM, &words).map(|_| ())
    }

    /// A capability for another client, of allocations below this one's; at most [`MEMBERS`].
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn derive(
        self,
        capability: CapabilityId,
        allocations: &[AllocationId],
        to: Other,
    ) -> Result<CapabilityId, Denial> {
        let mut words = [0; 2 + MEMBERS + 1];
        (words[0], words[1]) = (capability.to_word(), to.0);
        // One too many is refused.
        let places = words[2..].iter_mut();
        for (place, allocation) in places.zip(allocations) {
            *place = allocation.0.to_word();
        }
        let count = 2 + allocations.len().min(MEMBERS + 1);
        self.ask(ask::DERIVE, &words[..count])
            .map(CapabilityId::of_word)
    }

    /// The same capability for another client, too.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn grant(self, capability: CapabilityId, to: Other) -> Result<CapabilityId, Denial> {
        let words = [capability.to_word(), to.0];
        self.ask(ask::GRANT, &words).map(CapabilityId::of_word)
    }

    /// Takes back all that was made with a capability, by whomever.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn revoke(self, capability: CapabilityId) -> Result<(), Denial> {
        self.ask(ask::REVOKE, &[capability.to_word()]).map(|_| ())
    }

    /// The same, and gives the capability up.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn delete(self, capability: CapabilityId) -> Result<(), Denial> {
        self.ask(ask::DELETE, &[capability.to_word()]).map(|_| ())
    }

    /// From the next turn on, this thread, its component's main thread, runs by a reservation that it has made.
    ///
    /// # Errors
    /// [`Denial`]; nothing has changed.
    pub fn attach(
        self,
        capability: CapabilityId,
        reservation: ReservationId,
    ) -> Result<(), Denial> {
        let words = [capability.to_word(), reservation.0.to_word()];
        self.ask(ask::ATTACH, &words).map(|_| ())
    }

    /// Says that its job is done, and waits for its next turn. `None`: it is attached to no reservation, or no more,
    /// and is best effort.
    pub fn next(self) -> Option<OwnTurn> {
        let answer = self.turns.call(Message::EMPTY);
        (answer.label() == turn::BEGINS).then(|| OwnTurn {
            number: answer.word(0),
            release: answer.word(1),
            deadline: answer.word(2),
        })
    }

    fn ask(self, label: u64, words: &[u64]) -> Result<u64, Denial> {
        outcome(self.requests.call(Message::long(label, words)))
    }
}
