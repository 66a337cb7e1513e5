//! The machine as a value: interrupt controllers, clock, address spaces, serial line. The pure parts are compiled
//! everywhere, the rest only on the bare target.

#[cfg(target_os = "none")]
pub mod words;
