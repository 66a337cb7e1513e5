//! The checks that only one architecture has, by the target: a folder for each, with a folder for each page. Facts that checks
//! of all architectures use are in the kit, `kit/src/arch/`; those about kinds of capabilities and about boot are here.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
