//! Constant-bandwidth servers under earliest deadline first, on one processor, without overhead.

use fastrand::Rng;
use sandglass_allocations::{Kind, ReservationId, Server, Task, Turn};

/// What a task does with its reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// A job a period, or less often, that takes the budget at most.
    Honest,
    /// The same, with jobs of up to three budgets.
    Overruns,
    /// The next job comes as soon as the last is done, or a little later.
    Hasty,
    /// One job that never ends.
    Spins,
}

impl Behaviour {
    const ALL: [Self; 4] = [Self::Honest, Self::Overruns, Self::Hasty, Self::Spins];

    pub fn random(rng: &mut Rng) -> Self {
        Self::ALL[rng.usize(..Self::ALL.len())]
    }
}

/// A turn that is not over.
#[derive(Clone, Copy, Debug)]
struct Active {
    turn: Turn,
    budget: u64,
    /// What the job still needs.
    work: u64,
}

#[derive(Clone, Debug)]
struct Simulated {
    id: ReservationId,
    server: Server,
    behaviour: Behaviour,
    active: Option<Active>,
    /// Of the next job, while the server is idle.
    arrival: u64,
    rng: Rng,
}

/// A deadline that was missed: at that time, budget and work were left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    pub id: ReservationId,
    pub task: Task,
    pub deadline: u64,
}

/// One processor.
#[derive(Clone, Debug)]
pub struct Processor {
    now: u64,
    servers: Vec<Simulated>,
    misses: Vec<Miss>,
}

impl Processor {
    pub const fn new(now: u64) -> Self {
        Self {
            now,
            servers: Vec::new(),
            misses: Vec::new(),
        }
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    pub fn misses(&self) -> &[Miss] {
        &self.misses
    }

    /// From now on, a server with a task that behaves so; its first job arrives at once, or `later`.
    pub fn add(
        &mut self,
        id: ReservationId,
        (task, kind): (Task, Kind),
        behaviour: Behaviour,
        later: u64,
        seed: u64,
    ) {
        self.servers.push(Simulated {
            id,
            server: Server::new(task, kind),
            behaviour,
            active: None,
            arrival: self.now + later,
            rng: Rng::with_seed(seed),
        });
    }

    /// Does without a server, at once. Its current deadline; `None` if it had none, or is not here.
    pub fn remove(&mut self, id: ReservationId) -> Option<u64> {
        let place = self.servers.iter().position(|server| server.id == id)?;
        self.servers.swap_remove(place).server.deadline()
    }

    /// Runs until `end`; `idle` is told each instant at which nothing that was released before is unfinished and
    /// something happens.
    pub fn run(&mut self, end: u64, mut idle: impl FnMut(u64)) {
        loop {
            self.arrive();
            if self.is_idle() {
                idle(self.now);
            }
            if self.now >= end {
                return;
            }
            let running = self.choose();
            let next = self.next_event(running).min(end);
            self.execute(running, next - self.now);
            self.now = next;
            self.note_misses();
        }
    }

    /// Nothing that was released before now is unfinished.
    fn is_idle(&self) -> bool {
        let mut active = self.servers.iter().filter_map(|server| server.active);
        active.all(|active| active.turn.release >= self.now)
    }

    fn arrive(&mut self) {
        for server in &mut self.servers {
            if server.active.is_none() && server.arrival <= self.now {
                let turn = server.server.next_turn(self.now);
                let work = server.work();
                let budget = server.server.task().budget();
                server.active = Some(Active { turn, budget, work });
            }
        }
    }

    /// The eligible turn with the earliest deadline.
    fn choose(&self) -> Option<usize> {
        let active = |server: &Simulated| {
            server
                .active
                .filter(|active| active.turn.eligible_at <= self.now)
        };
        let servers = self.servers.iter().enumerate();
        let eligible =
            servers.filter_map(|(index, server)| Some((active(server)?.turn.deadline, index)));
        eligible.min().map(|(_, index)| index)
    }

    fn next_event(&self, running: Option<usize>) -> u64 {
        let done = running.and_then(|index| self.servers[index].active);
        let done = done.map(|active| self.now + active.budget.min(active.work));
        let others = self.servers.iter().flat_map(|server| match server.active {
            None => [Some(server.arrival), None],
            Some(active) => [
                Some(active.turn.eligible_at),
                (active.budget.min(active.work) > 0).then_some(active.turn.deadline),
            ],
        });
        let later = others.flatten().filter(|&time| time > self.now);
        later.chain(done).min().unwrap_or(u64::MAX)
    }

    fn execute(&mut self, running: Option<usize>, ticks: u64) {
        let then = self.now + ticks;
        let Some(server) = running.map(|index| &mut self.servers[index]) else {
            return;
        };
        let Some(active) = &mut server.active else {
            return;
        };
        active.budget -= ticks;
        active.work -= ticks;
        if active.work == 0 {
            let release = active.turn.release;
            server.active = None;
            server.arrival = server.next_arrival(release, then);
        } else if active.budget == 0 {
            active.turn = server.server.next_turn(then);
            active.budget = server.server.task().budget();
        }
    }

    fn note_misses(&mut self) {
        for server in &mut self.servers {
            let Some(active) = server.active else {
                continue;
            };
            if active.turn.deadline <= self.now {
                self.misses.push(Miss {
                    id: server.id,
                    task: server.server.task(),
                    deadline: active.turn.deadline,
                });
                // Once.
                server.active = None;
                server.arrival = self.now;
            }
        }
    }
}

impl Simulated {
    /// Of the next job.
    fn work(&mut self) -> u64 {
        let budget = self.server.task().budget();
        match self.behaviour {
            Behaviour::Honest | Behaviour::Hasty => {
                if self.rng.bool() {
                    budget
                } else {
                    self.rng.u64(1..=budget)
                }
            }
            Behaviour::Overruns => self.rng.u64(1..=3 * budget),
            Behaviour::Spins => u64::MAX / 2,
        }
    }

    fn next_arrival(&mut self, release: u64, now: u64) -> u64 {
        let period = self.server.task().period();
        let later = if self.rng.bool() {
            0
        } else {
            self.rng.u64(0..period)
        };
        match self.behaviour {
            Behaviour::Honest | Behaviour::Overruns => now.max(release + period) + later,
            Behaviour::Hasty | Behaviour::Spins => now + later / 4,
        }
    }
}
