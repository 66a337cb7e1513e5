//! Page 07: architecture context.

mod contexts;
mod fpu;
mod privileges;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[contexts::CHECKS, privileges::CHECKS, fpu::CHECKS];
