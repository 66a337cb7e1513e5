//! What all gates have in common.

use core::fmt;

/// The number of a client, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub usize);

/// How a client stands among the others of its cluster when it makes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It has budget, and this is its reservation's priority: the less, the more urgent, such as a deadline. It keeps it
    /// until its budget is exhausted or replenished (paper, A1).
    RealTime(u64),
    /// It has no reservation.
    BestEffort,
}

/// The client has a request in the gate already. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present;

impl fmt::Display for Present {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client has a request in the gate: must be at most one at a time")
    }
}

impl core::error::Error for Present {}

/// What becomes of the request of a client that has no budget any more.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// It waits, and is served when nobody with budget waits.
    Demoted,
    /// It waits where it did.
    Kept,
    /// It is being served, and will be to its end, on the budgets of those who wait.
    InService,
    /// There is none.
    Absent,
}

/// Who is served next. A server calls [`Self::next`] whenever it is free, and [`Self::finish`] when it has answered.
///
/// # Panics
/// All of these panic if there is no such client.
pub trait Protocol {
    /// A client makes a request.
    ///
    /// # Errors
    /// It has one in the gate.
    fn invoke(&mut self, client: ClientId, standing: Standing) -> Result<(), Present>;

    /// The server begins with the next request. `None`: nobody waits, or it has not finished the last one.
    fn next(&mut self) -> Option<ClientId>;

    /// The server has finished its request: whose it was. `None`: it had none.
    fn finish(&mut self) -> Option<ClientId>;

    /// A client's budget is exhausted, or taken away by a change of mode.
    fn exhaust(&mut self, client: ClientId) -> Exhausted;

    /// A client has budget again, with this priority. True if its request takes the place now that it would have if it
    /// were new.
    fn replenish(&mut self, client: ClientId, priority: u64) -> bool;

    /// A client is gone, or gives its request up. True if the request is in service: then it is finished, and nobody waits
    /// for the answer.
    fn withdraw(&mut self, client: ClientId) -> bool;

    /// A client is in another cluster from now on; a request that waits is there as if it were new, with this priority. One
    /// that is in service stays its old cluster's turn. Nothing happens if there is no such cluster, or clusters do not
    /// matter.
    fn relocate(&mut self, _client: ClientId, _cluster: usize, _priority: u64) {}

    /// Whose request is in service.
    fn served(&self) -> Option<ClientId>;
}
