//! Page 02: capabilities, CSpace, derivation.

mod cnode_operations;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[cnode_operations::CHECKS];
