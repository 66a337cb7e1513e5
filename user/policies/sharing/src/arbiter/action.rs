//! What is to be done about an event.

use alloc::vec::{self, Vec};
use core::slice;

/// What is to be done, in this order.
#[must_use = "the servers wait for it"]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions(Vec<Action>);

impl Actions {
    pub(super) fn push(&mut self, action: Action) {
        self.0.push(action);
    }

    pub fn iter(&self) -> slice::Iter<'_, Action> {
        self.0.iter()
    }
}

impl IntoIterator for Actions {
    type Item = Action;
    type IntoIter = vec::IntoIter<Action>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// One thing to do. Servers, clients and entries are by number, as in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The server's priority changes.
    Prioritise { server: usize, priority: u8 },
    /// The server gets the scheduling context of `client`, wherever that is, instead of any other,
    /// and something happens to it.
    ///
    /// A context without budget cannot be bound to a thread that waits. So unless `even_if_empty`,
    /// the context is bound before what comes `then`; if that fails, nothing else of this action
    /// is done, and [`refused`](super::Arbiter::refused) says who is next. Otherwise it is bound
    /// after it, and the server runs when it has budget again.
    Lend {
        client: usize,
        server: usize,
        then: Then,
        even_if_empty: bool,
    },
    /// The server, which waits for budget, gets the context of `client` instead of what it has, if there is budget in
    /// it; [`helped`](super::Arbiter::helped) is to be told then. Else nothing happens to the server.
    Help { client: usize, server: usize },
    /// The client that made this request gets the answer, and its context back.
    Answer { entry: usize },
    /// As [`Action::Answer`], with the answer that the server of the resource has ended.
    Gone { entry: usize },
    /// Somebody below a client that was just answered could be granted what he waits for, but only
    /// when he would run: [`reminded`](super::Arbiter::reminded) is to be told when a thread of
    /// this priority would.
    Remind { priority: u8 },
}

/// What happens to a server that gets a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It waits for a request: it gets that of this entry.
    Forward { entry: usize },
    /// It made a nested request: it gets the answer.
    Answer { entry: usize },
    /// It made a nested request to a server that has ended: it is told so.
    Gone { entry: usize },
    /// Its budget was exhausted: its fault is answered.
    Continue,
    /// It already runs, or waits for budget.
    Nothing,
}

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Whoever holds the resource waits, at last, for the requester: both would wait for ever.
    /// Only [inheritance](sandglass_description::policy::sharing::Protocol::Inheritance) lets it
    /// come to that, and any protocol if a server asks for what it holds.
    Deadlock,
    /// The requester is served already: two threads used one client's capability.
    Busy,
    /// The resource's server has ended.
    Gone,
    /// A server asked that works for no client: there is no time to lend, and no priority.
    NoClient,
}
