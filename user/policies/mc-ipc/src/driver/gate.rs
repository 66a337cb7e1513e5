//! The gate's thread: requests and faults come in, contexts go to those who are to run.

mod failures;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::kernel::{
    GateKernel, Holder, Received, Work, BUSY, DONE, MALFORMED, NOT_IN_CONTROL, WORDS,
};
use super::sender::{Control, Request, Sender, Signals};
use super::shared::{Payer, Shared, Target};
use super::table::Table;
use crate::marks::Mark;
use crate::protocol::{ClientId, Protocol, Standing};

/// What processor time a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A budget in every period, which the kernel keeps.
    Sporadic,
    /// Slots, which a table keeps: it begins without time.
    TableDriven,
    /// No reservation: whatever others leave.
    BestEffort,
    /// It is the server of another gate, and has the time of whoever pays there. It is a cluster of its own.
    Server,
}

/// On whose time the server works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paid {
    /// On that of clients that wait, which passes while they do.
    ByClients,
    /// On time of its own, which never runs out. Clients that wait are blocked, and nothing is taken from them: how servers
    /// are built without a gate, and what a protocol's bound says about budgets does not matter. For comparison.
    ByServer,
}

/// What a gate is for.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    pub paid: Paid,
    pub clients: &'a [Client],
    /// At most one for each core.
    pub tables: Vec<Table>,
}

/// A client, as its gate knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub kind: Kind,
    /// On which its context is, as long as nobody says that it has moved.
    pub core: usize,
    /// Of its thread: the more, the more urgent.
    pub priority: u8,
    /// How many requests it makes in how many ticks, as far as the gate's own time was provided for. Each beyond that, and
    /// each that is none, has its client pay a toll ([`Timing::toll`](super::Timing::toll)) before it is answered.
    pub allowance: Allowance,
}

/// So many requests in so many ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub requests: u64,
    pub period: u64,
}

impl Allowance {
    /// No limit.
    pub const UNLIMITED: Allowance = Allowance {
        requests: u64::MAX,
        period: u64::MAX,
    };
}

/// A client's request; or the answer, while it is held back.
#[derive(Clone, Debug)]
struct Pending {
    label: u64,
    count: usize,
    words: Box<[u64; WORDS]>,
}

#[derive(Clone, Debug)]
struct State {
    client: Client,
    pending: Pending,
    /// A request of it is in the gate.
    is_present: bool,
    /// Somebody waits for the answer.
    is_kept: bool,
    /// The answer is there, and held back until the client has paid its toll.
    is_held: bool,
    /// Its request is beyond its allowance.
    owes_toll: bool,
    /// Requests since, in ticks.
    used: u64,
    since: u64,
    holder: Option<Holder>,
    /// It is not between two slots.
    is_enabled: bool,
    is_demoted: bool,
    /// It is known not to have budget.
    is_exhausted: bool,
}

impl State {
    fn new(client: Client) -> Self {
        let is_enabled = client.kind != Kind::TableDriven;
        Self {
            client,
            pending: Pending {
                label: 0,
                count: 0,
                words: Box::new([0; WORDS]),
            },
            is_present: false,
            is_kept: false,
            is_held: false,
            owes_toll: false,
            used: 0,
            since: 0,
            holder: is_enabled.then_some(Holder::Client),
            is_enabled,
            is_demoted: false,
            is_exhausted: false,
        }
    }

    /// A request is made; tells whether it is beyond the allowance.
    fn is_beyond_allowance(&mut self, now: u64) -> bool {
        let Allowance { requests, period } = self.client.allowance;
        if now.saturating_sub(self.since) >= period {
            self.since = now;
            self.used = 0;
        }
        self.used = self.used.saturating_add(1);
        self.used > requests
    }

    /// The less, the more urgent, for the protocol.
    fn urgency(&self) -> u64 {
        u64::from(u8::MAX - self.client.priority)
    }

    fn standing(&self) -> Standing {
        let has_time = self.is_enabled && !self.is_exhausted && !self.is_demoted;
        match self.client.kind {
            Kind::Sporadic | Kind::TableDriven | Kind::Server if has_time => {
                Standing::RealTime(self.urgency())
            }
            _ => Standing::BestEffort,
        }
    }
}

/// How the caller is answered.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// With this label, at once.
    Now(u64),
    /// Nobody called, or who did waits.
    None,
}

/// A gate at work.
#[derive(Debug)]
pub struct Gate<'a, P, K> {
    protocol: P,
    kernel: K,
    shared: &'a Shared,
    paid: Paid,
    clients: Vec<State>,
    tables: Vec<Table>,
    payer: Payer,
    /// On which thread the server's work is done.
    target: Target,
}

impl<'a, P: Protocol, K: GateKernel> Gate<'a, P, K> {
    /// For these clients: `protocol` and `shared` have as many. Table-driven ones have no context bound to them; all others
    /// have theirs.
    pub fn new(protocol: P, kernel: K, shared: &'a Shared, setup: Setup<'_>) -> Self {
        Self {
            protocol,
            kernel,
            shared,
            paid: setup.paid,
            clients: setup.clients.iter().copied().map(State::new).collect(),
            tables: setup.tables,
            payer: Payer {
                is_active: false,
                client: None,
            },
            target: Target::Server,
        }
    }

    /// What the gate's thread does, for good.
    pub async fn run(&mut self) -> ! {
        let mut answer = Answer::None;
        loop {
            let given = match answer {
                Answer::Now(label) => Some((label, &[][..])),
                Answer::None => None,
            };
            let received = self.kernel.receive(given).await;
            let words = received.count.min(WORDS);
            self.kernel.work(Work::Turn(words)).await;
            answer = self.handle(&received).await;
        }
    }

    async fn handle(&mut self, received: &Received) -> Answer {
        let known = |client: &ClientId| client.0 < self.clients.len();
        match Sender::of(received.badge) {
            Some(Sender::Client(client)) if known(&client) => self.request(client, received).await,
            Some(Sender::Spinner(client)) if known(&client) => {
                self.spinner(client, received).await;
                Answer::Now(DONE)
            }
            Some(Sender::SpinnerTimeout(client)) if known(&client) => {
                self.exhaust(client).await;
                Answer::Now(DONE)
            }
            Some(Sender::ServerTimeout) => {
                let client = self.kernel.client_of(received.words[0]).await;
                if let Some(client) = client.filter(|client| self.payer.client == Some(*client)) {
                    self.exhaust(client).await;
                }
                Answer::Now(DONE)
            }
            Some(Sender::Signals(signals)) => {
                self.signals(signals).await;
                Answer::None
            }
            Some(Sender::ServerFault) => {
                self.fail().await;
                Answer::None
            }
            Some(Sender::Supervisor(client)) if known(&client) => {
                self.supervised(client, received.label).await
            }
            Some(Sender::Control) => self.controlled(received).await,
            _ => Answer::Now(MALFORMED),
        }
    }

    /// Somebody says what is to become of a client, or of the server.
    async fn controlled(&mut self, received: &Received) -> Answer {
        if received.count == 0 {
            return Answer::Now(NOT_IN_CONTROL);
        }
        let client = ClientId(received.words[0] as usize);
        match Control::of(received.label) {
            Some(Control::Retarget) => self.retarget(Target::of(received.words[0])).await,
            Some(control) if client.0 < self.clients.len() => self.control(client, control).await,
            _ => return Answer::Now(NOT_IN_CONTROL),
        }
        Answer::Now(DONE)
    }

    /// The server's work is done on another thread from now on: whoever pays runs that one.
    async fn retarget(&mut self, target: Target) {
        let payer = self.payer.client;
        self.target = Target::Nobody;
        if let Some(payer) = payer {
            self.place(payer).await;
        }
        self.target = target;
        self.shared.set_target(target);
        if let Some(payer) = payer {
            self.hire(payer).await;
        }
    }

    /// The context of `client`, which pays, goes to whoever does the server's work, who has its priority then.
    async fn hire(&mut self, client: ClientId) {
        if self.target != Target::Nobody {
            self.kernel.rank(client, self.target).await;
        }
        self.place(client).await;
        let holder = self.clients[client.0].holder;
        if holder != Some(Holder::Server) && self.target != Target::Nobody {
            self.stop_paying(client);
        }
    }

    /// A client makes a request.
    async fn request(&mut self, client: ClientId, received: &Received) -> Answer {
        let now = self.kernel.now();
        let state = &mut self.clients[client.0];
        if state.is_present || state.is_held {
            // Not before the other one: who is refused at once can ask again at once, on the gate's time.
            self.kernel.keep_refused(client);
            return Answer::None;
        }
        let is_beyond = state.is_beyond_allowance(now);
        self.kernel.keep(client);
        state.is_kept = true;
        if received.count > WORDS {
            state.pending.label = MALFORMED;
            state.pending.count = 0;
            self.hold(client).await;
            return Answer::None;
        }
        state.owes_toll = is_beyond;
        state.pending.label = received.label;
        state.pending.count = received.count;
        state.pending.words[..received.count].copy_from_slice(&received.words[..received.count]);
        state.is_present = true;
        let standing = state.standing();
        let invoked = self.protocol.invoke(client, standing);
        debug_assert_eq!(invoked, Ok(()), "no request of it is in the gate");
        self.kernel.mark(Mark::Request(client, standing));
        if !self.payer.is_active {
            self.serve_next().await;
        } else if self.is_in_the_way(client) {
            self.pay(client).await;
        }
        self.place(client).await;
        Answer::None
    }

    /// Whether a client that has just run keeps whoever pays from running, or nobody pays.
    fn is_in_the_way(&self, client: ClientId) -> bool {
        let own = self.clients[client.0].client;
        self.payer.client.is_none_or(|payer| {
            let paying = self.clients[payer.0].client;
            own.core == paying.core && own.priority > paying.priority
        })
    }

    /// The answer is held back until the client's spinner has run long enough.
    async fn hold(&mut self, client: ClientId) {
        self.clients[client.0].is_held = true;
        self.shared.owe_toll(client);
        self.place(client).await;
    }

    /// The server, which is free, begins with the next request. Who has paid so far goes on with it.
    async fn serve_next(&mut self) {
        let Some(client) = self.protocol.next() else {
            self.publish(false, None);
            return;
        };
        self.kernel.mark(Mark::Serve(client));
        let pending = &self.clients[client.0].pending;
        let words = &pending.words[..pending.count];
        self.shared.put_job(client, pending.label, words);
        let payer = self.payer.client;
        self.publish(true, payer);
        // Before its context is bound: a blocked thread may not be given one whose budget is used up.
        self.kernel.wake_server().await;
        if payer.is_none() {
            self.pay(client).await;
        }
    }

    /// Whose context the server has from now on.
    fn publish(&mut self, is_active: bool, client: Option<ClientId>) {
        if client != self.payer.client {
            self.kernel.mark(Mark::Pay(client));
        }
        self.payer = Payer { is_active, client };
        self.shared.set_payer(self.payer);
    }

    /// The context of `client`, whose request is in the gate, is to pay, and nobody else does any more. Nothing changes if it
    /// is known not to have time; if it turns out that it has none, nobody pays.
    async fn pay(&mut self, client: ClientId) {
        let state = &self.clients[client.0];
        let has_time = state.is_enabled && !state.is_exhausted;
        if self.payer.client == Some(client) || self.paid == Paid::ByServer || !has_time {
            return;
        }
        if let Some(before) = self.payer.client {
            self.stop_paying(before);
            self.place(before).await;
        }
        self.publish(true, Some(client));
        self.hire(client).await;
    }

    /// Where a client's context belongs.
    fn home(&self, client: ClientId) -> Option<Holder> {
        let state = &self.clients[client.0];
        if !state.is_enabled {
            None
        } else if self.payer.client == Some(client) {
            (self.target != Target::Nobody).then_some(Holder::Server)
        } else if state.is_held || state.is_present && self.paid == Paid::ByClients {
            Some(Holder::Spinner)
        } else {
            Some(Holder::Client)
        }
    }

    /// A client has no budget any more.
    fn lose_budget(&mut self, client: ClientId) {
        self.clients[client.0].is_exhausted = true;
        self.shared.set_exhausted(client, true);
        let _ = self.protocol.exhaust(client);
        self.kernel.mark(Mark::Exhaust(client));
    }

    /// The context of a client is used up. If it paid, nobody does until somebody offers to.
    async fn exhaust(&mut self, client: ClientId) {
        if !self.clients[client.0].is_present {
            return;
        }
        self.lose_budget(client);
        self.stop_paying(client);
        self.place(client).await;
    }

    async fn signals(&mut self, signals: Signals) {
        for number in 0..self.tables.len() {
            let core = self.tables[number].core();
            if !signals.is_tick_of(core) {
                continue;
            }
            while self.tables[number].begun() < self.shared.ticks(core) {
                for edge in self.tables[number].tick() {
                    let (client, control) = self.tables[number].edge(edge);
                    self.control(client, control).await;
                    if control == Control::Resume {
                        self.kernel.release(client).await;
                    }
                }
            }
        }
        if signals.is_server_done() {
            self.finish().await;
        }
        if signals.are_clients_gone() {
            while let Some(client) = self.kernel.next_gone().await {
                self.is_gone(client).await;
            }
        }
    }

    async fn spinner(&mut self, client: ClientId, received: &Received) {
        match Request::of(received.label) {
            Some(Request::Take) => {
                // Whoever pays by now may have begun to do so since it looked. Then the server is moved once too often; but if
                // others had it from each other all the time, this one could not have it otherwise.
                let state = &self.clients[client.0];
                if state.is_present && self.payer.is_active {
                    self.pay(client).await;
                }
            }
            Some(Request::Replenished) => self.replenish(client).await,
            Some(Request::Moved) => {
                let cluster = received.words[0] as usize;
                let urgency = self.clients[client.0].urgency();
                self.clients[client.0].client.core = cluster;
                self.protocol.relocate(client, cluster, urgency);
                self.kernel.mark(Mark::Move(client, cluster, urgency));
            }
            Some(Request::TollPaid) => self.toll_paid(client).await,
            None => {}
        }
    }

    /// A client has paid its toll, if it owed one.
    async fn toll_paid(&mut self, client: ClientId) {
        if core::mem::replace(&mut self.clients[client.0].is_held, false) {
            self.release(client).await;
        }
    }

    /// A client has budget.
    async fn replenish(&mut self, client: ClientId) {
        self.shared.set_exhausted(client, false);
        let state = &mut self.clients[client.0];
        state.is_exhausted = false;
        if let Standing::RealTime(urgency) = state.standing() {
            if state.is_present {
                self.protocol.replenish(client, urgency);
                self.kernel.mark(Mark::Replenish(client, urgency));
            }
        }
        let is_served = self.protocol.served() == Some(client);
        if is_served && self.payer.client.is_none() {
            self.pay(client).await;
        }
    }

    /// The server has done its job: the client is answered, and the next request begins.
    async fn finish(&mut self) {
        let Some(client) = self.protocol.finish() else {
            return;
        };
        self.kernel.mark(Mark::Finish(client));
        let state = &mut self.clients[client.0];
        let (label, count) = self.shared.answer(&mut state.pending.words);
        state.pending.label = label;
        state.pending.count = count;
        state.is_present = false;
        state.is_exhausted = false;
        let owes_toll = core::mem::replace(&mut state.owes_toll, false);
        self.shared.set_exhausted(client, false);
        let payer = self.payer.client.filter(|payer| *payer != client);
        self.publish(false, payer);
        if owes_toll {
            self.hold(client).await;
        } else {
            self.release(client).await;
        }
        self.serve_next().await;
    }

    /// A client that has no request any more is answered, if it waits for that, and has its context. In this order: a
    /// blocked thread may not be given a context whose budget is used up.
    async fn release(&mut self, client: ClientId) {
        let state = &mut self.clients[client.0];
        let pending = &state.pending;
        let words = &pending.words[..pending.count];
        if core::mem::replace(&mut state.is_kept, false) {
            self.kernel.answer(client, pending.label, words).await;
        }
        self.kernel.answer_refused(client, BUSY).await;
        self.place(client).await;
    }

    async fn control(&mut self, client: ClientId, control: Control) {
        let state = &mut self.clients[client.0];
        match control {
            Control::Suspend => {
                state.is_enabled = false;
                if state.is_present {
                    let _ = self.protocol.exhaust(client);
                    self.kernel.mark(Mark::Exhaust(client));
                }
                self.stop_paying(client);
                self.place(client).await;
            }
            Control::Resume => {
                state.is_enabled = true;
                self.replenish(client).await;
                self.place(client).await;
            }
            Control::Demote => {
                state.is_demoted = true;
                if state.is_present {
                    let _ = self.protocol.exhaust(client);
                    self.kernel.mark(Mark::Exhaust(client));
                }
            }
            Control::Promote => {
                state.is_demoted = false;
                if !state.is_exhausted {
                    self.replenish(client).await;
                }
            }
            Control::Withdraw => self.withdraw(client).await,
            Control::Exhaust => {
                if self.payer.client == Some(client) {
                    self.exhaust(client).await;
                }
            }
            // It is about no client.
            Control::Retarget => {}
        }
    }

    /// If a client pays, it does not any more, and nobody does.
    fn stop_paying(&mut self, client: ClientId) {
        if self.payer.client == Some(client) {
            self.publish(self.payer.is_active, None);
        }
    }
}
