//! Page 05: what only x86_64 has of it.

mod exceptions;
mod returns;
mod unknown_calls;
mod vm_faults;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[
    exceptions::CHECKS,
    returns::CHECKS,
    unknown_calls::CHECKS,
    vm_faults::CHECKS,
];
