//! Temporal capabilities: the right to allocate processor time as something that is derived, granted, shared and
//! revoked (M. Vanga et al., *FlaRe: Efficient Capability Semantics for Timely Processor Access*; sections, equations
//! and figures below are that paper's).
//!
//! A capability is a set of *CPU allocations*. An allocation is a part of one processor's capacity: its *allowance
//! function* bounds the processor demand of what is in it in every interval, and the function's last slope is its
//! allowed utilisation. It holds reservations, and allocations again; what is in it never demands more than it may
//! ([`demand`], invariants 1 and 2). So the set of all reservations of a processor, taken flat, is schedulable by
//! earliest deadline first, whoever made them (theorem 1), and no holder of an allocation can tell what others do.
//!
//! - [`rate`]: utilisations, which are exact for fractions that people write, and amounts of demand;
//! - [`task`]: the parameters of a reservation and its demand bound function;
//! - [`allowance`]: piecewise linear functions of at most `K` points;
//! - [`demand`]: the admission test;
//! - [`records`]: the tree of allocations and reservations, in storage of the caller's;
//! - [`capability`]: capabilities and their derivation;
//! - [`manager`]: the operations, for clients that are not trusted: they check, then commit;
//! - [`server`]: the constant-bandwidth server that each reservation is at run time;
//! - [`refusal`]: why an operation was refused, and what would be right.
//!
//! Times are in ticks of whatever clock the caller has, below [`LONGEST`]. Arithmetic is by integers only, and exact:
//! what a reservation asks for is rounded up where it becomes a function, and nothing is rounded after that. Nothing
//! is allocated, and nothing is recursive.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod allowance;
pub mod capability;
pub mod demand;
pub mod manager;
pub mod rate;
pub mod records;
pub mod refusal;
pub mod server;
pub mod task;

pub use allowance::{Allowance, AllowanceError, Point};
pub use capability::{Capability, CapabilityId, MEMBERS};
pub use manager::{Client, ClientId, Manager, Quota, Storage, StorageError};
pub use rate::{Amount, Rate};
pub use records::{AllocationId, Record, ReservationId};
pub use refusal::Refusal;
pub use server::{Kind, Server, Turn};
pub use task::{Task, TaskError};

/// The longest interval that is spoken of, in ticks: two years of nanoseconds. Products of it and a [`Rate`] leave
/// room for sums in 128 bits.
pub const LONGEST: u64 = 1 << 56;
