//! Reservations that are replaced all the time, on a processor that is always full: whether the time for which a
//! removed one counts is enough.

use fastrand::Rng;
use sandglass_allocations::{
    AllocationId, Capability, CapabilityId, Client, ClientId, Kind, Manager, Quota, Record,
    ReservationId, Storage, Task,
};

use crate::simulation::{Behaviour, Miss, Processor};

const POINTS: usize = 4;
const RECORDS: u32 = 24;
/// Tasks that are tried, until nothing fits any more, almost.
const CANDIDATES: u32 = 12;
const CLIENT: ClientId = ClientId(0);

/// When a removed reservation counts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// As soon as its server deadline has passed (operation A3 of the paper, as it is written).
    Deadline,
    /// When the processor has been idle after that: what the manager asks for.
    Idle,
}

/// Replaces reservations so many times; the first deadline that is missed.
pub fn replace(seed: u64, times: u32, rule: Rule) -> Option<Miss> {
    let mut records = vec![Record::<POINTS>::FREE; 1 + RECORDS as usize];
    let mut capabilities = [Capability::FREE];
    let mut clients = [Client::new(Quota {
        records: RECORDS,
        capabilities: 0,
    })];
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let (manager, capability) = Manager::new(storage, 1, CLIENT).expect("the storage suffices");
    let root = manager.all_allocations().next().expect("there is a root");
    let mut full = Full {
        manager,
        capability,
        root,
        processor: Processor::new(0),
        rng: Rng::with_seed(seed),
    };
    for _ in 0..times {
        full.fill();
        full.pass(rule);
        full.remove_one();
        full.pass(rule);
        if let Some(&miss) = full.processor.misses().first() {
            return Some(miss);
        }
    }
    None
}

struct Full<'s> {
    manager: Manager<'s, POINTS>,
    capability: CapabilityId,
    root: AllocationId,
    processor: Processor,
    rng: Rng,
}

impl Full<'_> {
    /// Adds what fits, of some tasks.
    fn fill(&mut self) {
        for _ in 0..CANDIDATES {
            let task = self.candidate();
            let kind = if self.rng.u32(0..4) > 0 {
                Kind::Hard
            } else {
                Kind::Soft
            };
            let added =
                self.manager
                    .add_reservation(CLIENT, self.capability, self.root, task, kind);
            if let Ok(id) = added {
                // It takes what it may, at once.
                self.processor.add(id, (task, kind), Behaviour::Spins, 0, 0);
            }
        }
    }

    /// Large in a short interval, often.
    fn candidate(&mut self) -> Task {
        let period = [6, 8, 10, 12][self.rng.usize(..4)];
        let budget = self.rng.u64(period / 3..=period / 2);
        let deadline = self.rng.u64(budget..=period);
        Task::new(budget, period, deadline).expect("the parameters are in order")
    }

    fn remove_one(&mut self) {
        let all: Vec<_> = self
            .manager
            .flattened(0)
            .filter(|reserved| !reserved.is_leaving)
            .collect();
        if all.is_empty() {
            return;
        }
        let chosen = all[self.rng.usize(..all.len())].id;
        let (now, processor) = (self.processor.now(), &mut self.processor);
        let end = |id: ReservationId| processor.remove(id);
        let removed = self
            .manager
            .remove_reservation(CLIENT, self.capability, chosen, now, end);
        let _removal = removed.expect("the client has made it");
    }

    /// A little time passes, tick by tick: what may settle does so at once.
    fn pass(&mut self, rule: Rule) {
        for _ in 0..self.rng.u64(0..6) {
            let manager = &mut self.manager;
            self.processor.run(self.processor.now() + 1, |now| {
                manager.settle(0, now);
            });
            if rule == Rule::Deadline {
                self.manager.settle(0, self.processor.now());
            }
        }
    }
}
