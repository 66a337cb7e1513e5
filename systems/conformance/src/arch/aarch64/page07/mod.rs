//! Page 07: what only aarch64 has of it.

mod contexts;
pub mod fpu;
mod mappings;
mod privileges;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[contexts::CHECKS, mappings::CHECKS, privileges::CHECKS];
