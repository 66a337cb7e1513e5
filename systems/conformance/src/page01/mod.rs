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
#[cfg(target_arch = "x86_64")]
mod registers;
mod restart;
mod results;
#[cfg(target_arch = "x86_64")]
mod tls;
mod transfer;
mod two_phases;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    numbers::CHECKS,
    info::CHECKS,
    buffers::CHECKS,
    #[cfg(target_arch = "x86_64")]
    registers::CHECKS,
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
    #[cfg(target_arch = "x86_64")]
    tls::CHECKS,
];
