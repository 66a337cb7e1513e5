//! The machine as a value, and what it is made of. The pure parts (what the device tree tells) are compiled
//! everywhere, for their tests.

pub mod board;
pub mod tree;
