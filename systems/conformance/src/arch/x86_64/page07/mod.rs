//! Page 07: what only x86_64 has of it.

mod contexts;
mod debugging;
pub mod fpu;
mod ports;
mod privileges;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[
    contexts::CHECKS,
    debugging::CHECKS,
    ports::CHECKS,
    privileges::CHECKS,
];
