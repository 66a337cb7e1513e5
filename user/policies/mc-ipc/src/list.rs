//! First in, first out: lists of clients that share one set of links, since a client is in at most one of them. All
//! operations are O(1), and memory is allocated when the links are made.

use alloc::vec;
use alloc::vec::Vec;

use crate::protocol::ClientId;

/// The neighbours of a client that is in a list.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    before: Option<ClientId>,
    behind: Option<ClientId>,
}

/// Of all clients.
#[derive(Clone, Debug)]
pub struct Links(Vec<Link>);

/// A list, whose members are in [`Links`].
#[derive(Clone, Copy, Debug, Default)]
pub struct List {
    head: Option<ClientId>,
    tail: Option<ClientId>,
    len: usize,
}

impl Links {
    pub fn new(clients: usize) -> Self {
        Self(vec![Link::default(); clients])
    }
}

impl List {
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Adds a client, which is in no list, behind the others.
    pub fn push(&mut self, links: &mut Links, client: ClientId) {
        links.0[client.0] = Link {
            before: self.tail,
            behind: None,
        };
        match self.tail {
            Some(tail) => links.0[tail.0].behind = Some(client),
            None => self.head = Some(client),
        }
        self.tail = Some(client);
        self.len += 1;
    }

    /// Takes out the first client.
    pub fn pop(&mut self, links: &mut Links) -> Option<ClientId> {
        let first = self.head?;
        self.remove(links, first);
        Some(first)
    }

    /// Takes out a client, which is in this list.
    pub fn remove(&mut self, links: &mut Links, client: ClientId) {
        let Link { before, behind } = core::mem::take(&mut links.0[client.0]);
        match before {
            Some(before) => links.0[before.0].behind = behind,
            None => self.head = behind,
        }
        match behind {
            Some(behind) => links.0[behind.0].before = before,
            None => self.tail = before,
        }
        self.len -= 1;
    }

    /// From the first to the last.
    pub fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = ClientId> + 'a {
        core::iter::successors(self.head, |client| links.0[client.0].behind)
    }
}
