//! Samples and their report.

use sandglass::println;

use crate::script::{RUNS, WARM_UP};

/// Prints the row `name` for the costs of the runs `first..RUNS`, of which those of the warm-up
/// are left out.
///
/// # Panics
/// If a cost is negative: then the readings do not belong together.
pub fn report(name: &str, overhead: u64, mut readings: impl FnMut(usize) -> (u64, u64)) {
    let costs = (WARM_UP..RUNS).map(|run| {
        let (before, after) = readings(run);
        after
            .checked_sub(before + overhead)
            .unwrap_or_else(|| panic!("{name}: run {run} from {before} to {after}"))
    });
    let (mut min, mut max, mut sum, mut count) = (u64::MAX, 0, 0, 0);
    for cost in costs {
        min = min.min(cost);
        max = max.max(cost);
        sum += cost;
        count += 1;
    }
    let tenths = (10 * sum + count / 2) / count;
    println!("bench {name} {min} {}.{} {max}", tenths / 10, tenths % 10);
}
