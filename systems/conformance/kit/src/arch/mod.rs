//! What checks know of an architecture, by the target: registers by their role, and pieces of machine code.
//!
//! The roles have the names of x86_64's registers: RDI is the capability's and the badge's, RSI the message info's, R10, R8, R9
//! and R15 are the message's, R12 is the reply's, R13 the destination's, and RDX that of the system call's number (ABI 01,
//! section 4). The others are registers without a role.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
