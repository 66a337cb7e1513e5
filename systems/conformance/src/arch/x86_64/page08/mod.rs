//! Page 08: what only x86_64 has of it.

mod headers;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[headers::CHECKS];
