//! Page 05: faults.

mod cap_faults;
mod delivery;
mod exceptions;
mod handlers;
mod layouts;
mod replies;
mod timeouts;
mod unknown_calls;
mod vm_faults;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    layouts::CHECKS,
    cap_faults::CHECKS,
    unknown_calls::CHECKS,
    exceptions::CHECKS,
    vm_faults::CHECKS,
    delivery::CHECKS,
    timeouts::CHECKS,
    handlers::CHECKS,
    replies::CHECKS,
];
