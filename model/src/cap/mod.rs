//! Capabilities: what they are, how they derive, how they go (page 02).

pub mod deletion;
pub mod derivation;
pub mod lookup;
pub mod region;
pub mod rights;
