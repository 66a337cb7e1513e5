//! Arithmetic of clocks: frequencies from measurements, and the local APIC timer's count for a
//! span of the time-stamp counter. Pure numbers.

/// Fraction bits of a [`Rate`].
const FRACTION: u32 = 32;

/// Timer counts in a tick of the time-stamp counter, as a fixed-point number with 32 fraction
/// bits, rounded up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    scaled: u64,
    /// The most ticks whose count the timer holds.
    longest: u64,
}

/// The longest count, scaled like a rate: rounding up does not overflow.
const LONGEST: u64 = (u32::MAX as u64) << FRACTION;

impl Rate {
    /// The rate at which the timer counted `counts` while the time-stamp counter went on by
    /// `ticks`. `None` if either stood still.
    pub fn measured(counts: u32, ticks: u64) -> Option<Rate> {
        if counts == 0 || ticks == 0 {
            return None;
        }
        let scaled = (u64::from(counts) << FRACTION).div_ceil(ticks);
        Some(Rate {
            scaled,
            longest: LONGEST.checked_div(scaled)?,
        })
    }

    /// A rate at which every span takes one count: the timer's before it was measured.
    pub const UNKNOWN: Rate = Rate {
        scaled: 1,
        longest: 1,
    };

    /// The initial count with which the timer, started now, fires when `ticks` have passed or
    /// soon after, not before; clipped to what the timer holds, and at least 1, for 0 stops it.
    #[inline(always)]
    pub fn counts(self, ticks: u64) -> u32 {
        let scaled = ticks.min(self.longest).max(1).wrapping_mul(self.scaled);
        (scaled.wrapping_add((1 << FRACTION) - 1) >> FRACTION) as u32
    }
}

/// The frequency in MHz, rounded to the nearest, of a counter that advanced by `ticks` in
/// `periods` of a clock of `hz`; at least 1. `None` if `periods` is 0.
pub fn megahertz(ticks: u64, periods: u64, hz: u64) -> Option<u64> {
    let divisor = periods.checked_mul(1_000_000)?;
    let rounded = ticks
        .checked_mul(hz)?
        .checked_add(divisor / 2)?
        .checked_div(divisor)?;
    Some(rounded.max(1))
}

/// Frequencies of crystals that processors have, in Hz.
const CRYSTALS: [u64; 4] = [19_200_000, 24_000_000, 25_000_000, 38_400_000];
/// A processor's base frequency is rounded, by less than one part in so many.
const BASE_IS_ROUNDED: u64 = 64;

/// The frequency of the time-stamp counter in Hz by what CPUID says: `numerator` ticks are `denominator`
/// periods of a crystal of `crystal` Hz. Where that is 0, the base frequency, in MHz, of which the
/// counter's is near, tells which crystal it is. `None` where that says nothing.
pub fn stated_hz(denominator: u32, numerator: u32, crystal: u32, base_mhz: u32) -> Option<u64> {
    let (numerator, denominator) = (u64::from(numerator), u64::from(denominator));
    if numerator == 0 {
        return None;
    }
    let crystal = match crystal {
        0 => {
            let base = u64::from(base_mhz).wrapping_mul(1_000_000);
            let near = base.wrapping_mul(denominator).checked_div(numerator)?;
            *CRYSTALS
                .iter()
                .find(|&&crystal| near.abs_diff(crystal) <= crystal / BASE_IS_ROUNDED)?
        }
        crystal => crystal.into(),
    };
    crystal.checked_mul(numerator)?.checked_div(denominator)
}

/// Whether a counter that read `answered` between two readings of another, `asked` and `heard`, can
/// have shown the same time as that, but for `error` ticks.
pub fn agree(asked: u64, answered: u64, heard: u64, error: u64) -> bool {
    (asked.saturating_sub(error)..=heard.saturating_add(error)).contains(&answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_disagree_when_an_answer_comes_before_its_question_or_after_it_was_heard() {
        assert!(agree(1_000, 1_000, 1_000, 0));
        assert!(agree(1_000, 990, 1_200, 10) && agree(1_000, 1_210, 1_200, 10));
        assert!(!agree(1_000, 989, 1_200, 10));
        assert!(!agree(1_000, 1_211, 1_200, 10));
        assert!(!agree(5, u64::MAX, 20, 10));
        assert!(!agree(u64::MAX - 9, 0, u64::MAX, 10));
    }
    use proptest::prelude::*;

    #[test]
    fn processors_say_their_frequency_with_or_without_their_crystal() {
        // A crystal that is told; one that only the base frequency tells; a base that fits no crystal, or is not told.
        assert_eq!(stated_hz(2, 208, 24_000_000, 0), Some(2_496_000_000));
        assert_eq!(stated_hz(2, 284, 0, 3_400), Some(3_408_000_000));
        assert_eq!(stated_hz(2, 240, 0, 3_000), Some(3_000_000_000));
        assert_eq!(stated_hz(2, 284, 0, 2_900), None);
        assert_eq!(stated_hz(2, 208, 0, 0), None);
        assert_eq!(stated_hz(0, 208, 24_000_000, 2_500), None);
        assert_eq!(stated_hz(2, 0, 24_000_000, 2_500), None);
    }

    #[test]
    fn equal_clocks_have_rate_one() {
        let rate = Rate::measured(10_000_150, 10_000_150).unwrap();
        for ticks in [1, 2, 999, 10_000_000, u64::from(u32::MAX)] {
            assert_eq!(u64::from(rate.counts(ticks)), ticks);
        }
    }

    #[test]
    fn a_passed_deadline_fires_at_once_and_a_far_one_is_clipped() {
        let rate = Rate::measured(1_000, 3_000).unwrap();
        assert_eq!(rate.counts(0), 1);
        assert_eq!(rate.counts(u64::MAX), u32::MAX);
        assert_eq!(Rate::UNKNOWN.counts(u64::MAX), 1);
    }

    #[test]
    fn a_clock_that_stands_still_has_no_rate() {
        assert_eq!(Rate::measured(0, 1), None);
        assert_eq!(Rate::measured(1, 0), None);
    }

    #[test]
    fn virtual_time_is_1000_mhz() {
        assert_eq!(megahertz(10_000_167, 11_932, 1_193_182), Some(1_000));
        assert_eq!(megahertz(1, 11_932, 1_193_182), Some(1));
        assert_eq!(megahertz(1, 0, 1_193_182), None);
    }

    proptest! {
        /// The timer's interrupt never comes before the deadline, whatever the ratio of clocks.
        #[test]
        fn never_early(counts in 1u32.., window in 1u64..1 << 40, ticks in 0u64..1 << 40) {
            let rate = Rate::measured(counts, window).unwrap();
            let span = ticks.min(rate.longest);
            // count / counts * window >= span, exactly.
            prop_assert!(u128::from(rate.counts(ticks)) * u128::from(window)
                >= u128::from(span) * u128::from(counts));
        }

        /// A span is clipped only if its count exceeds what the timer holds.
        #[test]
        fn clipped_only_where_it_must(counts in 1u32.., window in 1u64..1 << 40) {
            let rate = Rate::measured(counts, window).unwrap();
            let next = u128::from(rate.longest) + 1;
            prop_assert!(next * u128::from(rate.scaled) > u128::from(LONGEST));
        }
    }
}
