//! Page 01: what only x86_64 has of it.

mod ports;
mod registers;
mod tls;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[ports::CHECKS, registers::CHECKS, tls::CHECKS];
