//! What the storm knows of an architecture, each thing under one name, by the target: registers around system calls,
//! invocations and how they are composed, machine code.
//!
//! | module | what |
//! | --- | --- |
//! | `gate` | the system call with every register under control, and the ways into random code |
//! | `deeds` | instructions among system calls |
//! | `operations`, `compose` | the invocations that only it has, and their arguments |
//! | `canary`, `witness` | registers that must not change |
//! | `code` | machine code in the making |
//! | `instructions` | the storm of instructions |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
