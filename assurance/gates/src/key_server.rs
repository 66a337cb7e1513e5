//! The paper's case study (section VI): a server that signs packets for clients of high and low criticality, in eight phases
//! of failures.
//!
//! With a cycle of 100 ms there are four table-driven clients of high criticality and ten sporadic ones of low criticality.
//! On four cores they are where the paper has them; on fewer, on those cores that there are, with slots that do not overlap.
//! Who there is and who fails when, `key-server-study` says, from which the system in the emulator is made, too.
//! Low-criticality reservations have fixed priorities by period here, where the paper orders them by deadlines: the client
//! that is observed, T1, has no others on its core in the paper's system.

use std::cell::Cell;
use std::rc::Rc;

use key_server_study as paper;
pub use key_server_study::PHASES;
use key_server_study::{Crowd, High, Phases, TICK_MS};
use sandglass_mc_ipc::ClientId;

use crate::client::ClientThread;
use crate::history::History;
use crate::system::{Gates, Paid, Parameters, Protocol, Slot, Spec};
use crate::US;

/// Ticks of a millisecond.
const MS: u64 = 1_000 * US;

/// The client that is observed.
pub const OBSERVED: ClientId = ClientId(0);

/// One run.
#[derive(Clone, Debug)]
pub struct Study {
    pub protocol: Protocol,
    pub paid: Paid,
    /// 1, 2 or 4.
    pub cores: usize,
    /// Milliseconds: a multiple of 100.
    pub phase: u64,
    pub seed: u64,
    /// The longest operation, all included, and what it computes, in ticks.
    pub longest: u64,
    pub operation: u64,
}

impl Study {
    /// As in the paper: operations of 2 ms, phases of a minute.
    pub const fn new(protocol: Protocol, paid: Paid, cores: usize, seed: u64) -> Study {
        Study {
            protocol,
            paid,
            cores,
            phase: 60_000,
            seed,
            longest: paper::OPERATION_MS * MS,
            operation: 1_800_000,
        }
    }

    /// What T1 may wait at most, in ticks, by the protocol's analysis: with FIFO and PRIO as long as nobody fails (section
    /// VI-B).
    pub fn bound(&self) -> u64 {
        let requests = match self.protocol {
            Protocol::McIpc => 1 + 2 * self.cores as u64,
            Protocol::Fifo => 4 + 2 * paper::LOW_PERIODS_MS.len() as u64,
            Protocol::Prio => 2 + 1 + 1,
        };
        requests * self.longest
    }
}

/// What a request of T1 took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delay {
    /// From 1.
    pub phase: usize,
    /// When it was made, in ticks.
    pub at: u64,
    /// Ticks until it was answered.
    pub ticks: u64,
}

const fn in_us(slot: paper::Slot) -> Slot {
    Slot {
        at: slot.at_ms * 1_000,
        length: slot.length_ms * 1_000,
    }
}

/// Phases before this one.
const fn before(phase: usize) -> u64 {
    phase as u64 - 1
}

/// What clients know of the world.
#[derive(Clone)]
struct World {
    /// From 1.
    phase: Rc<Cell<usize>>,
    random: fastrand::Rng,
}

impl World {
    fn is_in(&self, phases: Phases) -> bool {
        phases.contains(self.phase.get())
    }

    /// A job: some processing, and a request of four words.
    async fn job(&mut self, client: &ClientThread) {
        client
            .compute(self.random.u64(0..=paper::PROCESSING_MS * MS))
            .await;
        self.request(client).await;
    }

    async fn request(&mut self, client: &ClientThread) {
        let digest: Vec<u64> = (0..4).map(|_| self.random.u64(..)).collect();
        client.request(&digest).await;
    }

    /// As often as it can.
    async fn flood(&mut self, client: &ClientThread, phases: Phases) {
        while self.is_in(phases) {
            self.request(client).await;
        }
    }
}

/// A table-driven client: one job a slot, but in some phases it floods the server, or does nothing outside of others.
async fn high(mut world: World, client: ClientThread, floods: Phases, only: Option<Phases>) {
    loop {
        client.started().await;
        if only.is_none_or(|phases| world.is_in(phases)) {
            world.job(&client).await;
        }
        world.flood(&client, floods).await;
    }
}

/// A sporadic client: one job a period, but in some phases it floods the server.
async fn low(mut world: World, client: ClientThread, floods: Phases) {
    loop {
        client.started().await;
        world.job(&client).await;
        world.flood(&client, floods).await;
    }
}

/// A sporadic client that there is in one phase only: one job a period.
async fn launched(mut world: World, client: ClientThread, phase: usize) {
    loop {
        client.started().await;
        if world.is_in(Phases::of(&[phase])) {
            world.job(&client).await;
        }
    }
}

/// A client without a reservation that there is in one phase only.
async fn best_effort(mut world: World, client: ClientThread, phase: usize) {
    loop {
        client.started().await;
        while world.is_in(Phases::of(&[phase])) {
            world.job(&client).await;
        }
    }
}

/// When a client begins with its jobs, in ms.
struct Start {
    client: ClientId,
    first: u64,
    every: Option<u64>,
}

impl Start {
    fn is_at(&self, time: u64) -> bool {
        match self.every {
            Some(period) => time >= self.first && (time - self.first).is_multiple_of(period),
            None => time == self.first,
        }
    }
}

/// Runs the study: what T1's requests took, and all that happened.
pub fn run(study: &Study) -> (Vec<Delay>, History) {
    let parameters = Parameters {
        cores: study.cores,
        protocol: study.protocol,
        paid: study.paid,
        operation: study.operation..=study.operation,
        gate_core: study.cores - 1,
        table_period: if study.cores == 1 { 25_000 } else { 50_000 },
        seed: study.seed,
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    let phase = Rc::new(Cell::new(1));
    let mut seeds = fastrand::Rng::with_seed(study.seed);
    let mut world = || World {
        phase: Rc::clone(&phase),
        random: fastrand::Rng::with_seed(seeds.u64(..)),
    };
    let high_ones = paper::high(study.cores);
    for (number, High { core, slot, floods }) in high_ones.into_iter().enumerate() {
        let spec = Spec::table_driven(core, 200 + 2 * number as u8, &[in_us(slot)]);
        let world = world();
        gates.client(spec, |client| high(world, client, floods, None));
    }
    let mut starts = Vec::new();
    for (which, core) in paper::low_cores(study.cores).into_iter().enumerate() {
        for (number, period) in paper::LOW_PERIODS_MS.into_iter().enumerate() {
            let priority = 60 - 2 * number as u8;
            let spec = Spec::sporadic(core, priority, paper::LOW_BUDGET_MS * 1_000, period * 1_000);
            let floods = paper::low_floods(which, number);
            let world = world();
            let client = gates.client(spec, |client| low(world, client, floods));
            starts.push(Start {
                client,
                first: 0,
                every: Some(period),
            });
        }
    }
    for core in 0..study.cores {
        let period = paper::LAUNCHED_PERIOD_MS;
        for _ in 0..Crowd::PAPER.launched {
            let spec = Spec::sporadic(core, 30, paper::LAUNCHED_BUDGET_MS * 1_000, period * 1_000);
            let world = world();
            let client = gates.client(spec, |client| launched(world, client, paper::LAUNCHED_IN));
            starts.push(Start {
                client,
                // In the middle of a cycle.
                first: before(paper::LAUNCHED_IN) * study.phase + TICK_MS,
                every: Some(period),
            });
        }
        for _ in 0..Crowd::PAPER.best_effort {
            let spec = Spec::best_effort(core, 10);
            let world = world();
            let client = gates.client(spec, |client| {
                best_effort(world, client, paper::BEST_EFFORT_IN)
            });
            starts.push(Start {
                client,
                first: before(paper::BEST_EFFORT_IN) * study.phase,
                every: None,
            });
        }
    }
    let High { core, slot, .. } = high_ones[3];
    for _ in 0..paper::MORE {
        let spec = Spec::table_driven(core, 206, &[in_us(slot)]);
        let world = world();
        gates.client(spec, |client| {
            high(world, client, Phases::NONE, Some(paper::MORE_IN))
        });
    }
    let (now, length) = (Rc::clone(&phase), study.phase);
    gates.director(0, TICK_MS * 1_000, |director| async move {
        for tick in 0.. {
            let time = tick * TICK_MS;
            let is_then = director.thread().now().abs_diff(time * MS) < TICK_MS * MS / 4;
            assert!(
                is_then,
                "tick {tick} was not to be now: delays are of phases by the clock"
            );
            now.set((time / length) as usize + 1);
            for start in starts.iter().filter(|start| start.is_at(time)) {
                director.start(start.client).await;
            }
            director.next_period().await;
        }
    });
    let history = gates.run_until(PHASES as u64 * study.phase * MS);
    let observed = history
        .requests
        .iter()
        .filter(|request| request.client == OBSERVED);
    let delays = observed.map(|request| Delay {
        phase: (request.called / (study.phase * MS)) as usize + 1,
        at: request.called,
        ticks: request.answered - request.called,
    });
    (delays.collect(), history)
}
