//! The locking server of nested requests (thesis 6.4.2, Figure 6.6), without its system calls.
//!
//! A resource is a server: it handles one request at a time, and holding the resource means that
//! the server works for one. While it does, it may ask for further resources, so what a client
//! holds is a chain of servers, of which the last one runs and the others wait for an answer.
//!
//! Inputs are the events that the proxy sees ([`Arbiter::request`], [`Arbiter::completed`],
//! [`Arbiter::timed_out`], [`Arbiter::refused`], [`Arbiter::helped`], [`Arbiter::ended`]); what is to be done about each comes back as
//! [`Actions`], in order.
//!
//! Invariants:
//! - a resource is held by at most one request, and no client is served twice at a time;
//! - no request waits that could be granted: the waiting are looked at after each event, the
//!   highest priority first, in the order of arrival among equals (but see [`Action::Remind`]);
//! - the priority of a server that works is the highest of its client's and of those that wait for
//!   it, also through other resources; it is set before the server runs.

mod action;
mod payer;
mod priority;
mod state;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use sandglass_description::policy::sharing::{Protocol, Requester, Sharing};

pub use action::{Action, Actions, Refusal, Then};
use payer::ClientSet;
use state::{Lock, ResourceList, Wait};

/// Who holds what, and who waits.
#[derive(Clone, Debug)]
pub struct Arbiter {
    table: Sharing,
    /// Of each resource: the highest priority among the clients that can ask for it, also through
    /// others.
    ceilings: Vec<u8>,
    /// Of each resource.
    locks: Vec<Option<Lock>>,
    /// In order of arrival.
    waiting: Vec<Wait>,
    /// The priority that the server of each resource was last given.
    given: Vec<Option<u8>>,
    /// Of each resource: its server has ended.
    gone: Vec<bool>,
    /// Under the original ceiling protocol, the priority of a client that was answered and may
    /// still run: what is free is kept from clients below it. They would not run now, so they
    /// could not take it; and if they had it, the client would be blocked by them once more.
    kept_for: Option<u8>,
}

impl Arbiter {
    /// Nobody holds anything.
    ///
    /// # Panics
    /// If the table names a client or resource that it does not have.
    pub fn new(table: Sharing) -> Self {
        let resources = table.resources as usize;
        Self {
            ceilings: priority::ceilings(&table),
            locks: (0..resources).map(|_| None).collect(),
            waiting: Vec::new(),
            given: alloc::vec![None; resources],
            gone: alloc::vec![false; resources],
            kept_for: None,
            table,
        }
    }

    /// A request arrives through an entry. It waits until it is granted.
    ///
    /// # Errors
    /// It will never be served, and the requester is to be told at once. Nothing has changed.
    pub fn request(&mut self, entry: usize) -> Result<Actions, Refusal> {
        let requester = self.entry(entry).requester;
        let resource = self.entry(entry).resource as usize;
        self.may_ask(requester)?;
        if self.gone[resource] {
            return Err(Refusal::Gone);
        }
        if let Requester::Server(asking) = requester {
            if self.leads_to(resource, asking as usize) {
                return Err(Refusal::Deadlock);
            }
        }
        self.waiting.push(Wait { entry });
        let priority = self.requester_priority(entry, &self.priorities());
        if self.kept_for.is_some_and(|kept_for| priority < kept_for) {
            // Who is above it does not run.
            self.kept_for = None;
        }
        let mut actions = Actions::default();
        self.settle(&mut actions);
        self.help(resource, &mut actions);
        Ok(actions)
    }

    /// The server of a resource has finished the request that it was given.
    ///
    /// Does nothing if it had none, or still waits for a request of its own: it is wrong about that, and nobody else
    /// should suffer.
    pub fn completed(&mut self, resource: usize) -> Actions {
        let mut actions = Actions::default();
        if self.beyond(resource).is_some() {
            return actions;
        }
        let Some(lock) = self.locks.get_mut(resource).and_then(Option::take) else {
            return actions;
        };
        match self.entry(lock.entry).requester {
            Requester::Client(client) => {
                actions.push(Action::Answer { entry: lock.entry });
                self.keep_for(client);
            }
            // Nobody reads the answer; but those who wait for that server can be told now.
            Requester::Server(server) if self.gone[server as usize] => {
                self.tell_gone(server as usize, &mut actions);
            }
            Requester::Server(server) => {
                let then = Then::Answer { entry: lock.entry };
                self.lend_first(server as usize, then, &mut actions);
            }
        }
        self.settle(&mut actions);
        actions
    }

    /// The server of a resource has ended. Its client and those who wait for it are told, but not before a request that it
    /// made itself is served: the other server works on their time.
    pub fn ended(&mut self, resource: usize) -> Actions {
        let mut actions = Actions::default();
        let Some(gone) = self.gone.get_mut(resource) else {
            return actions;
        };
        *gone = true;
        let own = Requester::Server(resource as u32);
        let entries = &self.table.entries;
        self.waiting
            .retain(|wait| entries[wait.entry].requester != own);
        self.tell_gone(resource, &mut actions);
        self.settle(&mut actions);
        actions
    }

    /// The budget with which the server of a resource runs is exhausted; the server waits for an
    /// answer to its fault.
    pub fn timed_out(&mut self, resource: usize) -> Actions {
        let mut actions = Actions::default();
        let Some(lock) = self.locks[resource].as_mut() else {
            return actions;
        };
        lock.tried = ClientSet::default();
        lock.then = Then::Continue;
        self.lend_next(resource, &mut actions);
        actions
    }

    /// The last [`Action::Lend`] to the server of a resource was not possible: that client's
    /// budget is exhausted.
    pub fn refused(&mut self, resource: usize) -> Actions {
        let mut actions = Actions::default();
        self.lend_next(resource, &mut actions);
        actions
    }

    /// It is the turn of the priority of [`Action::Remind`]: no thread above it runs.
    pub fn reminded(&mut self) -> Actions {
        self.kept_for = None;
        let mut actions = Actions::default();
        self.settle(&mut actions);
        actions
    }

    /// Whether no resource is held, and no client waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.locks.iter().all(Option::is_none)
    }

    /// A client is answered, and may still run: see [`Self::kept_for`].
    fn keep_for(&mut self, client: u32) {
        if self.table.protocol == Protocol::OriginalCeiling {
            self.kept_for = self.kept_for.max(Some(self.table.clients[client as usize]));
        }
    }

    /// Tells those who have asked for a resource that its server has ended, unless something that this one asked for is still
    /// served. Who was asked for by a server that has ended itself, is told in its place.
    fn tell_gone(&mut self, resource: usize, actions: &mut Actions) {
        let mut ended = ResourceList::default();
        ended.push(resource);
        // Each is added once: its requests are taken away before.
        let mut next = 0;
        while let Some(&resource) = ended.as_slice().get(next) {
            next += 1;
            if self
                .in_progress(Requester::Server(resource as u32))
                .is_some()
            {
                continue;
            }
            for entry in self.take_requests(resource) {
                match self.entry(entry).requester {
                    Requester::Client(client) => {
                        actions.push(Action::Gone { entry });
                        self.keep_for(client);
                    }
                    Requester::Server(server) if self.gone[server as usize] => {
                        ended.push(server as usize);
                    }
                    Requester::Server(server) => {
                        self.lend_first(server as usize, Then::Gone { entry }, actions);
                    }
                }
            }
        }
        self.replace_payers(actions);
    }

    /// Takes away all requests for a resource, the one that holds it first: entries.
    fn take_requests(&mut self, resource: usize) -> Vec<usize> {
        let held = self.locks[resource].take().map(|lock| lock.entry);
        let (asking, others): (Vec<Wait>, Vec<Wait>) = self
            .waiting
            .iter()
            .partition(|wait| self.entry(wait.entry).resource as usize == resource);
        self.waiting = others;
        let waiting = asking.into_iter().map(|wait| wait.entry);
        held.into_iter().chain(waiting).collect()
    }

    /// Grants all that can be granted, and gives every server its priority.
    fn settle(&mut self, actions: &mut Actions) {
        let mut granted = ResourceList::default();
        while let Some((priority, index)) = self.next_grant() {
            if self.kept_for.is_some_and(|kept_for| priority < kept_for) {
                actions.push(Action::Remind { priority });
                break;
            }
            let wait = self.waiting.remove(index);
            let resource = self.entry(wait.entry).resource as usize;
            self.locks[resource] = Some(Lock::new(wait.entry));
            granted.push(resource);
        }
        self.prioritise(actions);
        for &resource in granted.as_slice() {
            if let Some(lock) = &self.locks[resource] {
                let then = Then::Forward { entry: lock.entry };
                self.lend_first(resource, then, actions);
            }
        }
    }

    /// The first of the waiting that can be granted, of the highest priority, else of the earliest
    /// arrival: its priority and index.
    fn next_grant(&self) -> Option<(u8, usize)> {
        if self.waiting.is_empty() {
            return None;
        }
        let priorities = self.priorities();
        let mut best: Option<(u8, usize)> = None;
        for (index, wait) in self.waiting.iter().enumerate() {
            let priority = self.requester_priority(wait.entry, &priorities);
            let is_better = best.is_none_or(|(highest, _)| priority > highest);
            if is_better && self.can_grant(wait.entry, priority) {
                best = Some((priority, index));
            }
        }
        best
    }

    fn can_grant(&self, entry: usize, priority: u8) -> bool {
        let resource = self.entry(entry).resource as usize;
        if self.locks[resource].is_some() {
            return false;
        }
        match self.table.protocol {
            Protocol::Inheritance | Protocol::BandwidthInheritance => true,
            Protocol::OriginalCeiling => {
                let ceiling = self.system_ceiling(self.origin(entry));
                ceiling.is_none_or(|(ceiling, _)| priority > ceiling)
            }
        }
    }
}
