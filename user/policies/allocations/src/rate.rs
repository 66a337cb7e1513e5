//! Utilisations, and the demand that they come to.

use core::fmt;

/// A share of one processor, from 0 to 1, in parts of [`Rate::WHOLE`].
///
/// The whole is no power of two but a number with many divisors, so that the fractions that people write are exact:
/// three thirds are a processor, and so are a thousand tasks of 10 µs in 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// Parts of a whole processor: the largest product of its kind below 2^64.
const PARTS: u64 = (1 << 16) * 3u64.pow(6) * 5u64.pow(9) * 7u64.pow(2) * 11 * 13 * 17;

impl Rate {
    pub const ZERO: Self = Self(0);
    /// A whole processor.
    pub const WHOLE: Self = Self(PARTS);

    /// The least share that is not below `numerator / denominator`: what a demand is rounded to. `None` above a whole
    /// processor, and for a denominator of 0.
    pub const fn at_least(numerator: u64, denominator: u64) -> Option<Self> {
        if denominator == 0 || numerator > denominator {
            return None;
        }
        let parts = (numerator as u128 * PARTS as u128).div_ceil(denominator as u128);
        Some(Self(parts as u64))
    }

    /// The greatest share that is not above `numerator / denominator`: what a supply is rounded to. `None` as of
    /// [`Self::at_least`].
    pub const fn at_most(numerator: u64, denominator: u64) -> Option<Self> {
        if denominator == 0 || numerator > denominator {
            return None;
        }
        let parts = numerator as u128 * PARTS as u128 / denominator as u128;
        Some(Self(parts as u64))
    }

    /// In parts of [`Self::WHOLE`].
    pub const fn parts(self) -> u64 {
        self.0
    }

    /// The inverse of [`Self::parts`]; `None` above a whole processor.
    pub const fn of_parts(parts: u64) -> Option<Self> {
        if parts <= PARTS {
            Some(Self(parts))
        } else {
            None
        }
    }

    /// For charts and messages; no decision is made by it.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / PARTS as f64
    }
}

/// In per cent, with two decimals, rounded to the nearest.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (u128::from(self.0) * 10_000 + u128::from(PARTS) / 2) / u128::from(PARTS);
        write!(f, "{}.{:0>2} %", hundredths / 100, hundredths % 100)
    }
}

/// Processor demand: ticks and parts of a tick, exact. [`Rate::WHOLE`] has the parts of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    ticks: u64,
    parts: u64,
}

impl Amount {
    pub const NOTHING: Self = Self::of_ticks(0);

    pub const fn of_ticks(ticks: u64) -> Self {
        Self { ticks, parts: 0 }
    }

    /// `None` if the parts are a tick or more.
    pub const fn new(ticks: u64, parts: u64) -> Option<Self> {
        if parts < PARTS {
            Some(Self { ticks, parts })
        } else {
            None
        }
    }

    /// Whole ticks in it.
    pub const fn ticks(self) -> u64 {
        self.ticks
    }

    /// Parts of a tick beyond the whole ones.
    pub const fn parts(self) -> u64 {
        self.parts
    }

    pub(crate) const fn scaled(self) -> Scaled {
        scaled(self.ticks) + self.parts as Scaled
    }

    /// `None` below 0, and for more ticks than there can be.
    pub(crate) fn of_scaled(scaled: Scaled) -> Option<Self> {
        let parts = Scaled::from(PARTS);
        Some(Self {
            ticks: u64::try_from(scaled.div_euclid(parts)).ok()?,
            parts: scaled.rem_euclid(parts) as u64,
        })
    }
}

/// Ticks, in parts of [`Rate::WHOLE`] of a tick: what functions are computed in, without rounding. Ticks are below
/// [`crate::LONGEST`] where they are multiplied, rates below 2^64 and their sums not much above, so products are below
/// 2^123: they wrap nowhere, and are not checked for it, which would take most of the time.
pub(crate) type Scaled = i128;

/// Whole ticks.
pub(crate) const fn scaled(ticks: u64) -> Scaled {
    (ticks as Scaled).wrapping_mul(PARTS as Scaled)
}

/// What a rate adds in an interval.
pub(crate) const fn over(rate: Rate, ticks: u64) -> Scaled {
    (rate.0 as Scaled).wrapping_mul(ticks as Scaled)
}

/// Ticks, rounded up; 0 for what is below 0.
pub(crate) fn ticks_up(scaled: Scaled) -> u64 {
    let parts = Scaled::from(PARTS);
    u64::try_from((scaled.max(0) + parts - 1) / parts).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_that_people_write_are_exact() {
        let denominators = [
            3, 6, 7, 9, 11, 13, 17, 60, 100, 360, 1_000, 1_024, 1_000_000, 30_000_000,
        ];
        for denominator in denominators {
            let one = Rate::at_least(1, denominator).unwrap();
            assert_eq!(
                one.parts() * denominator,
                Rate::WHOLE.parts(),
                "1/{denominator}"
            );
        }
    }

    #[test]
    fn demands_are_rounded_up_and_supplies_down() {
        let (more, less) = (
            Rate::at_least(1, 19).unwrap(),
            Rate::at_most(1, 19).unwrap(),
        );
        assert_eq!(more.parts(), less.parts() + 1);
        assert!(more.parts() * 19 > Rate::WHOLE.parts() || more.parts() > Rate::WHOLE.parts() / 19);
        assert_eq!((Rate::at_least(2, 1), Rate::at_most(1, 0)), (None, None));
    }

    #[test]
    fn a_rate_reads_as_per_cent() {
        assert_eq!(Rate::at_most(2, 3).unwrap().to_string(), "66.67 %");
        assert_eq!(Rate::WHOLE.to_string(), "100.00 %");
    }
}
