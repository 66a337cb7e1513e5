//! Page 01: system calls.

mod buffers;
pub mod cspaces;
mod endpoint_queues;
mod endpoints;
mod extra_calls;
mod info;
mod invocation_phase;
mod notifications;
mod numbers;
mod receive_phase;
mod restart;
mod results;
pub mod roles;
mod transfer;
mod two_phases;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    numbers::CHECKS,
    info::CHECKS,
    buffers::CHECKS,
    roles::CHECKS,
    invocation_phase::CHECKS,
    two_phases::CHECKS,
    receive_phase::CHECKS,
    endpoints::CHECKS,
    endpoint_queues::CHECKS,
    notifications::CHECKS,
    transfer::CHECKS,
    results::CHECKS,
    extra_calls::CHECKS,
    restart::CHECKS,
];
