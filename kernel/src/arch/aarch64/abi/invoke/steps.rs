//! The steps of a long operation, where each is so short that a look for interrupts behind each would take
//! longer than the step.

use crate::arch::bounds::{self, kind_of_step};
use crate::time::{account, Preempted};
use crate::Kernel;

/// Counts them: there are at most `INTERVAL` between two looks at whether to stop, so that a pending interrupt
/// waits for a few thousand instructions at most. The ABI's ceiling is 100 (01, section 8).
pub struct Steps<const INTERVAL: u64> {
    taken: u64,
}

impl<const INTERVAL: u64> Steps<INTERVAL> {
    pub const fn new() -> Self {
        const { assert!(INTERVAL <= sandglass_abi::sched::PREEMPTION_INTERVAL as u64) }
        Steps { taken: 0 }
    }

    /// A step was done, and there is more to do.
    ///
    /// # Errors
    /// The operation must stop now.
    pub fn point(&mut self, k: &Kernel) -> Result<(), Preempted> {
        self.taken += 1;
        bounds::step::<{ kind_of_step::PART }, INTERVAL>(self.taken);
        if self.taken < INTERVAL {
            return Ok(());
        }
        self.taken = 0;
        account::preemption_point(k)
    }
}
