//! Page 03: what only aarch64 has of it.

mod asid;
mod caches;
mod irq_control;
mod labels;
mod no_smc;
mod pages;
mod paging;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[
    asid::CHECKS,
    caches::CHECKS,
    irq_control::CHECKS,
    labels::CHECKS,
    no_smc::CHECKS,
    pages::CHECKS,
    paging::CHECKS,
];
