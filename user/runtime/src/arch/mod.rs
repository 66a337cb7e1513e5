//! What the runtime knows of an architecture, each thing under one name: system calls, the start of programs, thread
//! pointers, numbers of the ABI. The choice is here, by the target; a file for each.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
