//! Page 04: scheduling.

mod accounting;
mod binding;
mod budgets;
mod configuring;
pub mod cores;
mod donation;
mod notifications;
mod priorities;
mod queues;
mod refills;
mod replies;
mod replying;
mod round_robin;
mod threads;
mod yield_results;
mod yielding;

pub use cores::CHECKS as SEVERAL_CORES;

use conformance_kit::timing as kit;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    accounting::CHECKS,
    round_robin::CHECKS,
    refills::CHECKS,
    configuring::CHECKS,
    binding::CHECKS,
    budgets::CHECKS,
    donation::CHECKS,
    replying::CHECKS,
    replies::CHECKS,
    notifications::CHECKS,
    queues::CHECKS,
    yielding::CHECKS,
    yield_results::CHECKS,
    priorities::CHECKS,
    threads::CHECKS,
];
