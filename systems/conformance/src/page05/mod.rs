//! Page 05: faults.

mod cap_faults;
mod delivery;
#[cfg(target_arch = "x86_64")]
mod exceptions;
mod handlers;
mod layouts;
mod replies;
mod timeouts;
#[cfg(target_arch = "x86_64")]
mod unknown_calls;
#[cfg(target_arch = "x86_64")]
mod vm_faults;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    layouts::CHECKS,
    cap_faults::CHECKS,
    #[cfg(target_arch = "x86_64")]
    unknown_calls::CHECKS,
    #[cfg(target_arch = "x86_64")]
    exceptions::CHECKS,
    #[cfg(target_arch = "x86_64")]
    vm_faults::CHECKS,
    delivery::CHECKS,
    timeouts::CHECKS,
    handlers::CHECKS,
    replies::CHECKS,
];
