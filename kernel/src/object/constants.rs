//! The constants of time that follow from the clock's frequency (04, section 1).

use crate::arch::abi::clock::{PRECISION_US, UNIT_US};

/// A clock's frequency: so many ticks in `US` microseconds, one a microsecond at least. A clock of
/// 62.5 MHz has 62,500 in 1,000.
#[derive(Clone, Copy, Debug)]
struct Frequency<const US: u64> {
    ticks: u64,
    /// ⌊(2^64 − 1) / ticks⌋: multiplying by it replaces dividing by `ticks`.
    reciprocal: u64,
}

impl<const US: u64> Frequency<US> {
    /// 0 is taken as 1.
    const fn new(ticks: u64) -> Self {
        let ticks = if ticks == 0 { 1 } else { ticks };
        Frequency {
            ticks,
            reciprocal: u64::MAX / ticks,
        }
    }

    /// The longest time of which eight can be counted, in microseconds.
    const fn max_us(self) -> u64 {
        self.reciprocal / 8
    }

    /// `us` microseconds, at most [`Self::max_us`], in whole ticks.
    const fn ticks(self, us: u64) -> u64 {
        us * self.ticks / US
    }

    /// `ticks` in whole microseconds.
    #[inline(always)]
    const fn us(self, ticks: u64) -> u64 {
        let (units, rest) = self.divide(ticks);
        if US == 1 {
            return units;
        }
        // The rest is less than a unit, of which no clock has 2^64 / US ticks.
        let (us, _) = self.divide(rest * US);
        units * US + us
    }

    /// `value` divided by the ticks of a unit, without a division, and the rest. The reciprocal is too
    /// small by less than 1, so its product with `value`, over 2^64, by less than 1; and rounded down
    /// it is at most one too small, which is mended by comparing.
    #[inline(always)]
    const fn divide(self, value: u64) -> (u64, u64) {
        let quotient = ((value as u128 * self.reciprocal as u128) >> 64) as u64;
        let rest = value - quotient * self.ticks;
        if rest >= self.ticks {
            (quotient + 1, rest - self.ticks)
        } else {
            (quotient, rest)
        }
    }
}

/// Set once at boot.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    frequency: Frequency<UNIT_US>,
    /// Least budget and period, in microseconds: the ABI's, or those of the kernel's platform.
    pub min_budget_us: u64,
    min_budget: u64,
    timer_precision: u64,
    max_release: u64,
}

impl Constants {
    /// Before boot: nothing is configured and nothing runs.
    pub const fn new() -> Self {
        Constants {
            frequency: Frequency {
                ticks: 1,
                reciprocal: 0,
            },
            min_budget_us: 0,
            min_budget: 0,
            timer_precision: 0,
            max_release: 0,
        }
    }

    /// The constants for a clock of so many ticks in the unit of the architecture
    /// ([`UNIT_US`]); 0 is taken as 1. With a least budget of `min_budget_us` microseconds.
    pub const fn for_clock(ticks_per_unit: u64, min_budget_us: u64) -> Self {
        let frequency = Frequency::new(ticks_per_unit);
        let max_period = frequency.ticks(frequency.max_us());
        Constants {
            frequency,
            min_budget_us,
            min_budget: frequency.ticks(min_budget_us),
            timer_precision: frequency.ticks(PRECISION_US),
            // max_period is at most an eighth of the range.
            max_release: u64::MAX - max_period * 5,
        }
    }

    /// Longest period, in microseconds.
    pub const fn max_period_us(&self) -> u64 {
        self.frequency.max_us()
    }

    /// Least budget and period, in ticks: twice the kernel's worst case.
    pub const fn min_budget(&self) -> u64 {
        self.min_budget
    }

    /// How many ticks before the end of a budget the timer fires, lest its event overruns the refill
    /// and starts on the next (04, section 1).
    pub const fn timer_precision(&self) -> u64 {
        self.timer_precision
    }

    /// No refill is pushed beyond this time.
    pub const fn max_release(&self) -> u64 {
        self.max_release
    }

    /// `us` microseconds, at most the longest period, in ticks.
    pub const fn ticks(&self, us: u64) -> u64 {
        self.frequency.ticks(us)
    }

    /// `ticks` in whole microseconds.
    pub const fn us(&self, ticks: u64) -> u64 {
        self.frequency.us(ticks)
    }
}

#[cfg(not(target_os = "none"))]
mod hosted {
    use super::Constants;

    impl Constants {
        /// These constants with a least budget of `ticks`: with one of a few ticks, whatever can become of a
        /// budget is few enough states to look at all of them.
        pub const fn with_min_budget(self, ticks: u64) -> Self {
            Constants {
                min_budget: ticks,
                ..self
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Constants, Frequency, PRECISION_US, UNIT_US};
    use proptest::prelude::*;

    /// What `Frequency::us` is to say, by a division.
    fn divided<const US: u64>(per_unit: u64, ticks: u64) -> u64 {
        (u128::from(ticks) * u128::from(US) / u128::from(per_unit)) as u64
    }

    proptest! {
        #[test]
        fn microseconds_are_exact(per_us in 1u64..20_000, ticks: u64) {
            prop_assert_eq!(Frequency::<1>::new(per_us).us(ticks), divided::<1>(per_us, ticks));
        }

        #[test]
        fn microseconds_of_fractional_frequencies_are_exact(
            per_ms in 1_000u64..20_000_000,
            ticks: u64,
        ) {
            let frequency = Frequency::<1000>::new(per_ms);
            prop_assert_eq!(frequency.us(ticks), divided::<1000>(per_ms, ticks));
        }

        #[test]
        fn ticks_are_rounded_down(per_ms in 1_000u64..20_000_000, part in 0u64..1 << 20) {
            let frequency = Frequency::<1000>::new(per_ms);
            let us = frequency.max_us() >> 20 << 20 | part;
            prop_assume!(us <= frequency.max_us());
            let exact = u128::from(us) * u128::from(per_ms) / 1000;
            prop_assert_eq!(u128::from(frequency.ticks(us)), exact);
            // And back: at most a microsecond less.
            prop_assert!(us - frequency.us(frequency.ticks(us)) <= 1);
        }
    }

    #[test]
    fn microseconds_are_exact_at_the_edges() {
        for per_us in [1, 2, 3, 999, 1000, 2400, 4999] {
            let frequency = Frequency::<1>::new(per_us);
            for ticks in [0, per_us - 1, per_us, per_us + 1, u64::MAX - 1, u64::MAX] {
                assert_eq!(frequency.us(ticks), ticks / per_us, "{ticks} at {per_us}");
            }
        }
    }

    #[test]
    fn the_constants_are_those_of_the_abi() {
        // A clock of 1 GHz.
        let unit = 1000 * UNIT_US;
        let constants = Constants::for_clock(unit, 20);
        assert_eq!(constants.min_budget(), 20_000);
        assert_eq!(constants.timer_precision(), 1000 * PRECISION_US);
        assert_eq!(constants.max_period_us(), (u64::MAX / unit) / 8);
        let max = constants.ticks(constants.max_period_us());
        assert_eq!(constants.max_release(), u64::MAX - 5 * max);
    }

    #[test]
    fn a_clock_of_62_5_mhz_is_that_of_the_abi() {
        let frequency = Frequency::<1000>::new(62_500);
        assert_eq!(frequency.ticks(20), 1250);
        assert_eq!(frequency.ticks(1), 62, "truncated");
        assert_eq!(frequency.us(125), 2);
        assert_eq!(frequency.max_us(), 36_893_488_147_419);
    }
}
