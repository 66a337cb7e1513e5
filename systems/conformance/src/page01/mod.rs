//! Page 01: system calls.

mod numbers;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[numbers::CHECKS];
