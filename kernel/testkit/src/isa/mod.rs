//! What tests say of the architecture whose ABI the kernel speaks, in words that do not name it: registers by their roles,
//! kinds of objects, labels. The one place where tests are told apart.

#[cfg(feature = "aarch64")]
mod aarch64;
#[cfg(not(feature = "aarch64"))]
mod x86_64;

#[cfg(feature = "aarch64")]
pub use aarch64::*;
#[cfg(not(feature = "aarch64"))]
pub use x86_64::*;

use sandglass_kernel::arch::abi::clock::{PRECISION_US, UNIT_US};

use crate::boot::US;

/// Ticks in the unit in which the architecture counts time, on a machine of 1 GHz.
pub const TICKS_PER_UNIT: u64 = US * UNIT_US;

/// How many ticks before the end of a budget the timer fires on it.
pub const PRECISION: u64 = US * PRECISION_US;
