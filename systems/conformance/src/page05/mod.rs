//! Page 05: faults.

mod layouts;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[layouts::CHECKS];
