//! Budgets: on whose scheduling context a server runs.
//!
//! Under bandwidth inheritance a server runs on its own client's as long as that has budget, then on
//! that of the waiting client of the highest priority that has. If none has, it gets that of the
//! highest priority, whose period is the shortest under rate-monotonic priorities, and waits for its
//! replenishment, or for another client to come. Under the other protocols it is always its own
//! client's.

use sandglass_description::policy::sharing::{Protocol, Requester, MOST_CLIENTS};

use super::action::{Action, Actions, Then};
use super::Arbiter;

/// A set of clients, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientSet(u64);

const _: () = assert!(MOST_CLIENTS <= u64::BITS as usize);

impl ClientSet {
    fn insert(&mut self, client: usize) {
        self.0 |= 1 << client;
    }

    fn contains(self, client: usize) -> bool {
        self.0 >> client & 1 == 1
    }
}

impl Arbiter {
    /// A server needs a context: its own client's, if that has budget.
    pub(super) fn lend_first(&mut self, server: usize, then: Then, actions: &mut Actions) {
        let Some(lock) = &mut self.locks[server] else {
            return;
        };
        lock.tried = ClientSet::default();
        let entry = lock.entry;
        let client = self.origin(entry);
        self.lend(server, client, then, self.is_strict(), actions);
    }

    /// A server needs another client's context than those tried.
    pub(super) fn lend_next(&mut self, server: usize, actions: &mut Actions) {
        let Some(lock) = &self.locks[server] else {
            return;
        };
        let (then, tried) = (lock.then, lock.tried);
        let own = self.origin(lock.entry);
        if self.is_strict() {
            self.lend(server, own, then, true, actions);
        } else if let Some(client) = self.highest_waiting(server, tried) {
            self.lend(server, client, then, false, actions);
        } else {
            let client = self.highest_waiting(server, ClientSet::default());
            self.lend(server, client.unwrap_or(own), then, true, actions);
            if let Some(lock) = &mut self.locks[server] {
                lock.is_stalled = true;
            }
        }
    }

    /// A client arrived that waits for `resource`: a server that waits for budget continues on the client's, if it has any. (A
    /// client asks from which of its threads it likes; what it lends is the context of its main thread.)
    pub(super) fn help(&mut self, resource: usize, actions: &mut Actions) {
        let server = self.last_of(resource);
        let is_stalled = self.locks[server]
            .as_ref()
            .is_some_and(|lock| lock.is_stalled);
        if !is_stalled {
            return;
        }
        let Some(client) = self.latest_payer() else {
            return;
        };
        actions.push(Action::Help { client, server });
    }

    /// [`Action::Help`] was possible: the server runs on the client's budget.
    pub fn helped(&mut self, server: usize, client: usize) {
        if let Some(lock) = &mut self.locks[server] {
            lock.then = Then::Nothing;
            lock.is_stalled = false;
            lock.payer = Some(client);
            lock.tried.insert(client);
        }
    }

    /// Some do not wait any more for those that they waited for, and their contexts are elsewhere: whoever works on one gets
    /// that of a waiting client.
    pub(super) fn replace_payers(&mut self, actions: &mut Actions) {
        for server in 0..self.locks.len() {
            // A server that waits for another one needs no context.
            let waits = self.in_progress(Requester::Server(server as u32)).is_some();
            let payer = self.locks[server].as_ref().and_then(|lock| lock.payer);
            if waits || payer.is_none_or(|payer| self.waits_for(payer, server)) {
                continue;
            }
            if let Some(lock) = &mut self.locks[server] {
                lock.tried = ClientSet::default();
                // It has what it was lent them for; only a fault of it may still wait for an answer.
                lock.then = Then::Continue;
                self.lend_next(server, actions);
            }
        }
    }

    fn lend(
        &mut self,
        server: usize,
        client: usize,
        then: Then,
        even_if_empty: bool,
        actions: &mut Actions,
    ) {
        if let Some(lock) = &mut self.locks[server] {
            lock.then = then;
            lock.is_stalled = false;
            lock.payer = Some(client);
            lock.tried.insert(client);
        }
        actions.push(Action::Lend {
            client,
            server,
            then,
            even_if_empty,
        });
    }

    /// Whether a server never runs on another client's context.
    fn is_strict(&self) -> bool {
        match self.table.protocol {
            Protocol::Inheritance | Protocol::OriginalCeiling => true,
            Protocol::BandwidthInheritance => false,
        }
    }

    /// Whether a client waits, at last, for this server.
    fn waits_for(&self, client: usize, server: usize) -> bool {
        let entry = self.in_progress(Requester::Client(client as u32));
        entry.is_some_and(|entry| self.last_of(self.entry(entry).resource as usize) == server)
    }

    /// The client of the highest priority that waits for this server and is not in `without`.
    fn highest_waiting(&self, server: usize, without: ClientSet) -> Option<usize> {
        (0..self.table.clients.len())
            .filter(|&client| !without.contains(client) && self.waits_for(client, server))
            .max_by_key(|&client| (self.table.clients[client], core::cmp::Reverse(client)))
    }

    /// The client on whose context the latest request was made, or whose thread made it.
    fn latest_payer(&self) -> Option<usize> {
        match self.entry(self.waiting.last()?.entry).requester {
            Requester::Client(client) => Some(client as usize),
            Requester::Server(server) => self.locks[server as usize].as_ref()?.payer,
        }
    }
}
