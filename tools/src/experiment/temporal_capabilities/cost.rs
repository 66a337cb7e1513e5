//! What an admission costs (appendix A.2, Figure 3), and what an allocation takes (appendix A.3, Figure 4).

use allocation_reference::cost::{measure, Cost, POINTS};

use super::Size;

/// Sub-allocations that are there before: the paper's, and fewer; then more.
pub const HELD: [u64; 4] = [10, 50, 100, 150];
const MORE: [u64; 2] = [500, 1000];

/// One more allocation beside each number, with functions of each number of points.
pub fn run(size: Size) -> Vec<Cost> {
    let more: &[u64] = if size == Size::Full { &MORE } else { &[] };
    let held = || HELD.iter().chain(more);
    let all = POINTS
        .iter()
        .flat_map(|&points| held().map(move |&held| (points, held)));
    all.map(|(points, held)| measure(points, held)).collect()
}

/// How many times as much the straightforward test takes.
pub fn ratio(cost: &Cost) -> u64 {
    cost.straightforward / cost.steps
}
