//! Random operations of clients that are not trusted, with simulated processors; judged after every step.

use std::fmt::Debug;

use fastrand::Rng;
use sandglass_allocations::{
    AllocationId, Allowance, Amount, Capability, CapabilityId, Client, ClientId, Kind, Manager,
    Point, Quota, Rate, Record, Refusal, ReservationId, Storage, Task,
};

use crate::simulation::{Behaviour, Processor};
use crate::{exact, straightforward, tasks};

/// Points of a function.
pub const POINTS: usize = 5;
/// Clients; the last is supplied by the one before it.
const CLIENTS: u16 = 5;
const PROCESSORS: u16 = 2;
const QUOTA: Quota = Quota {
    records: 12,
    capabilities: 6,
};

/// What a sequence was judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Operations that were asked for.
    pub operations: u64,
    /// Functions that were admitted, each followed by the exact test of all that is reserved.
    pub admitted: u64,
    /// Functions that were refused for want of time, as the straightforward test does.
    pub too_much: u64,
    /// Operations refused for other reasons: names, quotas.
    pub refused: u64,
    pub revocations: u64,
    /// Ticks of simulated processors.
    pub simulated: u64,
}

impl std::ops::Add for Judged {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            admitted: self.admitted + other.admitted,
            too_much: self.too_much + other.too_much,
            refused: self.refused + other.refused,
            revocations: self.revocations + other.revocations,
            simulated: self.simulated + other.simulated,
        }
    }
}

/// Does a sequence of so many operations, and returns what was found.
///
/// # Errors
/// Something that must not be: a flattened set that the exact test refuses, a decision that is not the
/// straightforward test's, a missed deadline, something that is left at the end.
pub fn judge(seed: u64, operations: u32) -> Result<Judged, String> {
    let mut records =
        vec![Record::<POINTS>::FREE; usize::from(PROCESSORS) + usize::from(CLIENTS) * 12];
    let mut capabilities = vec![Capability::FREE; 1 + usize::from(CLIENTS) * 6];
    let mut clients = vec![Client::new(QUOTA); usize::from(CLIENTS)];
    clients[usize::from(CLIENTS) - 1] = Client::new(QUOTA).supplied_by(ClientId(CLIENTS - 2));
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let made = Manager::new(storage, PROCESSORS, ClientId(0)).map_err(|error| error.to_string())?;
    let mut run = Run {
        manager: made.0,
        processors: (0..PROCESSORS).map(|_| Processor::new(0)).collect(),
        rng: Rng::with_seed(seed),
        judged: Judged::default(),
    };
    for step in 0..operations {
        run.step()
            .map_err(|what| format!("seed {seed}, step {step}: {what}"))?;
    }
    run.finish()
        .map_err(|what| format!("seed {seed}, at the end: {what}"))?;
    Ok(run.judged)
}

struct Run<'s> {
    manager: Manager<'s, POINTS>,
    processors: Vec<Processor>,
    rng: Rng,
    judged: Judged,
}

impl Run<'_> {
    fn step(&mut self) -> Result<(), String> {
        let later = self.rng.u64(0..30);
        self.pass(later)?;
        self.judged.operations += 1;
        match self.rng.u32(0..20) {
            0..=8 => self.reserve(),
            9..=11 => self.allocate(),
            12..=13 => self.derive(),
            14 => self.grant(),
            15 => self.take_back(),
            16 => self.remove_reservation(),
            17 => self.remove_allocation(),
            18 => self.ask_supplier(),
            _ => self.revoke(),
        }
    }

    /// Time passes.
    fn pass(&mut self, ticks: u64) -> Result<(), String> {
        let manager = &mut self.manager;
        for (number, processor) in (0..).zip(&mut self.processors) {
            processor.run(processor.now() + ticks, |now| {
                manager.settle(number, now);
            });
            if let Some(miss) = processor.misses().first() {
                return Err(format!("on processor {number}, {miss:?}"));
            }
        }
        self.judged.simulated += ticks * u64::from(PROCESSORS);
        Ok(())
    }

    fn reserve(&mut self) -> Result<(), String> {
        let (client, capability, allocation) = self.place();
        let task = tasks::small(&mut self.rng);
        let kind = if self.rng.bool() {
            Kind::Hard
        } else {
            Kind::Soft
        };
        let should = self.straightforward(allocation, &Allowance::of_task(task));
        let made = self
            .manager
            .add_reservation(client, capability, allocation, task, kind);
        if let Ok(id) = made {
            let processor = self.processor_of(id);
            let behaviour = Behaviour::random(&mut self.rng);
            let (later, seed) = (self.rng.u64(0..10), self.rng.u64(..));
            self.processors[processor].add(id, (task, kind), behaviour, later, seed);
        }
        self.agree(&made, should)
    }

    fn allocate(&mut self) -> Result<(), String> {
        let (client, capability, allocation) = self.place();
        let allowance = self.random_allowance();
        let should = self.straightforward(allocation, &allowance);
        let made = self
            .manager
            .add_allocation(client, capability, allocation, &allowance);
        if let Ok(id) = made {
            // Useful to somebody, often.
            if self.rng.u32(0..4) > 0 {
                let to = self.client();
                let derived = self.manager.derive(client, capability, &[id], to);
                self.count(&derived);
            }
        }
        self.agree(&made, should)
    }

    fn derive(&mut self) -> Result<(), String> {
        let (client, capability, _) = self.place();
        let all: Vec<_> = self.manager.all_allocations().collect();
        let count = self.rng.usize(0..4);
        let chosen: Vec<_> = (0..count)
            .map(|_| all[self.rng.usize(..all.len())])
            .collect();
        let to = self.client();
        let derived = self.manager.derive(client, capability, &chosen, to);
        self.count(&derived);
        let stems = |&id: &AllocationId| self.stems_from(id, client, capability);
        let is_right = !chosen.is_empty() && chosen.iter().all(stems);
        if derived.is_ok() && !is_right {
            return Err(format!("{chosen:?} was derived by one who may not"));
        }
        Ok(())
    }

    fn grant(&mut self) -> Result<(), String> {
        let (client, capability, _) = self.place();
        let to = self.client();
        let granted = self.manager.grant(client, capability, to);
        self.count(&granted);
        Ok(())
    }

    fn ask_supplier(&mut self) -> Result<(), String> {
        let client = self.client();
        let supplied = self.manager.implicit(client);
        self.count(&supplied);
        Ok(())
    }

    fn remove_reservation(&mut self) -> Result<(), String> {
        let (client, capability, _) = self.place();
        let processor = self.rng.u16(..PROCESSORS);
        let all: Vec<_> = self
            .manager
            .flattened(processor)
            .map(|reserved| reserved.id)
            .collect();
        if all.is_empty() {
            return Ok(());
        }
        let chosen = all[self.rng.usize(..all.len())];
        let now = self.processors[0].now();
        let processors = &mut self.processors;
        let end = |id| remove(processors, id);
        let removed = self
            .manager
            .remove_reservation(client, capability, chosen, now, end);
        self.count(&removed);
        Ok(())
    }

    fn remove_allocation(&mut self) -> Result<(), String> {
        let (client, capability, _) = self.place();
        let all: Vec<_> = self.manager.all_allocations().collect();
        let chosen = all[self.rng.usize(..all.len())];
        let is_empty = self.manager.functions_in(chosen).next().is_none();
        let removed = self.manager.remove_allocation(client, capability, chosen);
        self.count(&removed);
        if removed.is_ok() && !is_empty {
            return Err(format!("{chosen:?} was removed with something in it"));
        }
        Ok(())
    }

    fn take_back(&mut self) -> Result<(), String> {
        let (client, capability, _) = self.place();
        let all: Vec<_> = self.manager.all_allocations().collect();
        let chosen = all[self.rng.usize(..all.len())];
        let now = self.processors[0].now();
        let processors = &mut self.processors;
        let end = |id| remove(processors, id);
        let removed = self
            .manager
            .reclaim_allocation(client, capability, chosen, now, end);
        self.count(&removed);
        self.ended(removed.is_ok())
    }

    fn revoke(&mut self) -> Result<(), String> {
        let (client, capability, _) = self.place();
        let now = self.processors[0].now();
        let how = self.rng.u32(0..4);
        let processors = &mut self.processors;
        let end = |id| remove(processors, id);
        let revoked = match how {
            0..=1 => self.manager.revoke(client, capability, now, end),
            2 => self.manager.delete(client, capability, now, end),
            _ => self.manager.end_client(client, now, end),
        };
        self.count(&revoked);
        self.ended(revoked.is_ok())
    }

    /// After a revocation, what runs is what is reserved and not leaving.
    fn ended(&mut self, was_revoked: bool) -> Result<(), String> {
        self.judged.revocations += u64::from(was_revoked);
        for (number, processor) in (0..).zip(&self.processors) {
            let reserved = self
                .manager
                .flattened(number)
                .filter(|reserved| !reserved.is_leaving);
            let (reserved, running) = (reserved.count(), processor.servers());
            if reserved != running {
                return Err(format!("{running} servers run, {reserved} are reserved"));
            }
        }
        Ok(())
    }

    /// All clients end, and nothing is left after a while: all of the processors can be allocated again.
    fn finish(&mut self) -> Result<(), String> {
        for client in (0..CLIENTS).map(ClientId) {
            let now = self.processors[0].now();
            let processors = &mut self.processors;
            let ended = self
                .manager
                .end_client(client, now, |id| remove(processors, id));
            self.count(&ended);
        }
        self.pass(2 * tasks::HYPERPERIOD)?;
        for (client, processor) in [(ClientId(0), 0), (ClientId(0), 1)] {
            if self.manager.flattened(processor).next().is_some() {
                return Err(format!("something is reserved on processor {processor}"));
            }
            let capability = self
                .manager
                .held_by(client)
                .next()
                .ok_or("there is no root capability")?;
            let allocations = self
                .manager
                .allocations(client, capability)
                .map_err(|error| error.to_string())?;
            let root = allocations.collect::<Vec<_>>()[usize::from(processor)];
            let all = Allowance::linear(Rate::WHOLE);
            let could = self.manager.could_allocate(client, capability, root, &all);
            could.map_err(|error| format!("time is lost: {error}"))?;
        }
        let used = (0..CLIENTS).map(|client| self.manager.used(ClientId(client)));
        let all_free = used.into_iter().all(|used| used == Ok(Quota::default()));
        all_free
            .then_some(())
            .ok_or_else(|| "a quota is not given back".to_owned())
    }

    /// The manager decides as the straightforward test does, and the exact test agrees with what it admits.
    fn agree<T: Debug>(
        &mut self,
        made: &Result<T, Refusal>,
        should: Option<bool>,
    ) -> Result<(), String> {
        self.count(made);
        match (made, should) {
            (Ok(_), Some(true)) => self.judged.admitted += 1,
            (Err(Refusal::TooMuch(_)), Some(false)) => {
                self.judged.too_much += 1;
                self.judged.refused -= 1;
            }
            (Err(Refusal::TooMuch(_)), _) | (Ok(_), _) => {
                return Err(format!(
                    "{made:?} where the straightforward test says {should:?}"
                ));
            }
            _ => {}
        }
        for processor in 0..PROCESSORS {
            let tasks: Vec<_> = self
                .manager
                .flattened(processor)
                .map(|reserved| reserved.task)
                .collect();
            if !exact::is_schedulable(&tasks) {
                return Err(format!("the exact test refuses {tasks:?}"));
            }
        }
        Ok(())
    }

    fn straightforward(&self, allocation: AllocationId, new: &Allowance<POINTS>) -> Option<bool> {
        let held: Vec<_> = self.manager.functions_in(allocation).collect();
        let allowance = self.manager.allowance(allocation)?;
        Some(straightforward::admits(allowance, &held, new).is_admitted)
    }

    fn count<T>(&mut self, made: &Result<T, Refusal>) {
        self.judged.refused += u64::from(made.is_err());
    }

    fn client(&mut self) -> ClientId {
        ClientId(self.rng.u16(..CLIENTS))
    }

    /// A client, with a capability and an allocation of its; now and then with another's.
    fn place(&mut self) -> (ClientId, CapabilityId, AllocationId) {
        loop {
            let holder = self.client();
            let held: Vec<_> = self.manager.held_by(holder).collect();
            if held.is_empty() {
                continue;
            }
            let capability = held[self.rng.usize(..held.len())];
            let allocations = self.manager.allocations(holder, capability);
            let allocations: Vec<_> = allocations.into_iter().flatten().collect();
            let mut allocation = allocations[self.rng.usize(..allocations.len())];
            if self.rng.u32(0..16) == 0 {
                let all: Vec<_> = self.manager.all_allocations().collect();
                allocation = all[self.rng.usize(..all.len())];
            }
            let is_forged = self.rng.u32(0..16) == 0;
            let client = if is_forged { self.client() } else { holder };
            return (client, capability, allocation);
        }
    }

    fn stems_from(&self, id: AllocationId, client: ClientId, capability: CapabilityId) -> bool {
        let members = self.manager.allocations(client, capability);
        let members: Vec<_> = members.into_iter().flatten().collect();
        let mut above =
            std::iter::successors(self.manager.parent(id), |&id| self.manager.parent(id));
        above.any(|id| members.contains(&id))
    }

    fn processor_of(&self, id: ReservationId) -> usize {
        let is_on = |&processor: &u16| {
            self.manager
                .flattened(processor)
                .any(|reserved| reserved.id == id)
        };
        usize::from((0..PROCESSORS).find(is_on).unwrap_or(0))
    }

    fn random_allowance(&mut self) -> Allowance<POINTS> {
        match self.rng.u32(0..3) {
            0 => Allowance::linear(Rate::at_most(self.rng.u64(1..=8), 10).expect("below 1")),
            1 => self.allowance_of_tasks(),
            _ => self.allowance_of_points(),
        }
    }

    fn allowance_of_tasks(&mut self) -> Allowance<POINTS> {
        loop {
            let count = self.rng.usize(1..4);
            let tasks: Vec<Task> = (0..count).map(|_| tasks::small(&mut self.rng)).collect();
            if let Some(allowance) = Allowance::of_tasks(&tasks) {
                return allowance;
            }
        }
    }

    fn allowance_of_points(&mut self) -> Allowance<POINTS> {
        let (mut at, mut value) = (0, 0);
        let mut points = Vec::new();
        for _ in 0..self.rng.usize(1..=POINTS) {
            let (longer, rate) = (self.rng.u64(1..30), self.rng.u64(0..=6));
            at += longer;
            // What the segment before it reaches, at most, and a jump.
            value += (longer * 6).div_ceil(10) + self.rng.u64(0..4);
            let rate = Rate::at_most(rate, 10).expect("below 1");
            points.push(Point {
                at,
                value: Amount::of_ticks(value.min(at)),
                rate,
            });
            value = value.min(at);
        }
        Allowance::new(&points).expect("the function never falls")
    }
}

fn remove(processors: &mut [Processor], id: ReservationId) -> Option<u64> {
    processors
        .iter_mut()
        .filter_map(|processor| processor.remove(id))
        .next()
}
