//! Who is served next by a server with clients on several cores, on whose time, and what that costs them.
//!
//! A gate's marks say what it has told the protocol, and who pays. They are compared with the protocol itself, which is told
//! the same, and with what the kernel recorded:
//!
//! - *order* ([`replay`]): the server begins with the request that the protocol says, and as soon as there is one; it answers
//!   the one that it began with; a client has one request at a time, and does not run meanwhile;
//! - *payers* ([`payers`]): whoever pays has a request in the gate; and the server has the context of who pays, and no other.
//!   So one pays at a time, and who does is what the kernel says, too;
//! - *lengths* ([`bound`]): the server needs no longer for a request than is described; and by MC-IPC, a client's context is
//!   consumed for no longer, while it waits, than so many of the longest requests take (paper, theorem 1). On several cores,
//!   where the emulator's turns count as consumption, requests are counted instead, too.
//!
//! Marks count only if the gate makes them.

mod bound;
mod payers;
mod replay;

use std::collections::BTreeMap;

use sandglass_mc_ipc::bound::{Caller, Calls};
use sandglass_mc_ipc::marks::{self, Mark as Did};
use sandglass_mc_ipc::ClientId;

use self::replay::Replay;
use super::Findings;
use crate::trace::record::{Event, Mark, Object, Record};
use crate::trace::timeline::{Execution, Timeline};

/// What is described of a server behind a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The resource's name.
    pub resource: String,
    /// The names of both threads.
    pub gate: String,
    pub server: String,
    pub protocol: Protocol,
    /// Cores of each cluster.
    pub clusters: Vec<usize>,
    /// The longest operation, all included, whatever the level of criticality; µs.
    pub longest_us: u64,
    /// By their numbers. A client's thread and its context have its name.
    pub clients: Vec<Client>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    McIpc,
    Fifo,
    Priority,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub name: String,
    /// Its number among the clusters.
    pub cluster: usize,
    /// No other client of its cluster is more urgent.
    pub is_first: bool,
    /// What is assumed of one request, µs, at its level of criticality. `None`: it has no reservation, and no bound.
    pub assumed: Option<Calls>,
}

impl Client {
    /// Who calls, in which cluster of `plan`.
    fn caller(&self, plan: &Plan) -> Caller {
        Caller {
            processors: plan.clusters[self.cluster] as u64,
            is_first: self.is_first,
        }
    }
}

/// A stretch of time in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from: u64,
    to: u64,
}

impl Stretch {
    fn overlap(self, other: Self) -> u64 {
        self.to
            .min(other.to)
            .saturating_sub(self.from.max(other.from))
    }
}

/// What marks tell of a request, for a client or the server. The record that ends it, or begins it if it has no end.
#[derive(Debug, Clone, Copy)]
struct Span {
    client: ClientId,
    time: Stretch,
    /// The record that ends it.
    sequence: u32,
}

/// All that marks told, in order.
#[derive(Debug, Default)]
struct Told {
    /// A request waits for its answer, and its client has budget.
    waits: Vec<Span>,
    /// A request is in the gate, and nobody gave it up.
    requests: Vec<Span>,
    /// The server is at work.
    services: Vec<Span>,
    /// Whose context the server is said to have, and from when on.
    payers: Vec<(u64, Option<ClientId>)>,
}

pub(super) fn check(findings: &mut Findings<'_>, plan: &Plan) {
    let timeline = Timeline::of(findings.history);
    let contexts = contexts(findings, plan, &timeline);
    let mut replay = Replay::new(plan);
    let mut running: BTreeMap<u8, Object> = BTreeMap::new();
    for record in &findings.history.records {
        match record.event {
            Event::Switch { thread, .. } => {
                running.insert(record.core, thread);
            }
            Event::Mark {
                subject,
                mark:
                    Mark::Gate {
                        what,
                        first,
                        second,
                    },
            } => {
                let by = running.get(&record.by).copied().unwrap_or(0);
                if findings.name(by) == plan.gate {
                    let words = [first, second];
                    // The kernel takes the gate for the subject if there is no context any more.
                    let named = || marks::named(words).filter(|_| subject == by);
                    let known = |client: &ClientId| client.0 < plan.clients.len();
                    let client = contexts.get(&subject).copied().or_else(named);
                    let client = client.filter(known);
                    if let Some(did) = read(findings, record, client, (what, words)) {
                        replay.follow(findings, record, did);
                    }
                }
            }
            Event::Block { thread, .. } if findings.name(thread) == plan.gate => {
                replay.rests(findings, record);
            }
            _ => {}
        }
    }
    let last = findings.history.records.last();
    let sequence = last.map_or(0, |record| record.sequence);
    let told = replay.finish((findings.history.end(), sequence));
    findings.looked().requests += told.requests.len() as u64;
    clients_wait(findings, plan, &timeline, &told);
    payers::check(findings, plan, &timeline, &contexts, &told);
    bound::check(findings, plan, &timeline, &contexts, &told);
}

/// The number of each client, by its context.
fn contexts(
    findings: &Findings<'_>,
    plan: &Plan,
    timeline: &Timeline,
) -> BTreeMap<Object, ClientId> {
    let marked = findings.history.records.iter().filter_map(|record| {
        let Event::Mark { subject, mark } = record.event else {
            return None;
        };
        matches!(mark, Mark::Gate { .. }).then_some(subject)
    });
    let ran = timeline.executions.iter().map(|run| run.context);
    let number = |context: Object| {
        let name = findings.name(context);
        let mut clients = plan.clients.iter();
        clients.position(|client| client.name == name).map(ClientId)
    };
    marked
        .chain(ran)
        .filter_map(|context| Some((context, number(context)?)))
        .collect()
}

/// What a mark says.
fn read(
    findings: &mut Findings<'_>,
    record: &Record,
    client: Option<ClientId>,
    (what, words): (u8, [u64; 2]),
) -> Option<Did> {
    let did = Did::decode(client.unwrap_or(ClientId(0)), what, words);
    let problem = match did {
        None => format!("a gate's mark has the unknown number {what}: program and tool are of different versions"),
        Some(did) if did.client().is_some() && client.is_none() => {
            "a gate's mark is about somebody who is not described as its client".to_owned()
        }
        Some(_) => return did,
    };
    findings.found(record.sequence, record.time, problem);
    None
}

/// A client whose request is in the gate does not run.
fn clients_wait(findings: &mut Findings<'_>, plan: &Plan, timeline: &Timeline, told: &Told) {
    for run in &timeline.executions {
        let name = findings.name(run.thread);
        let Some(client) = plan.clients.iter().position(|client| client.name == name) else {
            continue;
        };
        let requests = told.requests.iter();
        let mut own = requests.filter(|request| request.client == ClientId(client));
        let time = stretch(run);
        if let Some(request) = own.find(|request| request.time.overlap(time) > 0) {
            let what = format!(
                "`{name}` runs, and its request to `{}` is not answered",
                plan.resource
            );
            let at = run.from.max(request.time.from);
            findings.found_in(run, at, what);
        }
    }
}

const fn stretch(run: &Execution) -> Stretch {
    Stretch {
        from: run.from,
        to: run.to,
    }
}
