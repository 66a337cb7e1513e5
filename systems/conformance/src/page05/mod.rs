//! Page 05: faults.

mod cap_faults;
mod delivery;
mod handlers;
mod layouts;
mod replies;
mod timeouts;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    layouts::CHECKS,
    cap_faults::CHECKS,
    delivery::CHECKS,
    timeouts::CHECKS,
    handlers::CHECKS,
    replies::CHECKS,
];
