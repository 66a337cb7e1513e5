//! Page 07: architecture context.

mod contexts;
mod conventions;
pub mod fpu;
mod identifiers;
mod mappings;
mod own_space;
mod privileges;
mod scene;
mod translations;
mod visitor;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    contexts::CHECKS,
    privileges::CHECKS,
    fpu::CHECKS,
    mappings::CHECKS,
    identifiers::CHECKS,
    own_space::CHECKS,
    translations::CHECKS,
    conventions::CHECKS,
];
