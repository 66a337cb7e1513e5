//! The tests in parallel virtual time, one program.

mod properties;
#[cfg(feature = "smp")]
mod study;
mod systems;
#[cfg(feature = "smp")]
mod waiting;
