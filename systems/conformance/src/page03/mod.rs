//! Page 03: object invocations.

mod tcb;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[tcb::CHECKS];
