//! A system: a server behind a gate, and its clients.

use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::ops::RangeInclusive;
use std::rc::Rc;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
pub use sandglass_mc_ipc::driver::Paid;
use sandglass_mc_ipc::driver::{
    keep_table, serve, spin, Allowance, Client, Edge, Gate, Job, Kind, Operation, Sender, Setup,
    Shared, Signals, Table, Timing, DONE, WORDS,
};
use sandglass_mc_ipc::{ClientId, Fifo, McIpc, Prio};
use sandglass_parallel::{Costs, Made, System, Thread, Time, US};

use crate::client::ClientThread;
use crate::costs::UserCosts;
use crate::director::Director;
use crate::history::{History, Log};
use crate::machine::{
    call, signal, GateMachine, Later, Own, ServerMachine, SpinnerMachine, TableMachine, Wired,
    Wiring,
};

/// Of the gate's thread, and of tables' threads.
const GATE_PRIORITY: u8 = 254;
const TABLE_PRIORITY: u8 = 253;
const DIRECTOR_PRIORITY: u8 = 252;
/// Of a server with time of its own.
const SERVER_PRIORITY: u8 = 251;
/// Microseconds: budget and period of contexts that never run out.
const FULL: u64 = 60_000_000;
/// Microseconds that a table's thread may run in its period.
const TABLE_BUDGET: u64 = 1_000;

/// In which order requests are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    McIpc,
    Fifo,
    Prio,
}

/// A slot of a table-driven client, in microseconds from the beginning of the cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub at: u64,
    pub length: u64,
}

/// What all of a system is made with.
#[derive(Clone, Debug)]
pub struct Parameters {
    pub cores: usize,
    pub protocol: Protocol,
    /// If by the server, that is on the gate's core.
    pub paid: Paid,
    /// Ticks that an operation takes: a random number of these.
    pub operation: RangeInclusive<u64>,
    /// An operation takes as many ticks as the first word of its request says, and signals the capability in the slot that the
    /// second one says, if that is not 0, at its beginning.
    pub as_asked: bool,
    pub timing: Timing,
    /// On which core the gate's thread runs.
    pub gate_core: usize,
    /// Of table-driven clients, in microseconds: the table looks every `table_period`, and a cycle is a multiple of that.
    pub table_period: u64,
    pub cycle: u64,
    pub costs: Costs,
    pub user: UserCosts,
    /// Random numbers follow from it.
    pub seed: u64,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            cores: 1,
            protocol: Protocol::McIpc,
            paid: Paid::ByClients,
            operation: 1_900_000..=1_900_000,
            as_asked: false,
            timing: Timing {
                poll: 50_000,
                toll: 20,
            },
            gate_core: 0,
            table_period: 50_000,
            cycle: 100_000,
            costs: Costs::default(),
            user: UserCosts::default(),
            seed: 1,
        }
    }
}

/// A client's processor time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    pub core: usize,
    /// Nobody else on its core may have the next higher one, at which the server works for it.
    pub priority: u8,
    pub kind: Kind,
    /// How many requests it makes, as far as the gate is prepared for them.
    pub allowance: Allowance,
    time: Time,
    slots: Vec<Slot>,
}

impl Spec {
    /// A budget in every period, in microseconds.
    pub fn sporadic(core: usize, priority: u8, budget: u64, period: u64) -> Spec {
        Spec {
            core,
            priority,
            kind: Kind::Sporadic,
            allowance: Allowance::UNLIMITED,
            time: Time {
                extra_refills: 6,
                ..Time::new(budget, period)
            },
            slots: Vec::new(),
        }
    }

    /// Slots of the cycle.
    pub fn table_driven(core: usize, priority: u8, slots: &[Slot]) -> Spec {
        Spec {
            core,
            priority,
            kind: Kind::TableDriven,
            allowance: Allowance::UNLIMITED,
            time: Time::new(FULL, FULL),
            slots: slots.to_vec(),
        }
    }

    /// No reservation.
    pub fn best_effort(core: usize, priority: u8) -> Spec {
        Spec {
            core,
            priority,
            kind: Kind::BestEffort,
            allowance: Allowance::UNLIMITED,
            // A slice of the round robin.
            time: Time::new(5_000, 5_000),
            slots: Vec::new(),
        }
    }

    /// The gate is prepared for so many requests in so many microseconds.
    #[must_use]
    pub fn allowed(mut self, requests: u64, period: u64) -> Spec {
        self.allowance = Allowance {
            requests,
            period: period * US,
        };
        self
    }

    /// Another gate's server.
    fn server() -> Spec {
        Spec {
            core: 0,
            priority: 1,
            kind: Kind::Server,
            allowance: Allowance::UNLIMITED,
            time: Time::new(FULL, FULL),
            slots: Vec::new(),
        }
    }

    /// When its slots begin and end, for a table with this period and cycle in microseconds.
    fn edges(&self, client: ClientId, period: u64, cycle: u64) -> Vec<Edge> {
        let mut edges = Vec::new();
        for slot in &self.slots {
            let end = (slot.at + slot.length) % cycle;
            for (at, begins) in [(end, false), (slot.at, true)] {
                assert_eq!(at % period, 0, "the table looks every {period} µs");
                edges.push(Edge {
                    at: at / period,
                    client,
                    begins,
                });
            }
        }
        edges
    }
}

/// The operation: takes time, and answers with the number of words, and their sum. One that calls another server does so in
/// the middle.
struct Busy {
    thread: Thread,
    ticks: RangeInclusive<u64>,
    as_asked: bool,
    random: fastrand::Rng,
    /// The gate of the other server, and how often it is called.
    inner: Option<(Rc<Cell<u64>>, usize)>,
}

impl Operation for Busy {
    async fn perform(&mut self, job: &Job, answer: &mut [u64; WORDS]) -> (u64, usize) {
        let mut ticks = self.random.u64(self.ticks.clone());
        if self.as_asked {
            ticks = job.words[0];
            if job.words[1] != 0 {
                signal(&self.thread, job.words[1]).await;
            }
        }
        self.thread.compute(ticks / 2).await;
        if let Some((gate, count)) = &self.inner {
            for _ in 0..*count {
                let told = call(&self.thread, gate.get(), DONE, job.request()).await;
                assert_eq!(told.words[0], job.count as u64, "the other server's answer");
            }
        }
        self.thread.compute(ticks - ticks / 2).await;
        let words = job.request().iter();
        answer[0] = job.count as u64;
        answer[1] = words.fold(0, |sum: u64, word| sum.wrapping_add(*word));
        (DONE, 2)
    }
}

/// A gate that is being made.
struct Part {
    wiring: Later,
    log: Log,
    endpoint: u64,
    operation: RangeInclusive<u64>,
    /// How often an operation calls the gate behind this one.
    calls: usize,
    clients: Vec<(Spec, Made)>,
}

impl Part {
    fn new(system: &mut System, operation: RangeInclusive<u64>) -> Part {
        Part {
            wiring: Rc::new(OnceCell::new()),
            log: Log::default(),
            endpoint: system.endpoint(),
            operation,
            calls: 0,
            clients: Vec::new(),
        }
    }
}

/// A system that is being made: a gate, or two, of which the second one's server is called by the first one's, and by others.
pub struct Gates {
    system: System,
    parameters: Parameters,
    parts: Vec<Part>,
}

/// Which gate of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    Outer,
    Inner,
}

impl Gates {
    /// Without clients.
    pub fn new(parameters: &Parameters) -> Gates {
        let mut system = System::new(parameters.cores);
        let part = Part::new(&mut system, parameters.operation.clone());
        Gates {
            system,
            parameters: parameters.clone(),
            parts: vec![part],
        }
    }

    /// Another server behind a gate of its own, which each operation of the first one calls so often.
    ///
    /// # Panics
    /// There is one.
    pub fn add_inner(&mut self, operation: RangeInclusive<u64>, calls: usize) {
        assert_eq!(self.parts.len(), 1, "there are at most two gates");
        self.parts[0].calls = calls;
        let part = Part::new(&mut self.system, operation);
        self.parts.push(part);
    }

    /// A client, which runs `program`.
    pub fn client<F: Future<Output = ()> + 'static>(
        &mut self,
        spec: Spec,
        program: impl FnOnce(ClientThread) -> F,
    ) -> ClientId {
        self.client_of(Which::Outer, spec, program)
    }

    /// A client of that gate, which runs `program`.
    pub fn client_of<F: Future<Output = ()> + 'static>(
        &mut self,
        which: Which,
        spec: Spec,
        program: impl FnOnce(ClientThread) -> F,
    ) -> ClientId {
        let part = &self.parts[which as usize];
        let client = ClientId(part.clients.len());
        let (wiring, log) = (Rc::clone(&part.wiring), part.log.clone());
        let cost = self.parameters.user.client;
        let body = |thread| {
            program(ClientThread {
                thread,
                wiring,
                client,
                log,
                cost,
            })
        };
        let made = self.system.thread(spec.priority, spec.core, spec.time);
        match spec.kind {
            Kind::TableDriven => self.system.run_program_without_time(made, body),
            _ => self.system.run_program(made, body),
        }
        self.parts[which as usize].clients.push((spec, made));
        client
    }

    /// A thread above all clients on `core`, which runs `program` anew in every `period` microseconds: it tells clients of
    /// the first gate when to begin.
    pub fn director<F: Future<Output = ()> + 'static>(
        &mut self,
        core: usize,
        period: u64,
        program: impl FnOnce(Director) -> F,
    ) {
        let time = Time::new(TABLE_BUDGET.min(period / 2), period);
        let made = self.system.thread(DIRECTOR_PRIORITY, core, time);
        let own = self.own(0);
        let body = |thread| program(Director(Own { thread, ..own }));
        self.system.run_program(made, body);
    }

    /// The capabilities of a client's thread and context, which whoever attacks it needs.
    pub fn capabilities(&self, client: ClientId) -> Made {
        self.parts[0].clients[client.0].1
    }

    /// Runs until `end`, in ticks.
    pub fn run_until(self, end: u64) -> History {
        self.run_all_until(end).swap_remove(0)
    }

    /// Runs until `end`, in ticks: of each gate, what happened.
    pub fn run_all_until(mut self, end: u64) -> Vec<History> {
        self.wire_all();
        let Parameters { costs, seed, .. } = self.parameters;
        let record = self.system.start(costs, seed).run_until(end);
        let history = |part: Part| {
            let tasks = part.clients.iter().map(|(_, made)| made.task).collect();
            part.log.take(record.clone(), tasks)
        };
        self.parts.into_iter().map(history).collect()
    }

    /// Everything but the clients.
    fn wire_all(&mut self) {
        let gate_of_inner = Rc::new(Cell::new(0));
        let servers: Vec<_> = (0..self.parts.len())
            .map(|part| {
                let shared = Rc::new(Shared::new(self.parts[part].clients.len() + 1));
                let server = self.make_server(part, &shared, &gate_of_inner);
                (server, shared)
            })
            .collect();
        let mut beyond = None;
        let controls: Vec<_> = (0..self.parts.len())
            .map(|part| self.capability_of(part, Sender::Control))
            .collect();
        for part in (0..self.parts.len()).rev() {
            let (server, shared) = &servers[part];
            let own_clients = self.parts[part].clients.len();
            let mut clients: Vec<_> = (0..own_clients)
                .map(|number| {
                    let (spec, made) = self.parts[part].clients[number].clone();
                    self.wire(part, ClientId(number), shared, (&spec, made))
                })
                .collect();
            if part == 1 {
                let spec = Spec::server();
                let outer = servers[0].0;
                let mut wired = self.wire(part, ClientId(own_clients), shared, (&spec, outer));
                wired.outer = Some(controls[0]);
                gate_of_inner.set(wired.gate);
                // Its budget is that of the outer gate's clients.
                self.set_timeout_handler(wired.spinner, 0, Sender::ServerTimeout);
                beyond = Some((wired.spinner, *server));
                clients.push(wired);
            }
            let signals = self.system.notification();
            let done = self.system.minted(signals, Signals::server());
            let job = self.system.notification();
            let tables = self.make_tables(part, shared, signals);
            let kinds: Vec<_> = self.parts[part]
                .clients
                .iter()
                .map(|(spec, _)| spec.clone())
                .collect();
            self.make_gate(part, shared, signals, (kinds, tables));
            let wiring = Wiring {
                endpoint: self.parts[part].endpoint,
                control: controls[part],
                job,
                done,
                server: *server,
                beyond: beyond.filter(|_| part == 0),
                clients,
                authority: slot::TCB,
            };
            let later = &self.parts[part].wiring;
            later.set(wiring).expect("time begins once");
        }
    }

    /// A capability of a gate with this sender's badge.
    fn capability_of(&mut self, part: usize, sender: Sender) -> u64 {
        let endpoint = self.parts[part].endpoint;
        self.system.minted(endpoint, sender.badge())
    }

    fn own(&self, part: usize) -> Own {
        Own {
            thread: Thread::default(),
            wiring: Rc::clone(&self.parts[part].wiring),
            costs: self.parameters.user,
        }
    }

    fn set_timeout_handler(&mut self, thread: Made, part: usize, sender: Sender) {
        let handler = self.capability_of(part, sender);
        let set = label::TCB_SET_TIMEOUT_ENDPOINT;
        self.system.set_up(thread.tcb, set, &[], &[handler]);
    }

    fn make_server(&mut self, part: usize, shared: &Rc<Shared>, inner: &Rc<Cell<u64>>) -> Made {
        let shared = Rc::clone(shared);
        let ticks = self.parts[part].operation.clone();
        let as_asked = self.parameters.as_asked;
        let calls = self.parts[part].calls;
        let inner = (calls > 0).then(|| (Rc::clone(inner), calls));
        let random = fastrand::Rng::with_seed(self.parameters.seed);
        let own = self.own(part);
        let body = |thread: Thread| async move {
            let mut operation = Busy {
                thread: thread.clone(),
                ticks,
                as_asked,
                random,
                inner,
            };
            let own = Own { thread, ..own };
            let mut machine = ServerMachine { own, tells: None };
            serve(&mut machine, &shared, &mut operation).await;
        };
        let server = match self.parameters.paid {
            Paid::ByClients => self.system.idle_program(1, |_, thread| body(thread)),
            Paid::ByServer => {
                let core = self.parameters.gate_core;
                let time = Time::new(FULL, FULL);
                let made = self.system.thread(SERVER_PRIORITY, core, time);
                self.system.run_program(made, body);
                made
            }
        };
        self.set_timeout_handler(server, part, Sender::ServerTimeout);
        server
    }

    /// A client's spinner, and what both of them call with.
    fn wire(
        &mut self,
        part: usize,
        client: ClientId,
        shared: &Rc<Shared>,
        (spec, made): (&Spec, Made),
    ) -> Wired {
        let shared = Rc::clone(shared);
        let timing = self.parameters.timing;
        let core = (spec.kind != Kind::Server).then_some(spec.core);
        let own = self.own(part);
        let spinner = self
            .system
            .idle_program(spec.priority, |_, thread| async move {
                let own = Own { thread, ..own };
                let mut machine = SpinnerMachine { own, client };
                spin(&mut machine, &shared, client, core, timing).await;
            });
        self.set_timeout_handler(spinner, part, Sender::SpinnerTimeout(client));
        Wired {
            made,
            priority: spec.priority,
            spinner,
            gate: self.capability_of(part, Sender::Client(client)),
            ask: self.capability_of(part, Sender::Spinner(client)),
            start: self.system.notification(),
            outer: None,
        }
    }

    /// A table for each core with slots.
    fn make_tables(&mut self, part: usize, shared: &Rc<Shared>, signals: u64) -> Vec<Table> {
        let mut tables = Vec::new();
        let (period, cycle) = (self.parameters.table_period, self.parameters.cycle);
        for core in 0..self.parameters.cores {
            let clients = (0..).map(ClientId).zip(&self.parts[part].clients);
            let edges: Vec<_> = clients
                .filter(|(_, (spec, _))| spec.core == core)
                .flat_map(|(client, (spec, _))| spec.edges(client, period, cycle))
                .collect();
            if edges.is_empty() {
                continue;
            }
            tables.push(Table::new(core, cycle / period, edges));
            let tick = self.system.minted(signals, Signals::tick(core));
            let time = Time::new(TABLE_BUDGET, period);
            let made = self.system.thread(TABLE_PRIORITY, core, time);
            let own = self.own(part);
            let shared = Rc::clone(shared);
            self.system.run_program(made, |thread| async move {
                let own = Own { thread, ..own };
                keep_table(&mut TableMachine { own, tick }, &shared, core).await;
            });
        }
        tables
    }

    fn make_gate(
        &mut self,
        part: usize,
        shared: &Rc<Shared>,
        signals: u64,
        (mut specs, tables): (Vec<Spec>, Vec<Table>),
    ) {
        let cores = self.parameters.cores;
        let mut clusters: Vec<_> = specs.iter().map(|spec| spec.core).collect();
        let mut sizes = vec![1; cores];
        if part == 1 {
            specs.push(Spec::server());
            clusters.push(cores);
            sizes.push(1);
        }
        let count = specs.len();
        // Those that are kept, those that are refused, and one to receive with.
        let replies = 2 * count + 1;
        let free = (0..replies).map(|_| self.system.reply()).collect();
        let own = self.own(part);
        let (log, shared) = (self.parts[part].log.clone(), Rc::clone(shared));
        let outer = (part == 1).then(|| Rc::clone(&self.parts[0].wiring));
        let known: Vec<_> = specs
            .iter()
            .map(|spec| Client {
                kind: spec.kind,
                core: spec.core,
                priority: spec.priority,
                allowance: spec.allowance,
            })
            .collect();
        let Parameters { protocol, paid, .. } = self.parameters;
        let time = Time::new(FULL, FULL);
        let gate_core = self.parameters.gate_core;
        let made = self.system.thread(GATE_PRIORITY, gate_core, time);
        self.system.run_program(made, |thread| async move {
            let machine = GateMachine {
                own: Own { thread, ..own },
                log,
                free,
                receiving: None,
                kept: vec![None; count],
                refused: vec![None; count],
                outer,
            };
            let setup = Setup {
                paid,
                clients: &known,
                tables,
            };
            match protocol {
                Protocol::McIpc => {
                    let gate = McIpc::new(&sizes, &clusters);
                    Gate::new(gate, machine, &shared, setup).run().await
                }
                Protocol::Fifo => {
                    let gate = Fifo::new(count);
                    Gate::new(gate, machine, &shared, setup).run().await
                }
                Protocol::Prio => {
                    let gate = Prio::new(count);
                    Gate::new(gate, machine, &shared, setup).run().await
                }
            }
        });
        let bind = label::TCB_BIND_NOTIFICATION;
        self.system.set_up(made.tcb, bind, &[], &[signals]);
    }
}
