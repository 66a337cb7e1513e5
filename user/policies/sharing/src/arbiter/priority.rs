//! Priorities: ceilings, inheritance, and what that makes of each server.

use alloc::vec::Vec;

use sandglass_description::policy::sharing::{Protocol, Requester, Sharing, MOST_RESOURCES};

use super::action::{Action, Actions};
use super::Arbiter;

/// The effective priority of the holder of each resource; 0 where it is free.
pub type Priorities = [u8; MOST_RESOURCES];

/// The ceilings of a table's resources: of nested requests, also through the resource that asks.
pub fn ceilings(table: &Sharing) -> Vec<u8> {
    let mut ceilings = alloc::vec![0; table.resources as usize];
    // A longer way goes through a resource twice, and adds nothing.
    for _ in 0..=table.resources {
        for entry in &table.entries {
            let priority = match entry.requester {
                Requester::Client(client) => table.clients[client as usize],
                Requester::Server(server) => ceilings[server as usize],
            };
            let ceiling = &mut ceilings[entry.resource as usize];
            *ceiling = priority.max(*ceiling);
        }
    }
    ceilings
}

impl Arbiter {
    /// The ceilings of the resources.
    pub fn ceilings(&self) -> &[u8] {
        &self.ceilings
    }

    /// The priority with which a request is made.
    pub(super) fn requester_priority(&self, entry: usize, priorities: &Priorities) -> u8 {
        match self.entry(entry).requester {
            Requester::Client(client) => self.table.clients[client as usize],
            Requester::Server(server) => priorities[server as usize],
        }
    }

    /// The highest ceiling among what other clients than `client` hold, and a resource with it.
    pub(super) fn system_ceiling(&self, client: usize) -> Option<(u8, usize)> {
        let mut highest: Option<(u8, usize)> = None;
        for (resource, lock) in self.locks.iter().enumerate() {
            let Some(lock) = lock else { continue };
            let ceiling = self.ceilings[resource];
            let is_higher = highest.is_none_or(|(found, _)| ceiling > found);
            if is_higher && self.origin(lock.entry) != client {
                highest = Some((ceiling, resource));
            }
        }
        highest
    }

    /// The resource whose holder keeps this request waiting.
    fn blocker(&self, entry: usize) -> usize {
        let resource = self.entry(entry).resource as usize;
        match self.table.protocol {
            Protocol::Inheritance | Protocol::BandwidthInheritance => resource,
            Protocol::OriginalCeiling => self
                .system_ceiling(self.origin(entry))
                .map_or(resource, |(_, resource)| resource),
        }
    }

    /// The effective priorities: the least that are at least the clients' own, and at least those of
    /// every client that waits for the holder.
    pub(super) fn priorities(&self) -> Priorities {
        let mut priorities = Priorities::default();
        let raise = |priorities: &mut Priorities, resource: usize, priority: u8| {
            let is_raised = priority > priorities[resource];
            if is_raised {
                priorities[resource] = priority;
            }
            is_raised
        };
        // Each round but the last carries a priority on; it goes through a resource once.
        for _ in 0..=self.locks.len() {
            let mut changed = false;
            for (resource, lock) in self.locks.iter().enumerate() {
                let Some(lock) = lock else { continue };
                let priority = self.requester_priority(lock.entry, &priorities);
                changed |= raise(&mut priorities, resource, priority);
            }
            for wait in &self.waiting {
                let blocker = self.blocker(wait.entry);
                if self.locks[blocker].is_some() {
                    let priority = self.requester_priority(wait.entry, &priorities);
                    changed |= raise(&mut priorities, blocker, priority);
                }
            }
            if !changed {
                break;
            }
        }
        priorities
    }

    /// Gives every server that works its priority, if it has another.
    pub(super) fn prioritise(&mut self, actions: &mut Actions) {
        let priorities = self.priorities();
        for (server, lock) in self.locks.iter().enumerate() {
            let priority = priorities[server];
            if lock.is_some() && self.given[server] != Some(priority) {
                self.given[server] = Some(priority);
                actions.push(Action::Prioritise { server, priority });
            }
        }
    }
}
