//! Which reply object stands for which request: the book-keeping of a blocking server, without a system call.

use alloc::vec::Vec;

/// A request that waits for its device: stands for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(usize);

impl Ticket {
    /// The number of its reply object.
    pub(super) const fn number(self) -> usize {
        self.0
    }
}

/// What happens to the answer of a request that is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Completion {
    /// It is sent at once.
    Now,
    /// It is sent when the server waits again, in one system call: the server runs on this client's context, which goes
    /// with the answer.
    WithWait,
    /// There is no such request: nothing is sent.
    Nobody,
}

/// The requests of a blocking server.
///
/// Every ticket is exactly one of: free; the one to receive with; kept.
#[derive(Clone, Debug)]
pub struct Requests {
    free: Vec<Ticket>,
    /// By ticket: the badge of the request that it stands for, if it waits for the device.
    kept: Vec<Option<u64>>,
    /// Requests that each badge may have waiting.
    limits: Vec<(u64, usize)>,
    /// With which the server receives.
    current: Ticket,
    /// The request on whose client's context the server runs, if it waits for the device.
    lender: Option<Ticket>,
    /// The lender, if it is completed: the server loses its context with the answer.
    last: Option<Ticket>,
}

impl Requests {
    /// None yet. There are `tickets` reply objects, at least one: one for each request that may wait, and one to
    /// receive with. `limits` says of each badge how many may.
    pub fn new(tickets: usize, limits: Vec<(u64, usize)>) -> Self {
        Self {
            free: (1..tickets).map(Ticket).collect(),
            kept: alloc::vec![None; tickets],
            limits,
            current: Ticket(0),
            lender: None,
            last: None,
        }
    }

    /// The reply object with which the server receives next; it represents no client until then.
    pub const fn current(&self) -> Ticket {
        self.current
    }

    /// Whether a request with this badge can wait.
    pub fn admits(&self, badge: u64) -> bool {
        let limit = self.limits.iter().find(|(of, _)| *of == badge);
        let waiting = self
            .kept
            .iter()
            .filter(|kept| **kept == Some(badge))
            .count();
        limit.is_some_and(|(_, limit)| waiting < *limit) && !self.free.is_empty()
    }

    /// The request with `badge` that was just received, and admitted, waits for the device.
    pub fn keep(&mut self, badge: u64) {
        self.lender.get_or_insert(self.current);
        if let Some(free) = self.free.pop() {
            self.kept[self.current.0] = Some(badge);
            self.current = free;
        }
    }

    /// A request is completed.
    pub fn complete(&mut self, ticket: Ticket) -> Completion {
        if self.kept[ticket.0].is_none() || self.last == Some(ticket) {
            Completion::Nobody
        } else if self.lender == Some(ticket) {
            self.last = Some(ticket);
            Completion::WithWait
        } else {
            self.release(ticket);
            Completion::Now
        }
    }

    /// The reply object of the answer to be sent when the server waits next, if any; afterwards it represents no client.
    pub fn take_last(&mut self) -> Option<Ticket> {
        let ticket = self.last.take()?;
        self.lender = None;
        self.release(ticket);
        Some(ticket)
    }

    /// Nobody waits with this ticket any more.
    fn release(&mut self, ticket: Ticket) {
        self.kept[ticket.0] = None;
        self.free.push(ticket);
    }
}
