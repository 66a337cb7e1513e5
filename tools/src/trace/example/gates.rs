//! A server with clients on one core or two, behind a gate that works by one of the protocols. What each thread does is made
//! up, step by step of a microsecond; who is served next, and on whose time, is the gate's, as
//! `sandglass_mc_ipc::driver` has it.

use sandglass_abi::trace::{Blocked, Gift};
use sandglass_mc_ipc::bound::Calls;
use sandglass_mc_ipc::marks::Mark as Did;
use sandglass_mc_ipc::{ClientId, Fifo, McIpc, Prio, Standing};

use super::US;
use crate::trace::check::gates::{self, Plan};
use crate::trace::check::Promises;
use crate::trace::history::History;
use crate::trace::record::{Event, Mark, Object, Record};

pub const GATE: Object = 0x4000;
const GATE_TIME: Object = 0x4100;
pub const SERVER: Object = 0x5000;
/// Priority of the gate.
const TOP: u8 = 250;
/// What a request takes, µs.
const OPERATION: u64 = 300;
/// What a client computes before it calls, µs.
const COMPUTES: u64 = 20;
/// Ticks of a context that never runs out.
const WHOLE: u64 = 3_600_000_000 * US;

pub const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

/// A client, as it is made up.
struct Described {
    core: u8,
    priority: u8,
    /// When its jobs begin, µs. One whose last request is not answered then is skipped.
    jobs: &'static [u64],
    /// From when to when it has no budget, µs.
    without: Option<(u64, u64)>,
}

/// On one core: the more urgent ones come while others are served, and one of them loses its budget while it waits.
const ONE_CORE: &[Described] = &[
    described(0, 120, &[120, 1_000, 2_200, 5_000], Some((2_260, 2_700))),
    described(0, 110, &[60, 1_050, 2_100], None),
    described(0, 100, &[0, 1_500, 4_990], Some((5_060, 6_000))),
];

/// On two: one of the first core loses its budget while it waits, one of the second in service.
const TWO_CORES: &[Described] = &[
    described(0, 120, &[100, 1_000, 2_200, 3_600], Some((2_300, 2_700))),
    described(0, 100, &[0, 900, 2_150, 3_500], None),
    described(1, 120, &[70, 950, 2_050, 3_400], Some((2_200, 2_900))),
    described(1, 100, &[20, 1_100, 2_000, 3_400], None),
];

const fn described(
    core: u8,
    priority: u8,
    jobs: &'static [u64],
    without: Option<(u64, u64)>,
) -> Described {
    Described {
        core,
        priority,
        jobs,
        without,
    }
}

pub const fn thread(client: usize) -> Object {
    0x1_0000 + client as Object * 0x1000
}

pub const fn context(client: usize) -> Object {
    thread(client) + 0x100
}

const fn spinner(client: usize) -> Object {
    thread(client) + 0x200
}

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Sleeps,
    /// For so long, µs.
    Computes(u64),
    Waits,
}

struct Client {
    does: Does,
    holder: Object,
    has_budget: bool,
}

/// What a core executes, on which context, and since when that pays.
#[derive(Clone, Copy, Default, PartialEq)]
struct Runs {
    thread: Object,
    context: Object,
    since: u64,
}

struct Scene {
    records: Vec<Record>,
    time: u64,
    described: &'static [Described],
    protocol: Box<dyn sandglass_mc_ipc::Protocol>,
    clients: Vec<Client>,
    cores: Vec<Runs>,
    consumed: std::collections::BTreeMap<Object, u64>,
    payer: Option<usize>,
    /// What is left of the request in service, µs.
    job: Option<u64>,
    gate_runs: bool,
}

impl Scene {
    fn add(&mut self, core: u8, event: Event) {
        let sequence = self.records.len() as u32 + 1;
        self.records.push(Record {
            sequence,
            core,
            by: core,
            time: self.time,
            event,
        });
    }

    fn name(&mut self, object: Object, name: &str) {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let mark = Mark::Name { part: 0, bytes };
        let subject = object;
        self.add(0, Event::Mark { subject, mark });
    }

    fn mark(&mut self, did: Did) {
        let (what, [first, second]) = did.encode();
        let subject = did.client().map_or(GATE, |client| context(client.0));
        let mark = Mark::Gate {
            what,
            first,
            second,
        };
        self.add(0, Event::Mark { subject, mark });
    }

    /// Contexts, names and priorities.
    fn begin(&mut self) {
        let start = Event::Start {
            per_us: US,
            least_budget: 20 * US,
        };
        self.add(0, start);
        self.name(GATE, "keys/gate");
        self.name(SERVER, "keys/server");
        self.context(0, GATE_TIME, GATE);
        for (client, name) in NAMES.iter().enumerate().take(self.described.len()) {
            let core = self.described[client].core;
            self.name(thread(client), name);
            self.name(context(client), name);
            self.name(spinner(client), "keys/spinner");
            self.context(core, context(client), thread(client));
            for thread in [spinner(client), thread(client)] {
                self.add(core, Event::Migrate { thread, core });
            }
            self.wake(client, spinner(client));
        }
    }

    fn context(&mut self, core: u8, context: Object, to: Object) {
        let configure = Event::Configure {
            context,
            budget: WHOLE,
            period: WHOLE,
            fresh: true,
            sporadic: false,
        };
        self.add(core, configure);
        self.bind(core, context, to);
    }

    fn bind(&mut self, core: u8, context: Object, to: Object) {
        let donate = Event::Donate {
            context,
            from: 0,
            to,
            gift: Gift::Bind,
        };
        self.add(core, donate);
    }

    /// A thread of a client, or the server for it, could run.
    fn wake(&mut self, client: usize, thread: Object) {
        let Described { core, priority, .. } = self.described[client];
        let held = self.clients[client].holder == thread;
        let context = if held { context(client) } else { 0 };
        let wake = Event::Wake {
            thread,
            context,
            priority,
        };
        self.add(core, wake);
    }

    fn run(&mut self, core: u8, thread: Object, context: Object, priority: u8) {
        let before = self.cores[usize::from(core)];
        if (before.thread, before.context) == (thread, context) {
            return;
        }
        let switch = Event::Switch {
            thread,
            context,
            priority,
        };
        self.add(core, switch);
        let mut since = before.since;
        if before.context != context {
            self.charge(core, before);
            let used = self.consumed.get(&context).copied().unwrap_or(0);
            let amount = if context == 0 { 0 } else { WHOLE - used };
            self.add(core, Event::Pays { context, amount });
            since = self.time;
        }
        self.cores[usize::from(core)] = Runs {
            thread,
            context,
            since,
        };
    }

    fn charge(&mut self, core: u8, runs: Runs) {
        let consumed = self.time - runs.since;
        if runs.context != 0 && consumed > 0 {
            let charge = Event::Charge {
                context: runs.context,
                consumed,
                charged: consumed,
            };
            self.add(core, charge);
            *self.consumed.entry(runs.context).or_default() += consumed;
        }
    }

    /// Each core goes over to its most urgent thread.
    fn schedule(&mut self) {
        for core in 0..self.cores.len() as u8 {
            if core == 0 && self.gate_runs {
                self.run(0, GATE, GATE_TIME, TOP);
                continue;
            }
            let clients = 0..self.described.len();
            let ready = clients.filter(|&client| {
                let Client { does, holder, .. } = self.clients[client];
                let idle = holder == thread(client) && does == Does::Sleeps
                    || holder == SERVER && self.job.is_none();
                self.described[client].core == core && holder != 0 && !idle
            });
            let first = ready.max_by_key(|&client| self.described[client].priority);
            match first {
                Some(client) => {
                    let priority = self.described[client].priority;
                    let holder = self.clients[client].holder;
                    self.run(core, holder, context(client), priority);
                }
                None => self.run(core, 0, 0, 0),
            }
        }
    }

    /// Time passes: a microsecond, in which the gate runs or not.
    fn pass(&mut self) {
        self.schedule();
        self.time += US;
    }

    /// The gate has a message, and does this.
    fn gate(&mut self, does: impl FnOnce(&mut Self)) {
        let wake = Event::Wake {
            thread: GATE,
            context: GATE_TIME,
            priority: TOP,
        };
        self.add(0, wake);
        self.gate_runs = true;
        self.pass();
        does(self);
        let block = Event::Block {
            thread: GATE,
            why: Blocked::Receive,
        };
        self.add(0, block);
        self.gate_runs = false;
        self.schedule();
    }

    /// A client's context goes where it belongs.
    fn place(&mut self, client: usize) {
        let Described { core, priority, .. } = self.described[client];
        let Client {
            does,
            holder,
            has_budget,
        } = self.clients[client];
        let home = match does {
            _ if !has_budget => 0,
            _ if self.payer == Some(client) => SERVER,
            Does::Waits => spinner(client),
            _ => thread(client),
        };
        if home == holder {
            return;
        }
        let context = context(client);
        if holder != 0 {
            let unbind = Event::Unbind {
                context,
                from: holder,
            };
            self.add(core, unbind);
        }
        self.clients[client].holder = home;
        if home == SERVER {
            let thread = SERVER;
            self.add(core, Event::Migrate { thread, core });
            self.add(core, Event::Priority { thread, priority });
        }
        if home != 0 {
            self.bind(core, context, home);
        }
    }

    fn publish(&mut self, payer: Option<usize>) {
        if payer != self.payer {
            self.mark(Did::Pay(payer.map(ClientId)));
            self.payer = payer;
        }
    }

    fn pay(&mut self, client: usize) {
        if let Some(before) = self.payer {
            self.publish(None);
            self.place(before);
        }
        if self.clients[client].has_budget {
            self.publish(Some(client));
            self.place(client);
        }
    }

    fn serve_next(&mut self) {
        let Some(client) = self.protocol.next() else {
            return;
        };
        self.mark(Did::Serve(client));
        self.job = Some(OPERATION);
        self.wake(client.0, SERVER);
        if self.payer.is_none() {
            self.pay(client.0);
        }
    }

    fn urgency(&self, client: usize) -> u64 {
        u64::from(u8::MAX - self.described[client].priority)
    }

    fn request(&mut self, client: usize) {
        let standing = Standing::RealTime(self.urgency(client));
        let id = ClientId(client);
        self.protocol.invoke(id, standing).expect("one at a time");
        self.mark(Did::Request(id, standing));
        if self.job.is_none() {
            self.serve_next();
        }
        self.place(client);
    }

    fn finish(&mut self) {
        let client = self.protocol.finish().expect("one is served");
        self.mark(Did::Finish(client));
        self.clients[client.0].does = Does::Sleeps;
        if self.payer == Some(client.0) {
            self.publish(None);
        }
        self.place(client.0);
        self.serve_next();
    }

    fn exhaust(&mut self, client: usize) {
        self.clients[client].has_budget = false;
        if self.clients[client].does == Does::Waits {
            let _ = self.protocol.exhaust(ClientId(client));
            self.mark(Did::Exhaust(ClientId(client)));
        }
        if self.payer == Some(client) {
            self.publish(None);
        }
        self.place(client);
    }

    fn replenish(&mut self, client: usize) {
        self.clients[client].has_budget = true;
        if self.clients[client].does == Does::Waits {
            let urgency = self.urgency(client);
            self.protocol.replenish(ClientId(client), urgency);
            self.mark(Did::Replenish(ClientId(client), urgency));
        }
        self.place(client);
    }

    /// What begins now.
    fn events(&mut self, now: u64) {
        for client in 0..self.described.len() {
            let Described { jobs, without, .. } = self.described[client];
            let starts = jobs.contains(&now) && self.clients[client].does == Does::Sleeps;
            if starts {
                self.clients[client].does = Does::Computes(COMPUTES);
                self.wake(client, thread(client));
            }
            match without {
                Some((from, _)) if from == now => self.gate(|scene| scene.exhaust(client)),
                Some((_, to)) if to == now => self.gate(|scene| scene.replenish(client)),
                _ => {}
            }
        }
    }

    /// What those who ran in the last microsecond got done.
    fn progress(&mut self) {
        for core in 0..self.cores.len() {
            let running = self.cores[core].thread;
            if running == SERVER {
                let left = self.job.map_or(0, |left| left - 1);
                self.job = Some(left).filter(|&left| left > 0);
                if self.job.is_none() {
                    let block = Event::Block {
                        thread: SERVER,
                        why: Blocked::Notification,
                    };
                    self.add(core as u8, block);
                    self.gate(Self::finish);
                }
            }
            let clients = 0..self.described.len();
            let Some(client) = clients
                .into_iter()
                .find(|&client| thread(client) == running)
            else {
                continue;
            };
            if let Does::Computes(left) = self.clients[client].does {
                self.clients[client].does = Does::Computes(left - 1);
                if left == 1 {
                    self.clients[client].does = Does::Waits;
                    let block = Event::Block {
                        thread: running,
                        why: Blocked::Reply,
                    };
                    self.add(core as u8, block);
                    self.gate(|scene| scene.request(client));
                }
            }
        }
        self.take();
    }

    /// A spinner that runs while nobody pays, or whoever pays does not run, offers its client's context.
    fn take(&mut self) {
        let stands = self.job.is_some() && self.cores.iter().all(|runs| runs.thread != SERVER);
        let clients = 0..self.described.len();
        let spins = |&client: &usize| {
            let own = spinner(client);
            self.cores.iter().any(|runs| runs.thread == own)
        };
        if let Some(client) = clients.into_iter().find(spins).filter(|_| stands) {
            self.gate(|scene| scene.pay(client));
        }
    }
}

/// What is described of a system on so many cores.
pub fn promises(cores: usize, protocol: gates::Protocol) -> Promises {
    let described = scene_of(cores);
    let clients = described.iter().zip(NAMES).map(|(client, name)| {
        let mut others = described.iter().filter(|other| other.core == client.core);
        gates::Client {
            name: name.to_owned(),
            cluster: client.core.into(),
            is_first: others.all(|other| other.priority <= client.priority),
            assumed: Some(Calls {
                count: 1,
                longest: OPERATION,
                clusters: cores as u64,
            }),
        }
    });
    let plan = Plan {
        resource: "keys".to_owned(),
        gate: "keys/gate".to_owned(),
        server: "keys/server".to_owned(),
        protocol,
        clusters: vec![1; cores],
        longest_us: OPERATION,
        clients: clients.collect(),
    };
    Promises {
        gates: vec![plan],
        ..Promises::default()
    }
}

const fn scene_of(cores: usize) -> &'static [Described] {
    match cores {
        1 => ONE_CORE,
        _ => TWO_CORES,
    }
}

pub fn history(cores: usize, protocol: gates::Protocol) -> History {
    let described = scene_of(cores);
    let clusters: Vec<usize> = described.iter().map(|client| client.core.into()).collect();
    let client = |client| Client {
        does: Does::Sleeps,
        holder: thread(client),
        has_budget: true,
    };
    let mut scene = Scene {
        records: Vec::new(),
        time: 5 * US,
        described,
        protocol: match protocol {
            gates::Protocol::McIpc => Box::new(McIpc::new(&vec![1; cores], &clusters)),
            gates::Protocol::Fifo => Box::new(Fifo::new(described.len())),
            gates::Protocol::Priority => Box::new(Prio::new(described.len())),
        },
        clients: (0..described.len()).map(client).collect(),
        cores: vec![Runs::default(); cores],
        consumed: Default::default(),
        payer: None,
        job: None,
        gate_runs: false,
    };
    scene.begin();
    for now in 0..8_000 {
        scene.events(now);
        scene.pass();
        scene.progress();
    }
    History::of_records(scene.records, 0).expect("a trace")
}
