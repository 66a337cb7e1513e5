//! What is of one architecture: how the kernel's own objects look in the words of the specification, which operations they
//! have, and what of them is in the world of scripts. Chosen here.

#[cfg(feature = "aarch64")]
mod aarch64;
#[cfg(not(feature = "aarch64"))]
mod x86_64;

#[cfg(feature = "aarch64")]
pub use aarch64::*;
#[cfg(not(feature = "aarch64"))]
pub use x86_64::*;

pub use sandglass_testkit::isa::{label, types, SCHED_CONTROL};
