//! Who holds what and who waits for what: questions about chains of requests.

use sandglass_description::policy::sharing::{Entry, Requester, MOST_RESOURCES};

use super::payer::ClientSet;
use super::{Arbiter, Refusal, Then};

/// A request that is served: its resource is held.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    pub entry: usize,
    /// The client on whose context the server was last put.
    pub payer: Option<usize>,
    /// Clients whose budget was asked for since the server last needed one.
    pub tried: ClientSet,
    /// What happens to the server when it gets budget.
    pub then: Then,
    /// The server was given a context although no client has budget: it waits for a replenishment.
    pub is_stalled: bool,
}

impl Lock {
    pub fn new(entry: usize) -> Self {
        Self {
            entry,
            payer: None,
            tried: ClientSet::default(),
            then: Then::Nothing,
            is_stalled: false,
        }
    }
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub entry: usize,
}

/// A list of different resources.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceList {
    items: [usize; MOST_RESOURCES],
    len: usize,
}

impl ResourceList {
    /// Adds a resource; there is room for all of them.
    pub fn push(&mut self, resource: usize) {
        self.items[self.len] = resource;
        self.len += 1;
    }

    pub fn as_slice(&self) -> &[usize] {
        &self.items[..self.len]
    }
}

impl Arbiter {
    pub(super) fn entry(&self, entry: usize) -> Entry {
        self.table.entries[entry]
    }

    /// Whether this requester can ask for anything now.
    pub(super) fn may_ask(&self, requester: Requester) -> Result<(), Refusal> {
        if let Requester::Server(server) = requester {
            if self.locks[server as usize].is_none() {
                return Err(Refusal::NoClient);
            }
        }
        if self.in_progress(requester).is_some() {
            return Err(Refusal::Busy);
        }
        Ok(())
    }

    /// The entry through which this requester asked, waiting or served.
    pub(super) fn in_progress(&self, requester: Requester) -> Option<usize> {
        let held = self.locks.iter().flatten().map(|lock| lock.entry);
        let waiting = self.waiting.iter().map(|wait| wait.entry);
        held.chain(waiting)
            .find(|&entry| self.entry(entry).requester == requester)
    }

    /// Whether a client has a request that waits or is served.
    pub fn has_request(&self, client: usize) -> bool {
        self.in_progress(Requester::Client(client as u32)).is_some()
    }

    /// The client for which the server of a resource works.
    pub fn client_of(&self, resource: usize) -> Option<usize> {
        let lock = self.locks.get(resource)?.as_ref()?;
        Some(self.origin(lock.entry))
    }

    /// The client for which this request was made in the end.
    pub(super) fn origin(&self, entry: usize) -> usize {
        let mut requester = self.entry(entry).requester;
        // A chain is no longer than there are resources.
        for _ in 0..=self.locks.len() {
            match requester {
                Requester::Client(client) => return client as usize,
                Requester::Server(server) => match &self.locks[server as usize] {
                    Some(lock) => requester = self.entry(lock.entry).requester,
                    None => break,
                },
            }
        }
        unreachable!("a server asks only while it works for somebody, and not for what it holds")
    }

    /// The resource that the holder of `resource` asked for next, waiting or served.
    pub(super) fn beyond(&self, resource: usize) -> Option<usize> {
        self.locks.get(resource)?.as_ref()?;
        let entry = self.in_progress(Requester::Server(resource as u32))?;
        Some(self.entry(entry).resource as usize)
    }

    /// Whether a waiter for `resource` also waits, through everything that its holder asked for, for `wanted`.
    pub(super) fn leads_to(&self, resource: usize, wanted: usize) -> bool {
        let mut current = Some(resource);
        for _ in 0..=self.locks.len() {
            match current {
                Some(resource) if resource == wanted => return true,
                Some(resource) => current = self.beyond(resource),
                None => return false,
            }
        }
        false
    }

    /// The resource at whose server everything that waits for `resource` ends: the one that runs.
    pub(super) fn last_of(&self, resource: usize) -> usize {
        let mut last = resource;
        for _ in 0..self.locks.len() {
            match self.beyond(last) {
                Some(resource) => last = resource,
                None => break,
            }
        }
        last
    }
}
