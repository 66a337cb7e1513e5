//! Times of the clock that a thread waits for, with no timer but its own scheduling context.
//!
//! A thread that yields goes on at its next replenishment, which is no clock. What preempts it cuts its budget into pieces,
//! and these come back one after the other: it goes on more often than once in a period then, or later (ABI 04, sections 6
//! and 9.1). An [`Alarm`] gives the context a budget of one piece each time, whose period ends when the thread is to go on,
//! and looks at the clock. The context is sporadic meanwhile: another gets its budget later by as much as it is preempted, or
//! waits for another core to leave the kernel.

use crate::cap::{SchedContext, SchedControl, SchedParams};
use crate::error::Result;
use crate::sys;
use crate::time::{self, Tsc};

/// A shorter wait is spent in a loop, µs.
const SHORTEST_US: u64 = 100;
/// A longer wait is one of several periods, µs: less than the longest that the kernel allows.
const LONGEST_US: u64 = 10_000_000;

/// How a thread waits whose own context this has.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    context: SchedContext,
    control: SchedControl,
    tsc: Tsc,
    budget_us: u64,
}

impl Alarm {
    /// For the thread whose context this is, on the core of `control`. It has up to `budget_us` from when it goes on to when
    /// it waits again, and half of the last wait at most.
    pub const fn new(
        context: SchedContext,
        control: SchedControl,
        tsc: Tsc,
        budget_us: u64,
    ) -> Self {
        Self {
            context,
            control,
            tsc,
            budget_us,
        }
    }

    /// Waits until the clock says `at`, in ticks: never less, and longer only by what keeps the thread from running then. The
    /// context is sporadic afterwards.
    ///
    /// # Errors
    /// The kernel does not let it configure the context; or the budget is below the kernel's smallest.
    pub fn wait_until(&self, at: u64) -> Result<()> {
        loop {
            let now = time::ticks();
            if now >= at {
                return Ok(());
            }
            let left_us = self.tsc.ticks_to_us(at - now).min(LONGEST_US);
            if left_us < SHORTEST_US {
                time::nop();
                continue;
            }
            let budget_us = (left_us / 2).min(self.budget_us);
            let params = SchedParams::new(budget_us, left_us).sporadic();
            self.control.configure(self.context, params)?;
            // The period began when it was configured. If that was late, it ends too late.
            if time::ticks() - now < self.tsc.us_to_ticks(SHORTEST_US) {
                sys::yield_now();
            }
        }
    }
}
