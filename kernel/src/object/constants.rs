//! The constants of time that follow from the clock's frequency (04, section 1).

use sandglass_abi::sched::MIN_BUDGET_US;

/// Set once at boot.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    /// Ticks in a microsecond.
    per_us: u64,
    /// ⌊(2^64 − 1) / per_us⌋: multiplying by it replaces dividing by `per_us`.
    reciprocal: u64,
    max_period_us: u64,
    min_budget: u64,
    max_release: u64,
}

impl Constants {
    /// Before boot: nothing is configured and nothing runs.
    pub const fn new() -> Self {
        Constants {
            per_us: 1,
            reciprocal: 0,
            max_period_us: 0,
            min_budget: 0,
            max_release: 0,
        }
    }

    /// The constants for a clock of `per_us` ticks a microsecond; 0 is taken as 1.
    pub const fn for_clock(per_us: u64) -> Self {
        let per_us = if per_us == 0 { 1 } else { per_us };
        let reciprocal = u64::MAX / per_us;
        let max_period_us = reciprocal / 8;
        let max_period = max_period_us.wrapping_mul(per_us);
        Constants {
            per_us,
            reciprocal,
            max_period_us,
            min_budget: MIN_BUDGET_US.wrapping_mul(per_us),
            // max_period is at most an eighth of the range.
            max_release: u64::MAX - max_period.wrapping_mul(5),
        }
    }

    /// These constants with a least budget of `ticks`, for the hosted kernel: with one of a few
    /// ticks, whatever can become of a budget is few enough states to look at all of them.
    #[cfg(not(target_os = "none"))]
    pub const fn with_min_budget(self, ticks: u64) -> Self {
        Constants {
            min_budget: ticks,
            ..self
        }
    }

    /// Longest period, in microseconds.
    pub const fn max_period_us(&self) -> u64 {
        self.max_period_us
    }

    /// Least budget and period, in ticks: twice the kernel's worst case.
    #[inline(always)]
    pub const fn min_budget(&self) -> u64 {
        self.min_budget
    }

    /// How many ticks before the end of a budget the timer fires: the microsecond that its event
    /// may take to arrive, lest it overruns the refill and starts on the next (04, section 1).
    #[inline(always)]
    pub const fn timer_precision(&self) -> u64 {
        self.per_us
    }

    /// No refill is pushed beyond this time.
    #[inline(always)]
    pub const fn max_release(&self) -> u64 {
        self.max_release
    }

    /// `us` microseconds, at most the longest period, in ticks.
    #[inline(always)]
    pub const fn ticks(&self, us: u64) -> u64 {
        us.wrapping_mul(self.per_us)
    }

    /// `ticks` in whole microseconds, without a division. The reciprocal is too small by less than
    /// 1, so its product with `ticks`, over 2^64, by less than 1; and rounded down it is at most
    /// one too small, which is mended by comparing.
    #[inline(always)]
    pub const fn us(&self, ticks: u64) -> u64 {
        let us = ((ticks as u128 * self.reciprocal as u128) >> 64) as u64;
        let rest = ticks.wrapping_sub(us.wrapping_mul(self.per_us));
        if rest >= self.per_us {
            us + 1
        } else {
            us
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Constants;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn microseconds_are_exact(per_us in 1u64..20_000, ticks: u64) {
            let constants = Constants::for_clock(per_us);
            prop_assert_eq!(constants.us(ticks), ticks / per_us);
        }
    }

    #[test]
    fn microseconds_are_exact_at_the_edges() {
        for per_us in [1, 2, 3, 999, 1000, 2400, 4999] {
            let constants = Constants::for_clock(per_us);
            for ticks in [0, per_us - 1, per_us, per_us + 1, u64::MAX - 1, u64::MAX] {
                assert_eq!(constants.us(ticks), ticks / per_us, "{ticks} at {per_us}");
            }
        }
    }

    #[test]
    fn the_constants_are_those_of_the_abi() {
        let constants = Constants::for_clock(1000);
        assert_eq!(constants.min_budget(), 20_000);
        assert_eq!(constants.max_period_us(), (u64::MAX / 1000) / 8);
        let max = constants.ticks(constants.max_period_us());
        assert_eq!(constants.max_release(), u64::MAX - 5 * max);
    }
}
