//! The HPET, set by the time-stamp counter.

use sandglass::time::{self, Tsc};
use sandglass::timer::{Timer, TimerError};

/// Ticks of the HPET that it is set ahead at most: hours, at any frequency that it may have. It then rings early.
const FAR: u64 = 1 << 42;

/// The HPET's timer as an alarm at a time of the time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    timer: Timer,
    /// Ticks of the HPET in 2^32 ticks of the time-stamp counter, rounded up.
    ratio: u64,
}

impl Alarm {
    pub fn new(timer: Timer, tsc: Tsc) -> Self {
        const SECOND_US: u64 = 1_000_000;
        let timer_ticks = u128::from(timer.clock().us_to_ticks(SECOND_US));
        let ticks = u128::from(tsc.us_to_ticks(SECOND_US));
        Self {
            timer,
            ratio: (timer_ticks << 32).div_ceil(ticks) as u64,
        }
    }

    /// Lets it ring at the time `at`, or somewhat earlier if the clocks' frequencies are not as told. True if that has
    /// passed: then it may not ring.
    pub fn set(&self, at: u64) -> bool {
        let Some(ahead) = at.checked_sub(time::ticks()) else {
            return true;
        };
        let ahead = (u128::from(ahead) * u128::from(self.ratio)) >> 32;
        let ahead = ahead.min(u128::from(FAR)) as u64 + 1;
        self.timer
            .arm(self.timer.clock().now().saturating_add(ahead))
    }

    /// Lets it not ring any more, unless it has already.
    pub fn clear(&self) {
        let now = self.timer.clock().now();
        // It would ring in hours.
        let _ = self.timer.arm(now.saturating_add(FAR));
    }

    /// Lets it ring again after it has.
    ///
    /// # Errors
    /// The kernel refuses to acknowledge the interrupt.
    pub fn acknowledge(&self) -> Result<(), TimerError> {
        self.timer.expired(0).map(|_| ())
    }

    /// The timer.
    pub const fn timer(&self) -> Timer {
        self.timer
    }
}
