//! The protocol is told what the gate was.

use sandglass_mc_ipc::marks::Mark as Did;
use sandglass_mc_ipc::{ClientId, Fifo, McIpc, Prio, Standing};

use super::{Findings, Plan, Protocol, Span, Stretch, Told};
use crate::trace::record::Record;

/// Time and sequence number of a record.
type At = (u64, u32);

#[derive(Clone)]
enum Queues {
    McIpc(McIpc),
    Fifo(Fifo),
    Priority(Prio),
}

impl Queues {
    fn new(plan: &Plan) -> Self {
        let clients = plan.clients.len();
        match plan.protocol {
            Protocol::McIpc => {
                let clusters: Vec<usize> =
                    plan.clients.iter().map(|client| client.cluster).collect();
                Self::McIpc(McIpc::new(&plan.clusters, &clusters))
            }
            Protocol::Fifo => Self::Fifo(Fifo::new(clients)),
            Protocol::Priority => Self::Priority(Prio::new(clients)),
        }
    }

    fn protocol(&mut self) -> &mut dyn sandglass_mc_ipc::Protocol {
        match self {
            Self::McIpc(queues) => queues,
            Self::Fifo(queues) => queues,
            Self::Priority(queues) => queues,
        }
    }

    /// Who would be next.
    fn first(&self) -> Option<ClientId> {
        self.clone().protocol().next()
    }
}

/// Since when a client has a request, and since when it has budget meanwhile.
#[derive(Clone, Copy, Default)]
struct Present {
    since: Option<u64>,
    /// Nobody gave it up.
    kept: bool,
    waits: Option<u64>,
}

pub struct Replay<'p> {
    plan: &'p Plan,
    queues: Queues,
    /// Off once the gate has done something else: what it does then says nothing of the protocol.
    is_followed: bool,
    clients: Vec<Present>,
    served: Option<(ClientId, u64)>,
    payer: Option<ClientId>,
    told: Told,
}

impl<'p> Replay<'p> {
    pub fn new(plan: &'p Plan) -> Self {
        Self {
            plan,
            queues: Queues::new(plan),
            is_followed: true,
            clients: vec![Present::default(); plan.clients.len()],
            served: None,
            payer: None,
            told: Told::default(),
        }
    }

    fn name(&self, client: ClientId) -> &str {
        &self.plan.clients[client.0].name
    }

    fn found(&self, findings: &mut Findings<'_>, record: &Record, what: &str) {
        let what = format!("the gate of `{}`: {what}", self.plan.resource);
        findings.found(record.sequence, record.time, what);
    }

    /// The gate did something else than the protocol says.
    fn differs(&mut self, findings: &mut Findings<'_>, record: &Record, what: &str) {
        if std::mem::replace(&mut self.is_followed, false) {
            self.found(findings, record, what);
        }
    }

    /// The gate did something.
    pub fn follow(&mut self, findings: &mut Findings<'_>, record: &Record, did: Did) {
        let now = record.time;
        let at = (now, record.sequence);
        match did {
            Did::Request(client, standing) => self.request(findings, record, client, standing),
            Did::Serve(client) => {
                let next = self.queues.protocol().next();
                if next != Some(client) {
                    let what = self.wrong(client, next, "is served");
                    self.differs(findings, record, &what);
                }
                self.served = Some((client, now));
            }
            Did::Finish(client) => {
                let finished = self.queues.protocol().finish();
                if finished != Some(client) {
                    let what = self.wrong(client, finished, "is answered");
                    self.differs(findings, record, &what);
                }
                self.stops_serving(at);
                self.leaves(client, at);
            }
            Did::Exhaust(client) => {
                let _ = self.queues.protocol().exhaust(client);
                self.stops_waiting(client, at);
            }
            Did::Replenish(client, priority) => {
                self.queues.protocol().replenish(client, priority);
                let present = &mut self.clients[client.0];
                if present.since.is_some() {
                    present.waits.get_or_insert(now);
                }
            }
            Did::Withdraw(client) => {
                let in_service = self.queues.protocol().withdraw(client);
                self.stops_waiting(client, at);
                self.is_given_up(client, at);
                if !in_service {
                    self.leaves(client, at);
                }
            }
            Did::Move(client, cluster, priority) => {
                let queues = self.queues.protocol();
                queues.relocate(client, cluster, priority);
            }
            Did::Pay(payer) => {
                self.payer = payer;
                self.told.payers.push((now, payer));
                let stranger = payer.filter(|payer| self.clients[payer.0].since.is_none());
                if let Some(stranger) = stranger {
                    let name = self.name(stranger);
                    let what = format!("`{name}` is to pay, and has no request in it");
                    self.found(findings, record, &what);
                }
            }
        }
    }

    fn wrong(&self, client: ClientId, right: Option<ClientId>, is: &str) -> String {
        let name = self.name(client);
        match right {
            Some(right) => format!(
                "`{name}` {is}, and it is the turn of `{}`",
                self.name(right)
            ),
            None => format!("`{name}` {is}, and it is nobody's turn"),
        }
    }

    fn request(
        &mut self,
        findings: &mut Findings<'_>,
        record: &Record,
        client: ClientId,
        standing: Standing,
    ) {
        if self.queues.protocol().invoke(client, standing).is_err() {
            let what = format!("`{}` has a request in it already", self.name(client));
            self.differs(findings, record, &what);
        }
        let now = record.time;
        let has_budget = matches!(standing, Standing::RealTime(_));
        self.clients[client.0] = Present {
            since: Some(now),
            kept: true,
            waits: has_budget.then_some(now),
        };
    }

    /// What has gone on since then, for a client, is over.
    fn span(client: ClientId, since: Option<u64>, (to, sequence): At) -> Option<Span> {
        since.map(|from| Span {
            client,
            time: Stretch { from, to },
            sequence,
        })
    }

    /// A client's budget is not consumed for its request any more, or there is another analysis.
    fn stops_waiting(&mut self, client: ClientId, at: At) {
        let waits = self.clients[client.0].waits.take();
        self.told.waits.extend(Self::span(client, waits, at));
    }

    /// Nobody waits for the answer any more.
    fn is_given_up(&mut self, client: ClientId, at: At) {
        let present = &mut self.clients[client.0];
        let kept = std::mem::replace(&mut present.kept, false);
        let since = present.since.filter(|_| kept);
        self.told.requests.extend(Self::span(client, since, at));
    }

    fn leaves(&mut self, client: ClientId, at: At) {
        self.stops_waiting(client, at);
        self.is_given_up(client, at);
        self.clients[client.0] = Present::default();
    }

    /// The server does not work any more.
    fn stops_serving(&mut self, at: At) {
        if let Some((client, since)) = self.served.take() {
            let service = Self::span(client, Some(since), at);
            self.told.services.extend(service);
        }
    }

    /// The gate waits for what comes: whatever it had to do is done.
    pub fn rests(&mut self, findings: &mut Findings<'_>, record: &Record) {
        let next = self.queues.first().filter(|_| self.is_followed);
        if let Some(next) = next {
            let what = format!(
                "`{}` waits, and the server has nothing to do",
                self.name(next)
            );
            self.differs(findings, record, &what);
        }
        let stranger = self
            .payer
            .filter(|payer| self.clients[payer.0].since.is_none());
        if let Some(stranger) = stranger {
            let what = format!("`{}` pays, and has no request in it", self.name(stranger));
            self.found(findings, record, &what);
            self.payer = None;
        }
    }

    /// What was told; what is not over goes on until `end`.
    pub fn finish(mut self, end: At) -> Told {
        self.stops_serving(end);
        for client in (0..self.clients.len()).map(ClientId) {
            self.leaves(client, end);
        }
        self.told
    }
}
