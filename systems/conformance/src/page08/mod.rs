//! Page 08: differences from the thesis design, and other pitfalls.

mod headers;
mod traps;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[headers::CHECKS, traps::CHECKS];
