//! Page 06: boot.

mod address_space;
mod boot_info;
mod console;
mod extra;
mod image;
mod untypeds;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    boot_info::CHECKS,
    console::CHECKS,
    address_space::CHECKS,
    extra::CHECKS,
    untypeds::CHECKS,
];
