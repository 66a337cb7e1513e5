//! Time: refills, accounting, scheduling contexts, who runs next, and where (page 04).

pub mod account;
pub mod context;
pub mod cores;
pub mod readings;
pub mod refills;
pub mod schedule;

use sandglass_abi::sched::MIN_BUDGET_US;

use crate::isa::{PRECISION_US, UNIT_US};
use crate::state::{Clock, Ticks};

/// The constants of 04, section 1.
impl Clock {
    /// Microseconds in whole ticks. Precondition: at most [`Self::max_period_us`].
    pub fn ticks(self, us: u64) -> Ticks {
        us * self.ticks_per_unit / UNIT_US
    }

    /// Whole microseconds in a length of time.
    pub fn us(self, ticks: Ticks) -> u64 {
        (u128::from(ticks) * u128::from(UNIT_US) / u128::from(self.ticks_per_unit)) as u64
    }

    /// The least budget, and what must be left of a refill that somebody runs on.
    pub fn min_budget(self) -> Ticks {
        self.ticks(MIN_BUDGET_US)
    }

    /// The longest period, in microseconds.
    pub fn max_period_us(self) -> u64 {
        u64::MAX / self.ticks_per_unit / 8
    }

    /// Refills from here on are not charged any more, so that no time overflows.
    pub fn max_release(self) -> Ticks {
        u64::MAX - 5 * self.ticks(self.max_period_us())
    }

    /// How much before the end of a budget the timer fires.
    pub fn precision(self) -> Ticks {
        self.ticks(PRECISION_US)
    }
}
