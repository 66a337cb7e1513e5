//! What a time manager is told: `[time-manager]` of a description.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Table;

/// Points of allowance functions.
pub const POINTS: usize = 16;
/// Most clients: the admission is signalled about each by a flag of its own.
pub const MOST_CLIENTS: usize = 56;

/// Most allocations and reservations, and most capabilities, of all clients together: the manager's heap has room for
/// these.
pub const MOST_RECORDS: u32 = 1_000;
pub const MOST_CAPABILITIES: u32 = 700;

/// A time manager and its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocations {
    pub core: u32,
    /// Of clients while they have a turn.
    pub turn_priority: u8,
    /// The shortest period of a reservation, µs.
    pub shortest_us: u64,
    /// Who is above turns on the core, with reservations that somebody else keeps: the core is theirs first. If there are any,
    /// no deadline is shorter than `shortest_us`, either.
    pub ahead: Vec<Ahead>,
    pub clients: Vec<Client>,
}

/// So much in every window of so long, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    pub budget_us: u64,
    pub period_us: u64,
}

impl Table for Allocations {
    const NAME: &'static str = "allocations.table";
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The component; its thread is `NAME.tcb`, its scheduling context `NAME.context`.
    pub name: String,
    /// While it has no turn.
    pub best_effort_priority: u8,
    /// What timeout faults on its time report.
    pub timeout_badge: u64,
    /// Of the core, in parts of `sandglass_allocations::Rate::WHOLE`.
    pub share: Option<u64>,
    /// Or what these tasks need.
    pub tasks: Vec<Task>,
    /// Who supplies it with a capability, by number.
    pub supplier: Option<u32>,
    /// Its quota of allocations and reservations, and of capabilities.
    pub records: u32,
    pub capabilities: u32,
    /// It lends its scheduling context to others in its turns.
    pub lends: bool,
}

impl Client {
    /// Whether it has an allocation of its own.
    pub fn is_given(&self) -> bool {
        self.share.is_some() || !self.tasks.is_empty()
    }
}

/// What a task needs, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub budget_us: u64,
    pub period_us: u64,
    pub deadline_us: u64,
}

/// Under which names a manager and its clients find what they work with. The endpoint of turns has the manager's own
/// name there.
pub mod names {
    use alloc::format;
    use alloc::string::String;

    /// The thread below all turns.
    pub const ADMISSION: &str = "admission";
    /// What it waits for, and what signals that no turn may be running.
    pub const WAKE: &str = "admission.wake";
    pub const WAKES: &str = "admission.wakes";
    /// Where it says that none is, and where it tells the scheduler what to do.
    pub const IDLE: &str = "admission.idle";
    pub const COMMANDS: &str = "admission.commands";
    /// The scheduler's timer.
    pub const TIMER: &str = "timer";

    /// Where clients ask for time. They find it under the manager's name.
    pub fn requests(manager: &str) -> String {
        format!("{manager}.requests")
    }

    /// Where clients wait for their turns.
    pub fn turns(manager: &str) -> String {
        format!("{manager}.turn")
    }

    /// What tells a client that lends its context that nobody runs on it.
    pub fn hint(client: usize) -> String {
        format!("client.{client}.hint")
    }

    /// One for each client, and one more.
    pub fn reply(index: usize) -> String {
        format!("turn.{index}.reply")
    }
}

/// Who sent a message to the admission, as its badge says; or what it was signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A client, by its number.
    Client(usize),
    /// Flags: [`Asker::NO_TURN`], and those of clients that have ended ([`Asker::ended`]).
    Signal(u64),
}

impl Asker {
    /// The flag for: perhaps no turn is running.
    pub const NO_TURN: u64 = 2;

    /// The flag for the end of a client.
    pub const fn ended(client: usize) -> u64 {
        4 << client
    }

    /// The badge of a client.
    pub const fn badge(client: usize) -> u64 {
        2 * client as u64 + 1
    }

    pub const fn of(badge: u64) -> Self {
        if badge % 2 == 1 {
            Self::Client((badge / 2) as usize)
        } else {
            Self::Signal(badge)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn badges_name_their_senders() {
        for client in [0, 1, MOST_CLIENTS - 1] {
            assert_eq!(Asker::of(Asker::badge(client)), Asker::Client(client));
            let signal = Asker::NO_TURN | Asker::ended(client);
            assert_eq!(Asker::of(signal), Asker::Signal(signal));
        }
        assert!(i64::try_from(Asker::ended(MOST_CLIENTS - 1)).is_ok());
    }
}
