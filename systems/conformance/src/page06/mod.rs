//! Page 06: boot.

mod boot_info;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[boot_info::CHECKS];
