//! The paper's admission test in its plainest form (paper, section 3.2, appendix A.2): the functions of an allocation
//! are summed anew for every decision, at every interval at which one of them changes.

use sandglass_allocations::{Allowance, Rate};

/// What the test says, and what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub is_admitted: bool,
    /// Points of functions that were looked at.
    pub steps: u64,
}

/// Whether a function may be added to those that are held within an allowance.
pub fn admits<const K: usize>(
    allowance: &Allowance<K>,
    held: &[&Allowance<K>],
    new: &Allowance<K>,
) -> Outcome {
    let mut steps = 0;
    let mut all = held.to_vec();
    all.push(new);
    let rates: u128 = all
        .iter()
        .map(|function| u128::from(function.rate().parts()))
        .sum();
    let is_within_rate = rates <= u128::from(allowance.rate().parts());
    let mut is_admitted = is_within_rate;
    for interval in intervals(allowance, &all) {
        let demand: i128 = all
            .iter()
            .map(|function| at(function, interval, &mut steps))
            .sum();
        is_admitted &= demand <= at(allowance, interval, &mut steps);
    }
    Outcome { is_admitted, steps }
}

/// Every interval at which a function has a point, and the one before it.
fn intervals<const K: usize>(allowance: &Allowance<K>, all: &[&Allowance<K>]) -> Vec<u64> {
    let functions = all.iter().copied().chain([allowance]);
    let points = functions.flat_map(|function| function.points());
    let mut intervals: Vec<_> = points
        .flat_map(|point| [point.at.saturating_sub(1), point.at])
        .collect();
    intervals.sort_unstable();
    intervals.dedup();
    intervals
}

/// The value of a function, in parts of a tick, by a binary search among its points.
fn at<const K: usize>(function: &Allowance<K>, interval: u64, steps: &mut u64) -> i128 {
    let points = function.points();
    let (mut low, mut high) = (0, points.len());
    while low < high {
        let middle = (low + high) / 2;
        *steps += 1;
        if points[middle].at <= interval {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let Some(point) = low.checked_sub(1).map(|index| points[index]) else {
        return 0;
    };
    let parts = i128::from(Rate::WHOLE.parts());
    let value = i128::from(point.value.ticks()) * parts + i128::from(point.value.parts());
    value + i128::from(point.rate.parts()) * i128::from(interval - point.at)
}
