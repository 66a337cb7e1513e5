//! The time manager: temporal capabilities as a service (FlaRe; paper, section 5.3).
//!
//! It holds the scheduling control of a core and gives out processor time. Two threads do that:
//!
//! - the **scheduler**, above all clients, lets the turn with the earliest deadline run, and no other: constant-bandwidth
//!   servers under earliest deadline first, enforced by scheduling contexts ([`turns`], [`scheduler`]);
//! - the **admission**, below all turns and above best effort, answers requests for time ([`admission`]): what is being
//!   asked for delays nothing that was admitted.
//!
//! A client is a component. It has a capability of the description's, or a supplier; asks for reservations
//! ([`client`]); and is best effort until it attaches itself to one. [`protocol`] is what they say to each other.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod admission;
pub mod client;
pub mod component;
pub mod protocol;
pub mod scheduler;
pub mod turns;

pub use client::{OwnTurn, TimeManager};
pub use protocol::{Denial, Reservation};
