//! Page 07: architecture context.

pub mod contexts;
mod conventions;
mod fpu;
mod identifiers;
mod mappings;
mod own_space;
pub mod scene;
mod translations;
pub mod visitor;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    contexts::CHECKS,
    fpu::CHECKS,
    mappings::CHECKS,
    identifiers::CHECKS,
    own_space::CHECKS,
    translations::CHECKS,
    conventions::CHECKS,
];
