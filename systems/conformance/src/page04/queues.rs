//! Section 8: queues and scheduling decisions.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "04/8.5/the-highest-priority-runs-first",
    highest_priority_first,
)];

fn highest_priority_first(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    for priority in [50, 200, 1, 253, 100] {
        f.helper(priority, move || trace.note(u64::from(priority)))?;
    }
    f.settle()?;
    ensure_eq!(trace.events(), [253, 200, 100, 50, 1]);
    Ok(())
}
