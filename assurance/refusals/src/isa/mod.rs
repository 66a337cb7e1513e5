//! What is of one architecture: objects, labels, checks of its invocations and cases for them. Chosen here: by the target
//! of programs, and on hosts by a feature.

#[cfg(any(feature = "aarch64", all(target_os = "none", target_arch = "aarch64")))]
mod aarch64;
#[cfg(not(any(feature = "aarch64", all(target_os = "none", target_arch = "aarch64"))))]
mod x86_64;

#[cfg(any(feature = "aarch64", all(target_os = "none", target_arch = "aarch64")))]
pub use aarch64::*;
#[cfg(not(any(feature = "aarch64", all(target_os = "none", target_arch = "aarch64"))))]
pub use x86_64::*;
