//! Page 06: boot.

mod address_space;
mod boot_info;
pub mod extra;
pub mod image;
pub mod untypeds;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    boot_info::CHECKS,
    address_space::CHECKS,
    extra::CHECKS,
    untypeds::CHECKS,
];
