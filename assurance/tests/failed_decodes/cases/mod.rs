//! The cases, by the kind of the invoked object.

pub mod cnodes;
pub mod devices;
pub mod kinds;
pub mod memory;
pub mod spaces;
pub mod threads;
pub mod time;
