//! Page 05: what only aarch64 has of it.

pub mod exceptions;
mod unknown_calls;
mod vm_faults;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[exceptions::CHECKS, unknown_calls::CHECKS, vm_faults::CHECKS];
