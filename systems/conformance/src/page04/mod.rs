//! Page 04: scheduling.

mod queues;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[queues::CHECKS];
