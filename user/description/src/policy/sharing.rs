//! What the proxy of shared resources is told (library `sandglass-sharing`): who asks for what, by
//! which protocol.
//!
//! The proxy finds, beside its table, by number: `client.N.tcb` and `client.N.context`, the thread
//! and the scheduling context of a client; `server.N.tcb`; `request.N`, with which it hands requests
//! through entry N on; `reply.N`; where everything arrives, under its own name; `ends`, which is signalled when a server
//! has ended; `self.tcb`; its thread `clock`, which waits for
//! `clock.wake` and sends to `clock.tick` when its next period begins; as parameters, `client.N.budget` and
//! `client.N.period`, µs, and `client.N.threads`; for bandwidth
//! inheritance, its thread `probe`, `probe.tcb` and `probe.never`, for which it waits; and, for the
//! original ceiling, its thread `reminder` (and `reminder.tcb`), which waits for `doorbell` and then sends to `turn`.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Table;

/// Most resources of one proxy.
pub const MOST_RESOURCES: usize = 16;
/// Most clients of one proxy.
pub const MOST_CLIENTS: usize = 64;

/// A server of the protocol `blocking` finds, as the parameter `RESOURCE.requests.BADGE`, how many requests the client
/// with that badge may have waiting: as many as it has threads.
pub const REQUESTS: &str = "requests";

/// What the proxy is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    pub protocol: Protocol,
    /// Priority of each client. They hold no resource but through servers.
    pub clients: Vec<u8>,
    /// Number of resources; each has a server of the same number.
    pub resources: u32,
    /// Every capability through which requests arrive. Entry N has the badge N + 1.
    pub entries: Vec<Entry>,
}

impl Table for Sharing {
    const NAME: &'static str = "sharing";
}

/// By what rule resources are given, and whose priority and budget their servers run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// Priority inheritance (thesis 2.3.2): a free resource is given to whoever asks.
    Inheritance,
    /// The original priority ceiling protocol (thesis 2.3.4): inheritance, and a resource is only
    /// given to clients with a priority above the ceilings of all that others hold.
    OriginalCeiling,
    /// Bandwidth inheritance (thesis 6.4.2): priority inheritance, and a server whose client has no
    /// budget left continues on that of a waiting client.
    BandwidthInheritance,
}

/// Who may ask for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub requester: Requester,
    /// Number of the resource.
    pub resource: u32,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Requester {
    /// A client, by number.
    Client(u32),
    /// The server of a resource, for the client whose request it handles: a nested request.
    Server(u32),
}

/// Badges of what arrives at the proxy beside requests.
pub mod badge {
    /// Of the server of resource N when it has finished a request: this plus N.
    pub const DONE: u64 = 0x1_0000;
    /// Of the timeout faults of the server of resource N: this plus N.
    pub const TIMEOUT: u64 = 0x2_0000;
    /// Of the proxy's own thread that waits for a priority's turn.
    pub const TURN: u64 = 0x3_0000;
    /// Of the proxy's own thread that lets time pass for those who have had their share.
    pub const TICK: u64 = 0x4_0000;
    /// Of the launcher's signals that servers have ended: of which resources, the other bits say, resource N by bit N.
    pub const ENDED: u64 = 1 << 63;
}
