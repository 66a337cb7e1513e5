//! What the kernel tells of its time (docs/src/reference/abi.md, deliberate differences): no other kernel does.

use sandglass::abi::sched::{KERNEL_WCET_US, MIN_BUDGET_US};
use sandglass::cap::SchedParams;
use sandglass::testing::{Suite, TestResult};
use sandglass::{ensure, ensure_eq};

use crate::fixture::Fixture;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "timing",
        &[
            ("is_told_in_the_clock's_ticks", told),
            ("of_the_longest_period_is_what_is_accepted", longest_period),
        ],
    );
}

fn told(f: &mut Fixture) -> TestResult {
    let timing = f.boot.timing().ok_or("no chunk about time")?;
    ensure_eq!(timing.frequency, u64::from(f.tsc.mhz()) * 1_000_000);
    ensure_eq!(timing.kernel_wcet, f.ticks(KERNEL_WCET_US));
    ensure_eq!(timing.min_budget, f.ticks(MIN_BUDGET_US));
    // Nothing is known of a kernel that was not analysed; of another one, everything.
    let computed = [
        timing.path,
        timing.latency,
        timing.path_ns,
        timing.latency_ns,
    ];
    ensure!(computed == [0; 4] || (computed[0] < computed[1] && computed[2] < computed[3]));
    Ok(())
}

/// A context can have that period, and none that is longer by a microsecond.
fn longest_period(f: &mut Fixture) -> TestResult {
    let timing = f.boot.timing().ok_or("no chunk about time")?;
    let longest = timing.max_period / u64::from(f.tsc.mhz());
    f.context(SchedParams::new(MIN_BUDGET_US, longest))?;
    ensure!(f
        .context(SchedParams::new(MIN_BUDGET_US, longest + 1))
        .is_err());
    Ok(())
}
