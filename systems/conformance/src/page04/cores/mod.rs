//! 04, section 15: several cores. With one core that runs, these checks are skipped.

mod affinity;
mod deleting;
pub mod kit;
mod memory;
mod moving;
mod remote;
mod traffic;
mod waking;

use crate::harness::Check;

/// The checks of this section, file by file.
pub const CHECKS: &[&[Check]] = &[
    affinity::CHECKS,
    waking::CHECKS,
    remote::CHECKS,
    deleting::CHECKS,
    moving::CHECKS,
    memory::CHECKS,
    traffic::CHECKS,
];
