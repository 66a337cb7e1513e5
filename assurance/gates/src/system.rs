//! A system: a server behind a gate, and its clients.

use std::cell::OnceCell;
use std::future::Future;
use std::ops::RangeInclusive;
use std::rc::Rc;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
pub use sandglass_mc_ipc::driver::Paid;
use sandglass_mc_ipc::driver::{
    keep_table, serve, spin, Client, Edge, Gate, Job, Kind, Operation, Sender, Setup, Shared,
    Signals, Table, Timing, DONE, WORDS,
};
use sandglass_mc_ipc::{ClientId, Fifo, McIpc, Prio};
use sandglass_parallel::{Costs, Made, Simulation, System, Thread, Time};

use crate::client::ClientThread;
use crate::costs::UserCosts;
use crate::director::Director;
use crate::history::{History, Log};
use crate::machine::{
    GateMachine, Later, Own, ServerMachine, SpinnerMachine, TableMachine, Wired, Wiring,
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
            timing: Timing { poll: 50_000 },
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
    pub priority: u8,
    pub kind: Kind,
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
            // A slice of the round robin.
            time: Time::new(5_000, 5_000),
            slots: Vec::new(),
        }
    }
}

/// The operation: takes time, and answers with the number of words, and their sum.
struct Busy {
    thread: Thread,
    ticks: RangeInclusive<u64>,
    random: fastrand::Rng,
}

impl Operation for Busy {
    async fn perform(&mut self, job: &Job, answer: &mut [u64; WORDS]) -> (u64, usize) {
        let ticks = self.random.u64(self.ticks.clone());
        self.thread.compute(ticks).await;
        let words = job.request().iter();
        answer[0] = job.count as u64;
        answer[1] = words.fold(0, |sum: u64, word| sum.wrapping_add(*word));
        (DONE, 2)
    }
}

/// A system that is being made.
pub struct Gates {
    system: System,
    parameters: Parameters,
    wiring: Later,
    log: Log,
    endpoint: u64,
    clients: Vec<(Spec, Made)>,
}

impl Gates {
    /// Without clients.
    pub fn new(parameters: &Parameters) -> Gates {
        let mut system = System::new(parameters.cores);
        let endpoint = system.endpoint();
        Gates {
            system,
            parameters: parameters.clone(),
            wiring: Rc::new(OnceCell::new()),
            log: Log::default(),
            endpoint,
            clients: Vec::new(),
        }
    }

    /// A client, which runs `program`.
    pub fn client<F: Future<Output = ()> + 'static>(
        &mut self,
        spec: Spec,
        program: impl FnOnce(ClientThread) -> F,
    ) -> ClientId {
        let client = ClientId(self.clients.len());
        let (wiring, log) = (Rc::clone(&self.wiring), self.log.clone());
        let body = |thread| {
            program(ClientThread {
                thread,
                wiring,
                client,
                log,
            })
        };
        let made = self.system.thread(spec.priority, spec.core, spec.time);
        match spec.kind {
            Kind::TableDriven => self.system.run_program_without_time(made, body),
            Kind::Sporadic | Kind::BestEffort => self.system.run_program(made, body),
        }
        self.clients.push((spec, made));
        client
    }

    /// The capabilities of a client's thread and context, which whoever attacks it needs.
    pub fn capabilities(&self, client: ClientId) -> Made {
        self.clients[client.0].1
    }

    /// A thread above all clients on `core`, which runs `program` anew in every `period` microseconds: it tells clients
    /// when to begin.
    pub fn director<F: Future<Output = ()> + 'static>(
        &mut self,
        core: usize,
        period: u64,
        program: impl FnOnce(Director) -> F,
    ) {
        let time = Time::new(TABLE_BUDGET.min(period / 2), period);
        let made = self.system.thread(DIRECTOR_PRIORITY, core, time);
        let own = self.own(Thread::default());
        let body = |thread| program(Director(Own { thread, ..own }));
        self.system.run_program(made, body);
    }

    /// What else there is, before time begins.
    pub const fn system(&mut self) -> &mut System {
        &mut self.system
    }

    /// A capability of the gate with this sender's badge.
    pub fn capability_of(&mut self, sender: Sender) -> u64 {
        self.system.minted(self.endpoint, sender.badge())
    }

    /// Runs until `end`, in ticks.
    pub fn run_until(self, end: u64) -> History {
        let tasks = self.clients.iter().map(|(_, made)| made.task).collect();
        let (simulation, log) = self.start();
        log.take(simulation.run_until(end), tasks)
    }

    /// Time begins.
    fn start(mut self) -> (Simulation, Log) {
        let shared = Rc::new(Shared::new(self.clients.len()));
        let server = self.make_server(&shared);
        let wired: Vec<_> = (0..self.clients.len())
            .map(|number| self.wire(ClientId(number), &shared))
            .collect();
        let signals = self.system.notification();
        let done = self.system.minted(signals, Signals::server());
        let job = self.system.notification();
        let tables = self.make_tables(signals);
        self.make_gate(&shared, signals, tables);
        let wiring = Wiring {
            endpoint: self.endpoint,
            job,
            done,
            server,
            clients: wired,
            authority: slot::TCB,
        };
        self.wiring.set(wiring).expect("time begins once");
        let Parameters { costs, seed, .. } = self.parameters;
        (self.system.start(costs, seed), self.log)
    }

    fn own(&self, thread: Thread) -> Own {
        Own {
            thread,
            wiring: Rc::clone(&self.wiring),
            costs: self.parameters.user,
        }
    }

    fn set_timeout_handler(&mut self, thread: Made, sender: Sender) {
        let handler = self.capability_of(sender);
        let set = label::TCB_SET_TIMEOUT_ENDPOINT;
        self.system.set_up(thread.tcb, set, &[], &[handler]);
    }

    fn make_server(&mut self, shared: &Rc<Shared>) -> Made {
        let shared = Rc::clone(shared);
        let ticks = self.parameters.operation.clone();
        let random = fastrand::Rng::with_seed(self.parameters.seed);
        let own = self.own(Thread::default());
        let body = |thread: Thread| async move {
            let mut operation = Busy {
                thread: thread.clone(),
                ticks,
                random,
            };
            let mut machine = ServerMachine(Own { thread, ..own });
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
        self.set_timeout_handler(server, Sender::ServerTimeout);
        server
    }

    /// A client's spinner, and what both of them call with.
    fn wire(&mut self, client: ClientId, shared: &Rc<Shared>) -> Wired {
        let (spec, made) = &self.clients[client.0];
        let (priority, core, made) = (spec.priority, spec.core, *made);
        let shared = Rc::clone(shared);
        let timing = self.parameters.timing;
        let own = self.own(Thread::default());
        let spinner = self.system.idle_program(priority, |_, thread| async move {
            let own = Own { thread, ..own };
            let mut machine = SpinnerMachine { own, client };
            spin(&mut machine, &shared, client, core, timing).await;
        });
        self.set_timeout_handler(spinner, Sender::SpinnerTimeout(client));
        Wired {
            made,
            priority,
            spinner,
            gate: self.capability_of(Sender::Client(client)),
            ask: self.capability_of(Sender::Spinner(client)),
            start: self.system.notification(),
        }
    }

    /// A table for each core with slots.
    fn make_tables(&mut self, signals: u64) -> Vec<Table> {
        let mut tables = Vec::new();
        let period = self.parameters.table_period;
        for core in 0..self.parameters.cores {
            let mut edges = Vec::new();
            for (number, (spec, _)) in self.clients.iter().enumerate() {
                for slot in spec.slots.iter().filter(|_| spec.core == core) {
                    let end = (slot.at + slot.length) % self.parameters.cycle;
                    for (at, begins) in [(end, false), (slot.at, true)] {
                        assert_eq!(at % period, 0, "the table looks every {period} µs");
                        let client = ClientId(number);
                        edges.push(Edge {
                            at: at / period,
                            client,
                            begins,
                        });
                    }
                }
            }
            if edges.is_empty() {
                continue;
            }
            let periods = self.parameters.cycle / period;
            tables.push(Table::new(core, periods, edges));
            let tick = self.system.minted(signals, Signals::tick(core));
            let time = Time::new(TABLE_BUDGET, period);
            let made = self.system.thread(TABLE_PRIORITY, core, time);
            let own = self.own(Thread::default());
            self.system.run_program(made, |thread| async move {
                let own = Own { thread, ..own };
                keep_table(&mut TableMachine { own, tick }).await;
            });
        }
        tables
    }

    fn make_gate(&mut self, shared: &Rc<Shared>, signals: u64, tables: Vec<Table>) {
        let count = self.clients.len();
        let replies = 2 * count + 2 + self.parameters.cores;
        let free = (0..replies).map(|_| self.system.reply()).collect();
        let own = self.own(Thread::default());
        let (log, shared) = (self.log.clone(), Rc::clone(shared));
        let known: Vec<_> = self
            .clients
            .iter()
            .map(|(spec, _)| Client {
                kind: spec.kind,
                priority: spec.priority,
            })
            .collect();
        let clusters: Vec<_> = self.clients.iter().map(|(spec, _)| spec.core).collect();
        let cores = vec![1; self.parameters.cores];
        let Parameters { protocol, paid, .. } = self.parameters;
        let gate_core = self.parameters.gate_core;
        let time = Time::new(FULL, FULL);
        let made = self.system.thread(GATE_PRIORITY, gate_core, time);
        self.system.run_program(made, |thread| async move {
            let machine = GateMachine {
                own: Own { thread, ..own },
                log,
                free,
                receiving: None,
                kept: vec![None; count],
            };
            let setup = Setup {
                paid,
                clients: &known,
                tables,
            };
            match protocol {
                Protocol::McIpc => {
                    let gate = McIpc::new(&cores, &clusters);
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
