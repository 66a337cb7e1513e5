//! The proxy S1 of Figure 6.6: the [arbiter](crate::arbiter) with its system calls.
//!
//! It has the highest priority among those who share, and time of its own that never runs out, so
//! that what it does between two waits is, to clients and servers, one step. It is active, and so
//! a call lends it nothing: a client that waits keeps its scheduling context until the proxy gives
//! that to a server. Servers are passive.
//!
//! A message is passed on as it is, up to its 120 words, with the badge that the client has in the
//! description; capabilities are not.

mod contexts;
mod shares;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::{nb_send_recv, nb_send_wait, Endpoint, Notification, Reply, Tcb};
use sandglass::{sys, time, Environment, Error, Message};
use sandglass_description::policy::sharing::{badge, Protocol, Requester, Sharing};
use sandglass_description::policy::Table;

use crate::arbiter::{Action, Actions, Arbiter, Refusal, Then};
use crate::stored::Stored;
use contexts::Contexts;
use shares::Shares;

/// Labels of the answers that a requester gets from the proxy itself. Requests should not have
/// them.
pub mod label {
    /// Served, this request would wait for its requester for ever.
    pub const DEADLOCK: u64 = 0x5_0001;
    /// Another thread of this client is being served.
    pub const BUSY: u64 = 0x5_0002;
    /// The server asked while it worked for no client.
    pub const NO_CLIENT: u64 = 0x5_0003;
    /// The client's time is not there to be lent: another of its threads has taken it to another server, say.
    pub const NO_TIME: u64 = 0x5_0004;
    /// The resource's server has ended: it panicked, or is stopped by a fault.
    pub const GONE: u64 = 0x5_0005;
}

/// What one message costs a client of its share at most, µs: the proxy may have been preempted from above.
const MOST_PER_MESSAGE_US: u64 = 20;

/// Serves as the proxy for good.
///
/// # Errors
/// The kernel refuses what the description granted: another component changed the threads meanwhile.
///
/// # Panics
/// If this component is not a proxy that the builder made.
pub fn run(env: &'static Environment) -> Result<Infallible, Error> {
    let reply = env.capability(&format!("{}.reply", env.name()));
    Proxy::new(env).serve(env.ready(), reply)
}

struct Proxy {
    table: Sharing,
    arbiter: Arbiter,
    requests: Endpoint,
    /// Signalled when servers have ended.
    ends: Notification,
    /// Bounds the priorities that it gives.
    authority: Tcb,
    contexts: Contexts,
    servers: Vec<Server>,
    /// By entry.
    entries: Vec<Entry>,
    /// The answer of the server that was last done.
    answer: Stored,
    /// Reply objects that represent no client.
    free: Vec<Reply>,
    reminder: Option<Reminder>,
    shares: Shares,
    /// Of each client.
    threads: Vec<usize>,
    /// Ticks, of [`MOST_PER_MESSAGE_US`].
    most_per_message: u64,
    /// Ticks that the kernel takes at least to deliver a message.
    delivery: u64,
    /// Requests of clients that have had their share, in the order of their arrival.
    held: VecDeque<Held>,
    /// Wakes the thread that lets time pass.
    clock: Notification,
    /// It will tell.
    is_clock_set: bool,
}

/// A request that the proxy has not heard yet.
struct Held {
    entry: usize,
    reply: Reply,
    request: Stored,
}

struct Server {
    tcb: Tcb,
    /// Stands for it while its budget is exhausted.
    fault: Option<Reply>,
}

struct Entry {
    /// With the badge of its client.
    server: Endpoint,
    /// Stands for the requester.
    requester: Option<Reply>,
    request: Stored,
}

/// A thread that tells the proxy when a priority's turn has come.
struct Reminder {
    tcb: Tcb,
    doorbell: Notification,
}

impl Proxy {
    fn new(env: &'static Environment) -> Self {
        // SAFETY: the system maps the table for good, and nobody can write it.
        let bytes = unsafe { env.memory(Sharing::NAME).as_bytes() };
        let table = Sharing::decode(bytes).expect("builder and proxy are of the same sources");
        let servers: Vec<_> = (0..table.resources)
            .map(|number| Server {
                tcb: env.capability(&format!("server.{number}.tcb")),
                fault: None,
            })
            .collect();
        let entries: Vec<_> = (0..table.entries.len())
            .map(|number| Entry {
                server: env.capability(&format!("request.{number}")),
                requester: None,
                request: Stored::default(),
            })
            .collect();
        let tsc = env.tsc().expect("the kernel reports the clock's frequency");
        let reservation = |client| {
            let ticks = |what| tsc.us_to_ticks(env.parameter(&format!("client.{client}.{what}")));
            (ticks("budget"), ticks("period"))
        };
        let free = (0..)
            .map_while(|number| env.find_capability(&format!("reply.{number}")))
            .collect();
        let clock = start_clock(env);
        Self {
            requests: env.capability(env.name()),
            ends: env.capability("ends"),
            authority: env.capability("self.tcb"),
            contexts: Contexts::find(env, table.clients.len(), &servers, start_probe(env)),
            servers,
            entries,
            answer: Stored::default(),
            free,
            reminder: (table.protocol == Protocol::OriginalCeiling).then(|| Reminder::start(env)),
            arbiter: Arbiter::new(table.clone()),
            shares: Shares::new((0..table.clients.len()).map(reservation)),
            threads: (0..table.clients.len())
                .map(|client| env.parameter(&format!("client.{client}.threads")) as usize)
                .collect(),
            most_per_message: tsc.us_to_ticks(MOST_PER_MESSAGE_US),
            delivery: delivery(clock),
            held: VecDeque::new(),
            clock,
            is_clock_set: false,
            table,
        }
    }

    fn serve(mut self, ready: Notification, first: Reply) -> Result<Infallible, Error> {
        self.authority.bind_notification(self.ends)?;
        let mut reply = first;
        let mut received = nb_send_recv(ready, Message::EMPTY, self.requests, reply);
        loop {
            let start = time::ticks();
            let client = self.client_of(received.badge);
            if self.handle(received.badge, received.message, reply)? {
                reply = self.free_reply();
            }
            self.charge(client, start);
            received = self.requests.recv(reply);
        }
    }

    /// A reply object that represents no client: there is one for each thread that can wait for the
    /// proxy, and one more.
    fn free_reply(&mut self) -> Reply {
        self.free.pop().expect("the builder grants enough")
    }

    /// Handles what arrived; whether `reply` now represents a client.
    fn handle(&mut self, badge: u64, message: Message, reply: Reply) -> Result<bool, Error> {
        if badge & badge::ENDED != 0 {
            for resource in (0..self.servers.len()).filter(|resource| badge >> resource & 1 == 1) {
                let actions = self.arbiter.ended(resource);
                self.perform(actions)?;
            }
            Ok(false)
        } else if badge >= badge::TICK {
            self.is_clock_set = false;
            self.hear_held()?;
            Ok(false)
        } else if badge >= badge::TURN {
            let actions = self.arbiter.reminded();
            self.perform(actions)?;
            Ok(false)
        } else if badge >= badge::TIMEOUT {
            let server = (badge - badge::TIMEOUT) as usize;
            self.servers[server].fault = Some(reply);
            let actions = self.arbiter.timed_out(server);
            self.perform(actions)?;
            Ok(true)
        } else if badge >= badge::DONE {
            self.answer.store(message);
            let actions = self.arbiter.completed((badge - badge::DONE) as usize);
            self.perform(actions)?;
            Ok(false)
        } else {
            let entry = badge as usize - 1;
            if self.may_be_heard(entry) {
                self.request(entry, message, reply)
            } else {
                Ok(self.hold(entry, message, reply))
            }
        }
    }

    /// The proxy has worked for a client since `start`, when a message had been delivered.
    fn charge(&mut self, client: Option<usize>, start: u64) {
        let taken = time::ticks() - start + self.delivery;
        if let Some(client) = client {
            self.shares.charge(client, taken.min(self.most_per_message));
        }
    }

    /// For which client the proxy works when it handles a message with this badge.
    fn client_of(&self, badge: u64) -> Option<usize> {
        let server = match badge {
            0 | badge::TURN.. => return None,
            badge::TIMEOUT.. => badge - badge::TIMEOUT,
            badge::DONE.. => badge - badge::DONE,
            _ => match self.table.entries.get(badge as usize - 1)?.requester {
                Requester::Client(client) => return Some(client as usize),
                Requester::Server(server) => server.into(),
            },
        };
        self.arbiter.client_of(server as usize)
    }

    /// Whether the proxy serves requests through `entry` now. Servers ask on behalf of clients that were accepted.
    fn may_be_heard(&mut self, entry: usize) -> bool {
        match self.table.entries[entry].requester {
            Requester::Client(client) => self.shares.admits(client as usize, time::ticks()),
            Requester::Server(_) => true,
        }
    }

    /// Keeps a request for later. A client has as many requests as threads, and so a reply object for each; it can only have
    /// more if a waiting thread was stopped and resumed: one too many is refused.
    fn hold(&mut self, entry: usize, message: Message, reply: Reply) -> bool {
        let Requester::Client(client) = self.table.entries[entry].requester else {
            return false;
        };
        let client = client as usize;
        let is_its = |held: &&Held| {
            self.table.entries[held.entry].requester == Requester::Client(client as u32)
        };
        let held = self.held.iter().filter(is_its).count();
        if held + usize::from(self.arbiter.has_request(client)) >= self.threads[client] {
            reply.send(Message::new(label::BUSY, []));
            return false;
        }
        let mut request = Stored::default();
        request.store(message);
        self.held.push_back(Held {
            entry,
            reply,
            request,
        });
        self.set_clock();
        true
    }

    fn set_clock(&mut self) {
        if !self.is_clock_set {
            self.is_clock_set = true;
            self.clock.signal();
        }
    }

    /// Time has passed: hears those whose next period has begun.
    fn hear_held(&mut self) -> Result<(), Error> {
        for _ in 0..self.held.len() {
            let Some(held) = self.held.pop_front() else {
                break;
            };
            if self.may_be_heard(held.entry) {
                let start = time::ticks();
                let client = self.client_of(held.entry as u64 + 1);
                if !self.request(held.entry, held.request.message(), held.reply)? {
                    self.free.push(held.reply);
                }
                self.charge(client, start);
            } else {
                self.held.push_back(held);
            }
        }
        if !self.held.is_empty() {
            self.set_clock();
        }
        Ok(())
    }

    fn request(&mut self, entry: usize, message: Message, reply: Reply) -> Result<bool, Error> {
        let actions = match self.arbiter.request(entry) {
            Ok(actions) => actions,
            Err(refusal) => {
                reply.send(Message::new(refusal_label(refusal), []));
                return Ok(false);
            }
        };
        self.entries[entry].requester = Some(reply);
        self.entries[entry].request.store(message);
        self.perform(actions)?;
        Ok(true)
    }

    fn perform(&mut self, actions: Actions) -> Result<(), Error> {
        for action in actions {
            match action {
                Action::Prioritise { server, priority } => {
                    let tcb = self.servers[server].tcb;
                    tcb.set_priority(self.authority, priority)?;
                }
                Action::Lend {
                    client,
                    server,
                    then,
                    even_if_empty,
                } => self.lend(client, server, then, even_if_empty)?,
                Action::Help { client, server } => {
                    if self.contexts.help(client, server) {
                        self.arbiter.helped(server, client);
                    }
                }
                Action::Answer { entry } => self.answer_client(entry),
                Action::Gone { entry } => {
                    self.answer.store(Message::new(label::GONE, []));
                    self.answer_client(entry);
                }
                Action::Remind { priority } => {
                    if let Some(reminder) = &self.reminder {
                        reminder.tcb.set_priority(self.authority, priority)?;
                        reminder.doorbell.signal();
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives a server a context. If the client has no budget, the arbiter decides which is next. What a client did
    /// with its own context is its own trouble: nothing about it ends the proxy.
    fn lend(
        &mut self,
        client: usize,
        server: usize,
        then: Then,
        even_if_empty: bool,
    ) -> Result<(), Error> {
        let own = self.arbiter.client_of(server);
        let is_free = self.contexts.free(client, server).is_ok();
        if !is_free && own == Some(client) && matches!(then, Then::Forward { .. }) {
            // The server has not heard of it yet.
            self.answer.store(Message::new(label::NO_TIME, []));
            let actions = self.arbiter.completed(server);
            return self.perform(actions);
        }
        if even_if_empty {
            // A running thread can have a context without budget. Otherwise it continues when it has one: that of its own
            // client, if the other's is not there.
            self.follow(server, then);
            let is_given = is_free && self.contexts.give(client, server).is_ok();
            if let Some(own) = own.filter(|_| !is_given) {
                let _ = self
                    .contexts
                    .free(own, server)
                    .and_then(|()| self.contexts.give(own, server));
            }
            return Ok(());
        }
        if is_free && self.contexts.give(client, server).is_ok() {
            self.follow(server, then);
            return Ok(());
        }
        let actions = self.arbiter.refused(server);
        self.perform(actions)
    }

    fn follow(&mut self, server: usize, then: Then) {
        match then {
            Then::Forward { entry } => {
                let entry = &self.entries[entry];
                entry.server.nb_send(entry.request.message());
            }
            Then::Answer { entry } => self.answer(entry),
            Then::Gone { entry } => {
                self.answer.store(Message::new(label::GONE, []));
                self.answer(entry);
            }
            Then::Continue => {
                if let Some(fault) = self.servers[server].fault.take() {
                    // An empty answer with label 0 makes the server continue.
                    fault.send(Message::EMPTY);
                    self.free.push(fault);
                }
            }
            Then::Nothing => {}
        }
    }

    /// Answers a client, which gets its context back.
    fn answer_client(&mut self, entry: usize) {
        self.answer(entry);
        if let Requester::Client(client) = self.table.entries[entry].requester {
            self.contexts.give_back(client as usize);
        }
    }

    fn answer(&mut self, entry: usize) {
        if let Some(requester) = self.entries[entry].requester.take() {
            requester.send(self.answer.message());
            self.free.push(requester);
        }
    }
}

const fn refusal_label(refusal: Refusal) -> u64 {
    match refusal {
        Refusal::Deadlock => label::DEADLOCK,
        Refusal::Busy => label::BUSY,
        Refusal::NoClient => label::NO_CLIENT,
        Refusal::Gone => label::GONE,
    }
}

/// Lets the thread start that only waits, and on whose readiness to have a context the proxy sees whether there is budget
/// in that; there is one only where it matters.
fn start_probe(env: &'static Environment) -> Option<Tcb> {
    let probe = env.find_capability("probe.tcb")?;
    let ready: Notification = env.capability("probe.ready");
    let never: Notification = env.capability("probe.never");
    env.thread("probe").prepare(move || {
        // At once, since the launcher takes its time away then.
        nb_send_wait(ready, Message::EMPTY, never);
    });
    Some(probe)
}

/// Lets the proxy's clock start with the launcher, when the proxy is ready; returns what wakes it.
fn start_clock(env: &'static Environment) -> Notification {
    let wake: Notification = env.capability("clock.wake");
    let tick: Endpoint = env.capability("clock.tick");
    env.thread("clock").prepare(move || loop {
        wake.wait();
        // To the beginning of its own next period.
        sys::yield_now();
        // The proxy always waits when another thread runs.
        tick.nb_send(Message::EMPTY);
    });
    wake
}

/// Ticks that the kernel takes to find that there is nothing to receive. That it takes as long at least to deliver a message
/// stays unseen: what is received may have come much later than it was asked for.
fn delivery(nobody_signals_yet: Notification) -> u64 {
    let start = time::ticks();
    nobody_signals_yet.poll();
    time::ticks() - start
}

impl Reminder {
    /// Starts with the launcher, when the proxy is ready.
    fn start(env: &'static Environment) -> Self {
        let doorbell: Notification = env.capability("doorbell");
        let turn: Endpoint = env.capability("turn");
        let body = move || loop {
            doorbell.wait();
            // The proxy always waits when another thread runs.
            turn.nb_send(Message::EMPTY);
        };
        env.thread("reminder").prepare(body);
        Self {
            tcb: env.capability("reminder.tcb"),
            doorbell,
        }
    }
}
