//! Why an operation was refused, and what would be right.

use core::fmt;

use crate::capability::MEMBERS;
use crate::demand::Excess;
use crate::manager::ClientId;

/// Why an operation changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The manager has no client of that number.
    NoSuchClient(ClientId),
    /// The client does not hold the capability: it was never granted, or has been revoked.
    NotHeld,
    /// The client holds no capability, and has no supplier that does (paper, section 4.3).
    NoSupplier,
    /// The allocation is not one of the capability's: it belongs to another, or has been removed.
    NotInCapability,
    /// The allocation to derive is not in one of the capability's, at any depth (equation 3.1).
    NotBelow,
    /// No reservation of that name is directly in one of the capability's allocations.
    NoSuchReservation,
    /// No sub-allocation of that name is directly in one of the capability's allocations.
    NoSuchAllocation,
    /// Operation A4 asks for an allocation in which nothing is left.
    NotEmpty,
    /// Root allocations, and the capability of all of them, stay.
    Root,
    /// A capability is of 1 to [`MEMBERS`] allocations.
    Members { count: usize },
    /// Invariant 1 or 2 would not hold.
    TooMuch(Excess),
    /// The client has as many allocations and reservations as it may; those that are leaving count.
    RecordQuota { most: u32 },
    /// The client has asked for as many capabilities as it may.
    CapabilityQuota { most: u32 },
}

impl From<Excess> for Refusal {
    fn from(excess: Excess) -> Self {
        Self::TooMuch(excess)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoSuchClient(client) => write!(f, "there is no client {}", client.0),
            Self::NotHeld => {
                f.write_str("the capability is not the client's: it must have been granted, and not revoked since")
            }
            Self::NoSupplier => f.write_str(
                "the client holds no capability, and nobody supplies one: it must be granted one, or have a supplier that holds one",
            ),
            Self::NotInCapability => {
                f.write_str("the allocation is not in the capability: must be one of its allocations")
            }
            Self::NotBelow => f.write_str(
                "the allocation does not stem from the capability: must be a sub-allocation of one of its allocations, at any depth",
            ),
            Self::NoSuchReservation => f.write_str(
                "no such reservation is directly in the capability's allocations",
            ),
            Self::NoSuchAllocation => f.write_str(
                "no such sub-allocation is directly in the capability's allocations",
            ),
            Self::NotEmpty => f.write_str(
                "the allocation has reservations or sub-allocations: they must be removed first",
            ),
            Self::Root => f.write_str("what stands for all of a processor cannot be removed"),
            Self::Members { count } => write!(
                f,
                "a capability of {count} allocations: must be 1 to {MEMBERS}"
            ),
            Self::TooMuch(Excess::Utilisation { by }) => write!(
                f,
                "the allowed utilisation would be exceeded: must be less by {by}"
            ),
            Self::TooMuch(Excess::Demand { interval, by }) => write!(
                f,
                "the allowance would be exceeded in intervals of {interval} ticks: the demand in them must be less by {by} ticks"
            ),
            Self::RecordQuota { most } => write!(
                f,
                "the client has its {most} allocations and reservations: one must be removed first"
            ),
            Self::CapabilityQuota { most } => write!(
                f,
                "the client has asked for its {most} capabilities: one must be revoked first"
            ),
        }
    }
}

impl core::error::Error for Refusal {}
