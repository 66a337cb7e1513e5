//! The kernel that ships, as a library on the host, in lock step with its executable
//! specification ([`sandglass_model`]).
//!
//! * [`boot`]: a kernel to work with.
//! * [`census`]: what a kernel holds.
//! * [`abstraction`]: the whole state of a kernel as a [`sandglass_model::State`].
//! * [`invariants`]: what holds of every state between two events.

#![forbid(unsafe_code)]

pub mod abstraction;
pub mod boot;
pub mod campaign;
pub mod census;
pub mod coverage;
pub mod difference;
pub mod generator;
pub mod invariants;
pub mod isa;
pub mod operations;
pub mod pair;
pub mod reach;
pub mod script;
pub mod shrink;
pub mod witness;
pub mod world;
