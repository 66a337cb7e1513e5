//! Page 01: what only aarch64 has of it.

mod ipis;
mod registers;
mod tls;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[ipis::CHECKS, registers::CHECKS, tls::CHECKS];
