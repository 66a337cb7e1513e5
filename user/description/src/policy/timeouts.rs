//! Timeout policies of a shared passive server (thesis 6.4.2, 8.3.3).

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Table;

/// What the timeout handler of one server is told. Times are in µs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// The endpoint whose requests the server serves.
    pub endpoint: String,
    /// What the server restarts on: round robin, so that it always has budget.
    pub restart_us: u64,
    /// The server's core.
    pub core: u32,
    /// What a timeout in an emergency reports; no other context has this badge.
    pub emergency_badge: u64,
    /// The server calls others, who may answer when the time it works on has run out.
    pub calls_servers: bool,
    /// For contexts that are not of a listed client.
    pub default: Last,
    /// By badge, each different.
    pub clients: Vec<Client>,
}

/// A thread on whose time the server works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its path: the handler has `NAME.context`, and `NAME.tcb` if it may kill it.
    pub name: String,
    /// Of its scheduling context.
    pub badge: u64,
    /// Under which the server knows its calls: the badge of its capability for the endpoint.
    /// `None` if it calls through another server, or has several capabilities.
    pub caller: Option<u64>,
    pub core: u32,
    pub budget_us: u64,
    pub period_us: u64,
    pub extra_refills: u64,
    pub sporadic: bool,
    pub policy: Policy,
}

/// What happens when a client's budget runs out in the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    Last(Last),
    /// Its budget grows by `by_us`, at most `limit` times.
    Extend {
        by_us: u64,
        limit: u32,
        then: Last,
    },
    /// The server finishes on a budget of its own, at most `limit` times; `then` is also what
    /// happens when that runs out as well.
    Emergency {
        budget_us: u64,
        limit: u32,
        then: Last,
    },
}

/// What can always be done, and ends the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Last {
    /// The client is answered from the last clean state.
    Rollback,
    /// The client is answered with an error, and the server's data are reset.
    Reset,
    /// The client is suspended.
    Kill,
}

impl Policy {
    /// What ends a request when nothing else is left.
    pub const fn last(self) -> Last {
        match self {
            Self::Last(last)
            | Self::Extend { then: last, .. }
            | Self::Emergency { then: last, .. } => last,
        }
    }
}

impl Table for Timeouts {
    /// With the server's path in front: `SERVER.timeouts`.
    const NAME: &'static str = "timeouts";
}
