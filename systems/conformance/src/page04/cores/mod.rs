//! 04, section 15: several cores. With one core that runs, these checks are skipped.

mod affinity;
mod deleting;
mod kit;
mod memory;
#[cfg(target_arch = "x86_64")]
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
    #[cfg(target_arch = "x86_64")]
    moving::CHECKS,
    memory::CHECKS,
    traffic::CHECKS,
];
