//! What clients and the time manager say to each other. A request of any other form is refused, and changes nothing.
//!
//! Times are µs; names of capabilities, allocations and reservations are one word each, and mean something with the
//! client's own capability only.

use core::fmt;

use sandglass::Message;
use sandglass_allocations::demand::Excess;
use sandglass_allocations::{ClientId, Kind, Rate, Refusal};

/// Labels of requests.
pub mod ask {
    /// The capability that the client has, or its supplier has: `[]`, answered `[capability]`.
    pub const CAPABILITY: u64 = 1;
    /// One of a capability's allocations: `[capability, index]`, answered `[allocation]`.
    pub const ALLOCATION: u64 = 2;
    /// The number of a client: the bytes of its name, eight in a word; answered `[number]`.
    pub const CLIENT: u64 = 3;
    /// A1: `[capability, allocation, budget, period, deadline, is_hard]`, answered `[reservation]`.
    pub const RESERVE: u64 = 4;
    /// A2: `[capability, allocation]` and for each point of the allowance `[at, ticks, parts, rate]`; answered
    /// `[allocation]`.
    pub const ALLOCATE: u64 = 5;
    /// A3: `[capability, reservation]`.
    pub const REMOVE: u64 = 6;
    /// A4: `[capability, allocation]`.
    pub const CLOSE: u64 = 7;
    /// A4 with everything in it: `[capability, allocation]`.
    pub const RECLAIM: u64 = 8;
    /// `[capability, client, allocation, ...]`, answered `[capability]`.
    pub const DERIVE: u64 = 9;
    /// `[capability, client]`, answered `[capability]`.
    pub const GRANT: u64 = 10;
    /// `[capability]`.
    pub const REVOKE: u64 = 11;
    /// `[capability]`.
    pub const DELETE: u64 = 12;
    /// The client's thread runs by this reservation: `[capability, reservation]`.
    pub const ATTACH: u64 = 13;
}

/// Label of an answer that is none of a [`Denial`].
pub const DONE: u64 = 1;

/// What a reservation is asked for with, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// In each period; at least the kernel's minimum, and below the period.
    pub budget_us: u64,
    pub period_us: u64,
    /// After a release; at most the period.
    pub deadline_us: u64,
    pub kind: Kind,
}

/// Why a request was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// By the library, with what would be right.
    Refused(Refusal),
    /// The parameters are none of a task: see [`sandglass_allocations::TaskError`].
    WrongTask,
    /// The budget is below the kernel's minimum of 20 µs, or not below the period; or the period is shorter than the
    /// description's `shortest-period`; or the deadline is, and somebody is above turns whose time counts.
    WrongBudget,
    /// The points are none of an allowance: see [`sandglass_allocations::AllowanceError`].
    WrongAllowance,
    /// No client has that name.
    NoSuchName,
    /// The reservation is attached to, or the client is attached already.
    Attached,
    /// It is no request.
    WrongRequest,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::WrongTask => f.write_str(
                "the parameters are not in order: must be 0 < budget <= deadline <= period",
            ),
            Self::WrongBudget => {
                f.write_str("the budget cannot be enforced: must be at least 20 µs, and below the period, which is at least `shortest-period`, as is the deadline if reservations are kept above turns")
            }
            Self::WrongAllowance => f.write_str(
                "the points are no allowance: must be in order, few enough, and never fall",
            ),
            Self::NoSuchName => f.write_str("no client has that name"),
            Self::Attached => {
                f.write_str("a client has one reservation at a time, and a reservation one client")
            }
            Self::WrongRequest => f.write_str("it is no request of the time manager"),
        }
    }
}

impl core::error::Error for Denial {}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Labels of denials, after [`DONE`].
const FIRST: u64 = 16;

/// An answer: one word, or a denial.
pub fn answer(outcome: Result<u64, Denial>) -> Message {
    let (kind, first, second) = match outcome {
        Ok(word) => return Message::new(DONE, [word]),
        Err(Denial::WrongTask) => (0, 0, 0),
        Err(Denial::WrongBudget) => (1, 0, 0),
        Err(Denial::WrongAllowance) => (2, 0, 0),
        Err(Denial::NoSuchName) => (3, 0, 0),
        Err(Denial::Attached) => (4, 0, 0),
        Err(Denial::WrongRequest) => (5, 0, 0),
        Err(Denial::Refused(refusal)) => refused(refusal),
    };
    Message::new(FIRST + kind, [first, second])
}

fn refused(refusal: Refusal) -> (u64, u64, u64) {
    match refusal {
        Refusal::NoSuchClient(client) => (6, u64::from(client.0), 0),
        Refusal::NotHeld => (7, 0, 0),
        Refusal::NoSupplier => (8, 0, 0),
        Refusal::NotInCapability => (9, 0, 0),
        Refusal::NotBelow => (10, 0, 0),
        Refusal::NoSuchReservation => (11, 0, 0),
        Refusal::NoSuchAllocation => (12, 0, 0),
        Refusal::NotEmpty => (13, 0, 0),
        Refusal::Root => (14, 0, 0),
        Refusal::Members { count } => (15, count as u64, 0),
        Refusal::TooMuch(Excess::Utilisation { by }) => (16, by.parts(), 0),
        Refusal::TooMuch(Excess::Demand { interval, by }) => (17, interval, by),
        Refusal::RecordQuota { most } => (18, u64::from(most), 0),
        Refusal::CapabilityQuota { most } => (19, u64::from(most), 0),
    }
}

/// What an answer says.
///
/// # Errors
/// The denial. An answer of any other form counts as [`Denial::WrongRequest`].
pub fn outcome(answer: Message) -> Result<u64, Denial> {
    let (first, second) = (answer.word(0), answer.word(1));
    if answer.label() == DONE {
        return Ok(first);
    }
    let denial = match answer.label().wrapping_sub(FIRST) {
        0 => Denial::WrongTask,
        1 => Denial::WrongBudget,
        2 => Denial::WrongAllowance,
        3 => Denial::NoSuchName,
        4 => Denial::Attached,
        kind => refusal(kind, first, second).map_or(Denial::WrongRequest, Denial::Refused),
    };
    Err(denial)
}

fn refusal(kind: u64, first: u64, second: u64) -> Option<Refusal> {
    Some(match kind {
        6 => Refusal::NoSuchClient(ClientId(first as u16)),
        7 => Refusal::NotHeld,
        8 => Refusal::NoSupplier,
        9 => Refusal::NotInCapability,
        10 => Refusal::NotBelow,
        11 => Refusal::NoSuchReservation,
        12 => Refusal::NoSuchAllocation,
        13 => Refusal::NotEmpty,
        14 => Refusal::Root,
        15 => Refusal::Members {
            count: first as usize,
        },
        16 => Refusal::TooMuch(Excess::Utilisation {
            by: Rate::of_parts(first)?,
        }),
        17 => Refusal::TooMuch(Excess::Demand {
            interval: first,
            by: second,
        }),
        18 => Refusal::RecordQuota { most: first as u32 },
        19 => Refusal::CapabilityQuota { most: first as u32 },
        _ => return None,
    })
}

/// Longest name of a client, bytes: 31 words.
pub const LONGEST_NAME: usize = 248;

/// A name, eight bytes in a word, with zeros at its end. Returns how many words.
pub fn pack(name: &str, words: &mut [u64; LONGEST_NAME / 8]) -> usize {
    let mut count = 0;
    for (word, bytes) in words.iter_mut().zip(name.as_bytes().chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_is_understood() {
        let refusals = [
            Refusal::NoSuchClient(ClientId(7)),
            Refusal::NotHeld,
            Refusal::NoSupplier,
            Refusal::NotInCapability,
            Refusal::NotBelow,
            Refusal::NoSuchReservation,
            Refusal::NoSuchAllocation,
            Refusal::NotEmpty,
            Refusal::Root,
            Refusal::Members { count: 17 },
            Refusal::TooMuch(Excess::Utilisation { by: Rate::WHOLE }),
            Refusal::TooMuch(Excess::Demand { interval: 5, by: 6 }),
            Refusal::RecordQuota { most: 3 },
            Refusal::CapabilityQuota { most: 4 },
        ];
        let others = [
            Denial::WrongTask,
            Denial::WrongBudget,
            Denial::WrongAllowance,
            Denial::NoSuchName,
            Denial::Attached,
            Denial::WrongRequest,
        ];
        for denial in refusals.map(Denial::Refused).into_iter().chain(others) {
            assert_eq!(outcome(answer(Err(denial))), Err(denial));
        }
        assert_eq!(outcome(answer(Ok(u64::MAX))), Ok(u64::MAX));
        assert_eq!(outcome(Message::EMPTY), Err(Denial::WrongRequest));
    }
}
