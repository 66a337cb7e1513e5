//! Page 01: system calls.

mod buffers;
mod cspaces;
mod info;
mod invocation_phase;
mod numbers;
mod registers;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    numbers::CHECKS,
    info::CHECKS,
    buffers::CHECKS,
    registers::CHECKS,
    invocation_phase::CHECKS,
];
