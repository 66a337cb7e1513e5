//! Page 04: scheduling.

mod kit;
mod queues;
mod refills;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[refills::CHECKS, queues::CHECKS];
