//! Random tasks.

use fastrand::Rng;
use sandglass_allocations::Task;

/// A multiple of all periods of [`small`].
pub const HYPERPERIOD: u64 = 240;

/// The divisors of [`HYPERPERIOD`] from 4 on.
const PERIODS: [u64; 14] = [4, 5, 6, 8, 10, 12, 15, 16, 20, 24, 30, 40, 48, 60];

/// A task with small parameters, so that exact tests are quick and sums are often exactly 1: implicit deadlines and
/// constrained ones, small budgets more often than large ones.
pub fn small(rng: &mut Rng) -> Task {
    let period = PERIODS[rng.usize(..PERIODS.len())];
    let most = period / [1, 2, 4, 4][rng.usize(..4)];
    let budget = rng.u64(1..=most.max(1));
    let deadline = if rng.bool() {
        period
    } else {
        rng.u64(budget..=period)
    };
    Task::new(budget, period, deadline).expect("the parameters are in order")
}
