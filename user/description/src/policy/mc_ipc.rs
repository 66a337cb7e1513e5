//! What a gate is told (library `sandglass-mc-ipc`): a `[[resource]]` whose protocol orders the requests of clients on
//! several cores.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Table;

/// Most clients of one gate: each takes two of the names that its component can have.
pub const MOST_CLIENTS: usize = 96;
/// Shortest operation that a description can name, µs: the kernel's smallest budget.
pub const SHORTEST_US: u64 = 20;
/// Shortest time between two edges of slots, µs: for so long a table thread waits at least.
pub const SHORTEST_GRANULE_US: u64 = 500;
/// Most edges of slots on one core.
pub const MOST_SLOTS: usize = 1024;

/// A gate, its clients, and its tables of slots. Times in µs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Of the resource: the gate's endpoint has this name.
    pub name: String,
    pub protocol: Protocol,
    /// Of the gate's thread.
    pub core: u32,
    /// What the longest operation takes, at the highest level of criticality.
    pub longest_us: u64,
    /// Most cores that requests come from, at the highest level of criticality.
    pub clusters: u32,
    /// How long a waiting client lets the server stand still, unless it is twice that, before it pays.
    pub poll_us: u64,
    /// By number.
    pub clients: Vec<Client>,
    /// One for each core that has table-driven clients.
    pub tables: Vec<Slots>,
}

impl Table for Gate {
    const NAME: &'static str = "gate.table";
}

/// Who is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    McIpc,
    /// In order of arrival.
    Fifo,
    /// By priority.
    Priority,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The component, of which this is the main thread.
    pub name: String,
    /// Where its context is.
    pub core: u32,
    pub priority: u8,
    /// What timeout faults on its time report; the clients of a gate have different ones.
    pub badge: u64,
    /// How many requests it makes in how much time, µs: who makes more pays a toll.
    pub requests: u64,
    pub every_us: u64,
    pub kind: Kind,
}

/// When a client has budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    Sporadic {
        budget_us: u64,
        period_us: u64,
    },
    /// In slots of its core's table; its context never runs out.
    TableDriven,
    /// Never, in the sense of the protocol; its context never runs out.
    BestEffort,
}

/// The slots of a core. They do not overlap, and are in order of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    pub core: u32,
    /// After which they repeat.
    pub cycle_us: u64,
    /// The period of the thread that keeps them: the cycle and the edges of all slots are multiples of it.
    pub granule_us: u64,
    pub slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// By number.
    pub client: u32,
    /// From the beginning of the cycle.
    pub at_us: u64,
    pub length_us: u64,
}

/// A client that asks at a gate for others: threads whose time somebody else schedules, so that no gate can move it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Courier {
    /// The gate's resource, and the name under which the courier finds the gate's endpoint.
    pub gate: String,
    pub endpoint: String,
    /// The components that it asks for. The flag of each, when it has posted a request, is 1 shifted by its number.
    pub threads: Vec<String>,
}

impl Table for Courier {
    const NAME: &'static str = "courier.table";
}

/// Most components that a courier asks for: each signals it with a flag of its own.
pub const MOST_THREADS: usize = 32;

/// The threads of the component that has a gate, beside its main thread, which is the gate's.
pub mod threads {
    use alloc::format;
    use alloc::string::String;

    /// Performs the operation, on the context of a client.
    pub const SERVER: &str = "server";

    /// Waits in the place of a client, on that one's context.
    pub fn spinner(client: usize) -> String {
        format!("spinner-{client}")
    }

    /// Keeps the slots of a core.
    pub fn table(core: u32) -> String {
        format!("table-{core}")
    }
}

/// Under which names the component finds what it works with. The gate's endpoint has the resource's name. A name in the
/// plural stands for the first of several capabilities, one for each client, whose slots follow each other.
pub mod names {
    use alloc::format;
    use alloc::string::String;

    /// Of each client: its thread, and its context.
    pub const CLIENT_TCBS: &str = "clients.tcb";
    pub const CLIENT_CONTEXTS: &str = "clients.context";
    /// Of each client's spinner: its thread; where it calls the gate; and the notification that it waits for before it
    /// spins, which the gate signals.
    pub const SPINNER_TCBS: &str = "spinners.tcb";
    pub const SPINNER_GATES: &str = "spinners.gate";
    pub const SPINNER_STARTS: &str = "spinners.start";
    /// To receive with: as many as [`super::Gate::replies`].
    pub const REPLIES: &str = "replies";
    /// The server's thread, and what wakes it.
    pub const SERVER_TCB: &str = "server.tcb";
    pub const SERVER_WAKE: &str = "server.wake";
    /// The gate's notification, which it binds; and by what the server tells that it is done.
    pub const SIGNALS: &str = "gate.signals";
    pub const DONE: &str = "server.done";
    /// What the launcher signals when clients are gone, before it signals the gate: as many as [`super::Gate::ends`].
    pub const ENDS: &str = "clients.end";
    /// The gate's own thread.
    pub const GATE_TCB: &str = "gate.tcb";

    /// The context of the table thread of a core, and what it signals at each of its periods.
    pub fn table_context(core: u32) -> String {
        format!("table.{core}.context")
    }

    pub fn table_tick(core: u32) -> String {
        format!("table.{core}.tick")
    }

    /// What the gate signals when a slot of a client begins.
    pub fn slot(client: usize) -> String {
        format!("slot.{client}")
    }

    /// What a courier waits for: that somebody has posted a request.
    pub const POSTED: &str = "courier.posted";

    /// Under which a component whose courier asks for it at this gate signals that.
    pub fn post(gate: &str) -> String {
        format!("{gate}.post")
    }

    /// The memory that a component and its courier at this gate share.
    pub fn mail(gate: &str, component: &str) -> String {
        format!("{gate}.mail.{component}")
    }

    /// Under which a component that controls `client` tells the gate that it is gone.
    pub fn supervised(client: &str, gate: &str) -> String {
        format!("{client}.{gate}")
    }

    /// Under which a table-driven client of this gate waits for that.
    pub fn own_slot(gate: &str) -> String {
        format!("{gate}.slot")
    }
}

impl Gate {
    /// Reply objects: for each client, for its request and for another one that is refused, and one to receive with. All others
    /// are answered at once.
    pub fn replies(&self) -> usize {
        2 * self.clients.len() + 1
    }

    /// Clients whose ends one notification tells, each by a bit: as many as its word has.
    pub const ENDS_EACH: usize = 64;

    /// Notifications that tell the ends of clients.
    pub fn ends(&self) -> usize {
        self.clients.len().div_ceil(Self::ENDS_EACH)
    }
}
