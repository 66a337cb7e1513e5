//! The study as a described system, whose times are those of the paper, longer by one factor.

use std::fmt::Write;

use key_server_study::record::log_bytes;
use key_server_study::{self as study, Crowd, Phases, Slot};

use super::super::runs::Protocol;
use super::Extent;
use crate::system::Source;
use crate::workspace;

/// How much longer everything takes than in the paper. The paper's longest operation of 2 ms is 80 ms then: a signature has 18.7
/// million instructions, and of four cores in turns, each executes every fourth.
pub const FACTOR: u64 = 40;
/// Instructions that a core executes in a ms of the paper, if all four cores have something to do.
const INSTRUCTIONS: u64 = FACTOR * 1_000_000 / CORES as u64;
const CORES: usize = 4;
/// The longest turn of a core in the emulator, µs: little, against an operation.
const TURN_US: u64 = 500;
/// The gate's core: the study's, too.
const GATE_CORE: usize = CORES - 1;
/// Priorities, as in the simulation; clients of the same core that must not be equal differ by two.
const METRONOME: u8 = 254;
const GATE: u8 = 252;
const DIRECTOR: u8 = 250;
const HIGHEST_LOW: usize = 60;
const LAUNCHED: u8 = 30;
const BEST_EFFORT: u8 = 10;
/// Of R1; then two more for each. Those that R4 launches are between it and R3.
const HIGH: usize = 200;
const R4: u8 = 208;
const MORE: u8 = 206;
/// How long a client without a reservation has its core while others of its kind want it, ms of the paper.
const SLICE_MS: u64 = 5;
/// Most requests that a client can have answered in a cycle: an operation takes a quarter of the longest's length at least.
const MOST_IN_A_CYCLE: u64 = 4 * study::CYCLE_MS / study::OPERATION_MS;
const PAGE: u64 = 4096;

/// When a client has time.
enum Kind {
    Slot(Slot),
    Sporadic { budget_ms: u64, period_ms: u64 },
    BestEffort,
}

struct Client {
    name: String,
    core: usize,
    priority: u8,
    kind: Kind,
    jobs: Phases,
    floods: Phases,
    /// The first start, in ticks of the study, and after how many the next one comes; 0 for none.
    start: (u64, u64),
}

impl Client {
    /// At most so many of its requests are answered: one for each start, or as many as the server can, where the client never
    /// rests.
    fn most_requests(&self, extent: &Extent) -> u64 {
        let never_rests = match self.kind {
            Kind::BestEffort => self.jobs,
            Kind::Slot(_) | Kind::Sporadic { .. } => self.floods,
        };
        let phases = (extent.first..=extent.last).map(|phase| {
            let in_a_cycle = if never_rests.contains(phase) {
                MOST_IN_A_CYCLE
            } else {
                1
            };
            in_a_cycle * extent.cycles
        });
        phases.sum()
    }
}

/// The clients, in the order of their numbers; the first one is observed.
fn clients(extent: &Extent) -> Vec<Client> {
    let beginning = |phase: usize| (phase as u64 - 1) * extent.ticks();
    let mut clients = Vec::new();
    for (number, high) in study::high(CORES).into_iter().enumerate() {
        let is_last = number == 3;
        clients.push(Client {
            name: format!("t{}", number + 1),
            core: high.core,
            priority: if is_last {
                R4
            } else {
                (HIGH + 2 * number) as u8
            },
            kind: Kind::Slot(high.slot),
            jobs: Phases::ALL,
            floods: high.floods,
            start: (0, 0),
        });
    }
    for (which, core) in study::low_cores(CORES).into_iter().enumerate() {
        for (number, period_ms) in study::LOW_PERIODS_MS.into_iter().enumerate() {
            clients.push(Client {
                name: format!("low-{core}-{number}"),
                core,
                priority: (HIGHEST_LOW - 2 * number) as u8,
                kind: Kind::Sporadic {
                    budget_ms: study::LOW_BUDGET_MS,
                    period_ms,
                },
                jobs: Phases::ALL,
                floods: study::low_floods(which, number),
                start: (beginning(extent.first), period_ms / study::TICK_MS),
            });
        }
    }
    let r4 = study::high(CORES)[3];
    for number in 0..study::MORE {
        clients.push(Client {
            name: format!("more-{number}"),
            core: r4.core,
            priority: MORE,
            // Slots of a described system do not overlap: as much time in each cycle, from the same beginning.
            kind: Kind::Sporadic {
                budget_ms: r4.slot.length_ms,
                period_ms: study::CYCLE_MS,
            },
            jobs: study::MORE_IN,
            floods: Phases::NONE,
            start: (0, study::CYCLE_MS / study::TICK_MS),
        });
    }
    for core in 0..CORES {
        for number in 0..Crowd::EMULATED.launched {
            clients.push(Client {
                name: format!("launched-{core}-{number}"),
                core,
                priority: LAUNCHED,
                kind: Kind::Sporadic {
                    budget_ms: study::LAUNCHED_BUDGET_MS,
                    period_ms: study::LAUNCHED_PERIOD_MS,
                },
                jobs: Phases::of(&[study::LAUNCHED_IN]),
                floods: Phases::NONE,
                start: (beginning(study::LAUNCHED_IN) + 1, 0),
            });
        }
        for number in 0..Crowd::EMULATED.best_effort {
            clients.push(Client {
                name: format!("best-effort-{core}-{number}"),
                core,
                priority: BEST_EFFORT,
                kind: Kind::BestEffort,
                jobs: Phases::of(&[study::BEST_EFFORT_IN]),
                floods: Phases::NONE,
                start: (beginning(study::BEST_EFFORT_IN), 0),
            });
        }
    }
    clients
}

/// The names of all clients, by their numbers.
pub fn names(extent: &Extent) -> Vec<String> {
    clients(extent)
        .into_iter()
        .map(|client| client.name)
        .collect()
}

/// A time of the paper, as one of the description.
fn longer(ms: u64) -> String {
    format!("\"{}ms\"", ms * FACTOR)
}

/// The system that does these phases.
pub fn source(protocol: Protocol, extent: &Extent) -> Source {
    let clients = clients(extent);
    let name = format!("key-server-{}", protocol.argument());
    let mut text = servers(&name, &clients, extent);
    for (number, client) in clients.iter().enumerate() {
        text += &component(number, client, extent);
    }
    text += &gate(protocol, &clients);
    Source {
        arch: None,
        name,
        text,
        folder: workspace::root().to_owned(),
    }
}

/// The machine, the server, the director, and what all clients have in common.
fn servers(name: &str, clients: &[Client], extent: &Extent) -> String {
    let starts = clients.iter().enumerate();
    let starts = starts.filter(|(_, client)| !matches!(client.kind, Kind::Slot(_)));
    let starts = starts.map(|(number, client)| {
        let (first, every) = client.start;
        format!(", start-{number} = {}", every << 32 | first)
    });
    let maps = clients.iter().map(|client| format!("\"{}\"", client.name));
    let maps = maps.map(|name| format!("  {{ component = {name}, rights = \"read\" }},\n"));
    format!(
        r#"name = "{name}"
machine = {{ memory = 512, cores = {CORES} }}

[[component]]
name = "keys"
executable = "key-server"
core = {GATE_CORE}
priority = {GATE}

[[component]]
name = "director"
executable = "key-server"
priority = {DIRECTOR}
budget = {budget}
period = {period}
console = true
exit = true
controls = ["director"]
scheduling-control = [0]
parameters = {{ clients = {count}, first = {first}, last = {last}, length = {length}, tick = {tick_us}{starts} }}

{metronomes}
[[output]]
name = "record"
component = "director"

[[notification]]
name = "begin"
waiter = "director"
signallers = [{{ component = "t1", badge = 1 }}]

[[memory]]
name = "clock"
size = "4KiB"
maps = [
  {{ component = "director", rights = "read-write" }},
{maps}]
"#,
        budget = longer(study::TICK_MS / 2),
        period = longer(study::TICK_MS),
        count = clients.len(),
        first = extent.first,
        last = extent.last,
        length = extent.ticks(),
        tick_us = study::TICK_MS * FACTOR * 1_000,
        starts = starts.collect::<String>(),
        maps = maps.collect::<String>(),
        metronomes = (0..CORES).map(metronome).collect::<String>(),
    )
}

/// What makes cores take turns.
fn metronome(core: usize) -> String {
    format!(
        r#"
[[component]]
name = "metronome-{core}"
executable = "key-server"
core = {core}
priority = {METRONOME}
budget = "40us"
period = "{TURN_US}us"
controls = ["metronome-{core}"]
scheduling-control = [{core}]
parameters = {{ core = {core}, turn = {TURN_US} }}
"#
    )
}

/// A client, with what it waits for and its log.
fn component(number: usize, client: &Client, extent: &Extent) -> String {
    let name = &client.name;
    let time = match client.kind {
        Kind::Slot(_) => String::new(),
        Kind::Sporadic {
            budget_ms,
            period_ms,
        } => format!(
            "budget = {}\nperiod = {}\n",
            longer(budget_ms),
            longer(period_ms)
        ),
        Kind::BestEffort => format!("budget = {0}\nperiod = {0}\n", longer(SLICE_MS)),
    };
    let never_rests = match client.kind {
        Kind::BestEffort => ", never-rests = 1",
        Kind::Slot(_) | Kind::Sporadic { .. } => "",
    };
    let mut text = format!(
        r#"
[[component]]
name = "{name}"
executable = "key-server"
core = {core}
priority = {priority}
{time}parameters = {{ number = {number}, jobs = {jobs}, floods = {floods}, processing = {processing}, seed = {seed}{never_rests} }}

[[memory]]
name = "log.{number}"
size = {log}
maps = [
  {{ component = "{name}", rights = "read-write" }},
  {{ component = "director", rights = "read" }},
]
"#,
        core = client.core,
        priority = client.priority,
        jobs = client.jobs.bits(),
        floods = client.floods.bits(),
        processing = study::PROCESSING_MS * INSTRUCTIONS,
        seed = number + 1,
        log = (log_bytes(client.most_requests(extent) as usize) as u64).next_multiple_of(PAGE),
    );
    if !matches!(client.kind, Kind::Slot(_)) {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            r#"
[[notification]]
name = "start.{number}"
waiter = "{name}"
signallers = [{{ component = "director", badge = 1 }}]
"#
        );
    }
    text
}

/// The resource. What a client's budget is enough for is known for MC-IPC alone: by the others, nothing is promised.
fn gate(protocol: Protocol, clients: &[Client]) -> String {
    let described = match protocol {
        Protocol::McIpc => "mc-ipc",
        Protocol::Fifo => "fifo",
        Protocol::Priority => "priority",
    };
    let requests = match protocol {
        Protocol::McIpc => "",
        Protocol::Fifo | Protocol::Priority => ", requests = 0",
    };
    let clients = clients.iter().map(|client| {
        let name = &client.name;
        match client.kind {
            Kind::Slot(Slot { at_ms, length_ms }) => format!(
                "  {{ component = \"{name}\", kind = \"table-driven\", slots = [{{ at = {}, length = {} }}]{requests} }},\n",
                longer(at_ms),
                longer(length_ms)
            ),
            Kind::Sporadic { .. } => format!("  {{ component = \"{name}\"{requests} }},\n"),
            Kind::BestEffort => {
                format!("  {{ component = \"{name}\", kind = \"best-effort\" }},\n")
            }
        }
    });
    format!(
        r#"
[[resource]]
name = "sign"
protocol = "{described}"
server = "keys"
length = {length}
cycle = {cycle}
clients = [
{clients}]
"#,
        length = longer(study::OPERATION_MS),
        cycle = longer(study::CYCLE_MS),
        clients = clients.collect::<String>(),
    )
}
