//! Page 07: architecture context.

#[cfg(target_arch = "x86_64")]
mod contexts;
mod conventions;
#[cfg(target_arch = "x86_64")]
pub mod fpu;
mod identifiers;
mod mappings;
mod own_space;
#[cfg(target_arch = "x86_64")]
mod privileges;
mod scene;
mod translations;
mod visitor;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    #[cfg(target_arch = "x86_64")]
    contexts::CHECKS,
    #[cfg(target_arch = "x86_64")]
    privileges::CHECKS,
    #[cfg(target_arch = "x86_64")]
    fpu::CHECKS,
    mappings::CHECKS,
    identifiers::CHECKS,
    own_space::CHECKS,
    translations::CHECKS,
    conventions::CHECKS,
];
