//! What is of one architecture: registers and their order, flags, tables and frames, interrupts, what an exception is. The
//! rest of the specification names what is here without saying of which. The kernel for which this is, is chosen here.

#[cfg(feature = "aarch64")]
mod aarch64;
#[cfg(not(feature = "aarch64"))]
mod x86_64;

#[cfg(feature = "aarch64")]
pub use aarch64::*;
#[cfg(not(feature = "aarch64"))]
pub use x86_64::*;
