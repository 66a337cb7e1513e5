//! What the timer service is told: the `[[timer]]` tables of a description.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Table;

/// Name of the service's component, and of the endpoint where it is asked.
pub const SERVICE: &str = "timers";

/// Most `[[timer]]` tables: the service has a name for the notification of each.
pub const MOST_GROUPS: usize = 200;
/// Most timers of all tables together.
pub const MOST_TIMERS: u64 = 1 << 16;
/// Bytes of the service's memory for each timer; its build asserts that they suffice.
pub const TIMER_BYTES: u64 = 32;

/// Pieces that the service's budget may be in, beside two: as many as the kernel keeps. With few, what is used is put off
/// again and again, and comes back all at once, a period after the budget is used up.
pub const EXTRA_REFILLS: u64 = 126;

/// What the service takes at most, kernel included, µs: for an expiry with its interrupt and its signal;
pub const EXPIRY_US: u64 = 10;
/// for a request, on the time of who asks;
pub const REQUEST_US: u64 = 10;
/// to end a request whose caller has no time left: the part of the service, and that of its handler.
pub const FINISH_US: u64 = 10;
pub const HANDLE_US: u64 = 10;

/// The service's table. Times are in µs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timers {
    /// By number: the group's badge says it ([`Sender`]), and the name of its notification ([`names::signal`]).
    pub groups: Vec<Group>,
    /// The threads on whose time the service may work.
    pub payers: Vec<Payer>,
    /// What the service's own context gets, and its core.
    pub budget_us: u64,
    pub period_us: u64,
    pub core: u32,
    /// What timeout faults on that context report.
    pub badge: u64,
}

impl Table for Timers {
    const NAME: &'static str = "timers.table";
}

/// The timers of one `[[timer]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub timers: u32,
    /// In any time t at most `burst + t / every_us` of them expire.
    pub every_us: u64,
    pub burst: u32,
}

/// A thread on whose time the service may work, and whose budget can run out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payer {
    /// Its path: the service has `NAME.context`.
    pub name: String,
    /// What timeout faults on its context report; each different.
    pub badge: u64,
}

/// Under which names the service finds what it works with.
pub mod names {
    use alloc::format;
    use alloc::string::String;

    /// The HPET's registers, and its interrupt.
    pub const REGISTERS: &str = "hpet";
    pub const INTERRUPT: &str = "timer";
    /// Ports of the PIT, which shares the HPET's input of the I/O APIC.
    pub const PIT: &str = "pit";
    /// Memory for the timers.
    pub const STATE: &str = "timers.state";
    /// The thread that lets requests end whose callers have no time left.
    pub const HANDLER: &str = "handler";

    /// What is signalled when a timer of this group expires.
    pub fn signal(group: usize) -> String {
        format!("group.{group}")
    }
}

/// Who sent a message to the service, as its badge says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The device, or the service itself: time to look.
    Clock,
    /// Who has the timers of this group.
    User(usize),
}

impl Sender {
    pub const fn badge(self) -> u64 {
        match self {
            Self::Clock => 1,
            Self::User(group) => group as u64 + 2,
        }
    }

    pub const fn of(badge: u64) -> Self {
        match badge.checked_sub(2) {
            None => Self::Clock,
            Some(group) => Self::User(group as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn badges_name_their_senders() {
        for sender in [Sender::Clock, Sender::User(0), Sender::User(7)] {
            assert_eq!(Sender::of(sender.badge()), sender);
        }
        assert_eq!(Sender::of(0), Sender::Clock);
    }
}
