//! What may be done: capabilities, the slots that hold them, lookup, derivation, transfer,
//! deletion.

#![forbid(unsafe_code)]

mod capability;
pub mod deletion;
pub mod derivation;
pub mod lookup;
mod slot;

pub use capability::{CNodeCap, Capability, EndpointCap, FrameCap, NotificationCap, ReplyCap};
