//! Temporal capabilities (`sandglass-allocations`), with clients that ask for anything, by any name that they have seen or
//! made up, grant to each other and to themselves, end, and come again.
//!
//! After each step
//! - what the honest client may still reserve is what it could in the beginning, and its quota is untouched;
//! - no rogue has more than its quota.
//!
//! When the rogues have ended, nothing of them counts after the processor was idle, and all that they had can be given
//! to somebody else.

use sandglass_allocations::{
    AllocationId, Allowance, Capability, CapabilityId, Client, ClientId, Kind, Manager, Quota, Rate, Record, Refusal,
    ReservationId, Storage, Task,
};

use crate::promise::promise;
use crate::{Held, Journal, Source};

pub const WHAT: &str = "requests of two rogues beside an honest client, by names that they know or make up";

const ADMITTED: &str = "admitted";
const TOO_MUCH: &str = "too much";
const FORGED: &str = "a name that is not the rogue's";
const FULL: &str = "a quota is used up";
const REVOKED: &str = "a revocation that takes something back";
const HELD: &str = "a removed reservation that still counts";
const ENDED: &str = "a rogue ends";

pub const SITUATIONS: &[&str] = &[ADMITTED, TOO_MUCH, FORGED, FULL, REVOKED, HELD, ENDED];

const POINTS: usize = 3;
const SUPERVISOR: ClientId = ClientId(0);
const ROGUES: [ClientId; 2] = [ClientId(1), ClientId(2)];
const HONEST: ClientId = ClientId(3);
const QUOTA: Quota = Quota {
    records: 5,
    capabilities: 4,
};
/// The same for each of four clients, a root, and what the supervisor gives.
const RECORDS: usize = 1 + 4 * 5;
const CAPABILITIES: usize = 1 + 4 * 4;
/// Steps after which a script ends.
const MOST_STEPS: u32 = 200;

/// What the script is about.
struct World<'s> {
    manager: Manager<'s, POINTS>,
    root: CapabilityId,
    whole: AllocationId,
    /// What each rogue was given.
    given: [AllocationId; 2],
    honest: (CapabilityId, AllocationId),
    now: u64,
    /// Names that rogues have seen.
    capabilities: Vec<CapabilityId>,
    allocations: Vec<AllocationId>,
    reservations: Vec<ReservationId>,
}

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let mut records = vec![Record::FREE; RECORDS];
    let mut capabilities = vec![Capability::FREE; CAPABILITIES];
    let mut clients = [Client::new(QUOTA); 4];
    if source.once_in(2) {
        clients[2] = Client::new(QUOTA).supplied_by(ROGUES[0]);
    }
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let made = Manager::new(storage, 1, SUPERVISOR);
    let Ok((manager, root)) = made else {
        return Err(crate::Broken(format!("the storage does not suffice: {made:?}")));
    };
    let mut world = World::new(manager, root).map_err(|refusal| crate::Broken(format!("at the start: {refusal}")))?;
    let before = world.left_for_honest();
    for _ in 0..MOST_STEPS {
        if source.is_empty() {
            break;
        }
        world.step(source, journal);
        let left = world.left_for_honest();
        promise!(left == before, "the honest client may reserve {left:?}, and could {before:?}");
        for rogue in ROGUES {
            let used = world.manager.used(rogue).unwrap_or_default();
            promise!(
                used.records <= QUOTA.records && used.capabilities <= QUOTA.capabilities,
                "{rogue:?} has {used:?}"
            );
        }
    }
    world.end(journal)
}

impl<'s> World<'s> {
    fn new(mut manager: Manager<'s, POINTS>, root: CapabilityId) -> Result<Self, Refusal> {
        let whole = manager.all_allocations().next().ok_or(Refusal::NotInCapability)?;
        let quarter = Allowance::linear(Rate::at_most(1, 4).unwrap_or_default());
        let mut give = |to: ClientId| -> Result<_, Refusal> {
            let part = manager.add_allocation(SUPERVISOR, root, whole, &quarter)?;
            Ok((manager.derive(SUPERVISOR, root, &[part], to)?, part))
        };
        let [first, second] = ROGUES.map(&mut give);
        let (first, second, honest) = (first?, second?, give(HONEST)?);
        Ok(Self {
            manager,
            root,
            whole,
            given: [first.1, second.1],
            honest,
            now: 0,
            capabilities: vec![root, first.0, second.0, honest.0],
            allocations: vec![whole, first.1, second.1, honest.1],
            reservations: Vec::new(),
        })
    }

    /// Whether the honest client may have a reservation of each of some budgets, and what it has of its quota.
    fn left_for_honest(&mut self) -> ([bool; 3], Quota) {
        let (capability, allocation) = self.honest;
        let could = [10, 25, 26].map(|budget| {
            let task = Task::new(budget, 100, 100);
            task.is_ok_and(|task| self.manager.could_reserve(HONEST, capability, allocation, task).is_ok())
        });
        (could, self.manager.used(HONEST).unwrap_or_default())
    }

    fn step(&mut self, source: &mut Source, journal: &mut Journal) {
        self.now += source.number(0..=60);
        self.manager.settle(0, self.now);
        let rogue = source.one_of(&ROGUES);
        let capability = self.capability(source);
        let allocation = self.allocation(source);
        let to = source.one_of(&[ROGUES[0], ROGUES[1], HONEST, ClientId(9)]);
        let outcome = match source.number(0..=11) {
            0..=2 => self.reserve(source, (rogue, capability, allocation)),
            3..=4 => self.allocate(source, (rogue, capability, allocation)),
            5 => {
                let derived = self.manager.derive(rogue, capability, &[allocation], to);
                derived.map(|made| self.capabilities.push(made))
            }
            6 => {
                let granted = self.manager.grant(rogue, capability, to);
                granted.map(|made| self.capabilities.push(made))
            }
            7 => {
                let supplied = self.manager.implicit(rogue);
                supplied.map(|made| self.capabilities.push(made))
            }
            8 => self.remove(source, (rogue, capability), journal),
            9 => self.manager.remove_allocation(rogue, capability, allocation),
            _ => self.take_back(source, (rogue, capability, allocation), journal),
        };
        journal.step(format_args!("at {}: {rogue:?}: {outcome:?}", self.now));
        match outcome {
            Ok(()) => journal.saw(ADMITTED),
            Err(Refusal::TooMuch(_)) => journal.saw(TOO_MUCH),
            Err(Refusal::RecordQuota { .. } | Refusal::CapabilityQuota { .. }) => journal.saw(FULL),
            Err(Refusal::NotHeld | Refusal::NotInCapability | Refusal::NotBelow) => journal.saw(FORGED),
            Err(_) => {}
        }
    }

    fn reserve(
        &mut self,
        source: &mut Source,
        (rogue, capability, allocation): (ClientId, CapabilityId, AllocationId),
    ) -> Result<(), Refusal> {
        let (budget, period) = (source.number(1..=30), source.one_of(&[100, 100, 200, 1 << 40]));
        let deadline = source.one_of(&[period, period, budget]);
        let Ok(task) = Task::new(budget, period, deadline) else {
            return Ok(());
        };
        let kind = source.one_of(&[Kind::Hard, Kind::Soft]);
        let made = self.manager.add_reservation(rogue, capability, allocation, task, kind)?;
        self.reservations.push(made);
        Ok(())
    }

    fn allocate(
        &mut self,
        source: &mut Source,
        (rogue, capability, allocation): (ClientId, CapabilityId, AllocationId),
    ) -> Result<(), Refusal> {
        let rate = Rate::at_most(source.number(0..=40), 100).unwrap_or_default();
        let made = self.manager.add_allocation(rogue, capability, allocation, &Allowance::linear(rate))?;
        self.allocations.push(made);
        Ok(())
    }

    fn remove(
        &mut self,
        source: &mut Source,
        (rogue, capability): (ClientId, CapabilityId),
        journal: &mut Journal,
    ) -> Result<(), Refusal> {
        if self.reservations.is_empty() {
            return Ok(());
        }
        let chosen = self.reservations[source.index(self.reservations.len())];
        let deadline = self.now + source.number(0..=300);
        let end = |_| Some(deadline);
        let removal = self.manager.remove_reservation(rogue, capability, chosen, self.now, end)?;
        if removal != sandglass_allocations::manager::Removal::Free {
            journal.saw(HELD);
        }
        Ok(())
    }

    fn take_back(
        &mut self,
        source: &mut Source,
        (rogue, capability, allocation): (ClientId, CapabilityId, AllocationId),
        journal: &mut Journal,
    ) -> Result<(), Refusal> {
        let deadline = source.one_of(&[None, Some(self.now + 100), Some(u64::MAX)]);
        let end = |_| deadline;
        let now = self.now;
        let revoked = match source.number(0..=5) {
            0..=1 => self.manager.revoke(rogue, capability, now, end)?,
            2 => self.manager.delete(rogue, capability, now, end)?,
            3..=4 => self.manager.reclaim_allocation(rogue, capability, allocation, now, end)?,
            _ => self.restart(rogue, deadline, journal)?,
        };
        if revoked.capabilities + revoked.reservations > 0 {
            journal.saw(REVOKED);
        }
        Ok(())
    }

    /// A rogue ends, and is started again with what it was given.
    fn restart(
        &mut self,
        rogue: ClientId,
        deadline: Option<u64>,
        journal: &mut Journal,
    ) -> Result<sandglass_allocations::manager::Revoked, Refusal> {
        let revoked = self.manager.end_client(rogue, self.now, |_| deadline)?;
        journal.saw(ENDED);
        let given = self.given[usize::from(rogue == ROGUES[1])];
        let again = self.manager.derive(SUPERVISOR, self.root, &[given], rogue)?;
        self.capabilities.push(again);
        Ok(revoked)
    }

    fn end(&mut self, journal: &mut Journal) -> Held {
        for rogue in ROGUES {
            let ended = self.manager.end_client(rogue, self.now, |_| Some(u64::MAX));
            promise!(ended.is_ok(), "a rogue cannot be ended: {ended:?}");
        }
        // A removed reservation counts for a period at most.
        self.now += 1 << 41;
        self.manager.settle(0, self.now);
        journal.note(format_args!("the rogues have ended"));
        let left: Vec<_> = self.manager.flattened(0).collect();
        promise!(left.is_empty(), "{left:?} is still reserved");
        let used = ROGUES.map(|rogue| self.manager.used(rogue).unwrap_or_default());
        promise!(used == [Quota::default(); 2], "rogues have {used:?} of their quotas");
        for given in self.given {
            let removed = self.manager.remove_allocation(SUPERVISOR, self.root, given);
            promise!(removed.is_ok(), "what a rogue had is not empty: {removed:?}");
        }
        let rest = Allowance::linear(Rate::at_most(3, 4).unwrap_or_default());
        let could = self.manager.could_allocate(SUPERVISOR, self.root, self.whole, &rest);
        promise!(could.is_ok(), "what the rogues had is lost: {could:?}");
        Ok(())
    }

    /// One that was seen, or is made up.
    fn capability(&self, source: &mut Source) -> CapabilityId {
        if source.once_in(16) {
            return CapabilityId::of_word(source.number(0..=u64::MAX));
        }
        // The latest are more often of use.
        let back = source.index(self.capabilities.len().min(8));
        self.capabilities[self.capabilities.len() - 1 - back]
    }

    fn allocation(&self, source: &mut Source) -> AllocationId {
        if source.once_in(16) {
            return AllocationId(sandglass_allocations::records::RecordId::of_word(source.number(0..=u64::MAX)));
        }
        let back = source.index(self.allocations.len().min(8));
        self.allocations[self.allocations.len() - 1 - back]
    }
}
