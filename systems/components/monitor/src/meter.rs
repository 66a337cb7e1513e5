//! What one scheduling context has used, and what it must have left.
//!
//! The kernel tells what was used since it was last asked, in whole µs, and nothing else. But what is used comes back a
//! period after it could be used, so no more is missing of a budget than was used within the last period.
//! (Replenishments that were merged for want of room come back later: `extra-refills`.)

use alloc::collections::VecDeque;

/// Samples to keep of a period: older ones are taken together.
const MOST: usize = 32;

/// What was used until a time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    until_us: u64,
    used_us: u64,
}

/// The meter of one context. Times are µs.
#[derive(Debug, Default)]
pub struct Meter {
    samples: VecDeque<Sample>,
    /// Since the last report.
    used_us: u64,
}

impl Meter {
    /// Notes what was used since the last sample; `None` if the kernel did not say.
    pub fn add(&mut self, now_us: u64, used_us: Option<u64>, period_us: u64) {
        let used_us = used_us.unwrap_or(0);
        self.used_us = self.used_us.saturating_add(used_us);
        if used_us > 0 {
            self.samples.push_back(Sample {
                until_us: now_us,
                used_us,
            });
        }
        let is_old = |sample: &Sample| sample.until_us.saturating_add(period_us) <= now_us;
        while self.samples.front().is_some_and(is_old) {
            self.samples.pop_front();
        }
        if self.samples.len() > MOST {
            // Together they count as long as the younger one.
            if let (Some(first), Some(second)) =
                (self.samples.pop_front(), self.samples.front_mut())
            {
                second.used_us = second.used_us.saturating_add(first.used_us);
            }
        }
    }

    /// What is left of `budget_us` at least.
    pub fn left_us(&self, budget_us: u64) -> u64 {
        let used = self.samples.iter().map(|sample| sample.used_us);
        budget_us.saturating_sub(used.fold(0, u64::saturating_add))
    }

    /// What was used since it was last asked.
    pub fn take_used_us(&mut self) -> u64 {
        core::mem::take(&mut self.used_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_comes_back_after_a_period() {
        let mut meter = Meter::default();
        meter.add(1_000, Some(300), 10_000);
        meter.add(6_000, Some(200), 10_000);
        assert_eq!(meter.left_us(1_000), 500);
        meter.add(11_000, Some(0), 10_000);
        assert_eq!(meter.left_us(1_000), 800);
        meter.add(16_000, None, 10_000);
        assert_eq!(meter.left_us(1_000), 1_000);
        assert_eq!(meter.take_used_us(), 500);
        assert_eq!(meter.take_used_us(), 0);
    }

    #[test]
    fn many_samples_of_a_period_are_taken_together_and_none_is_lost() {
        let mut meter = Meter::default();
        for at in 1..=1_000 {
            meter.add(at, Some(1), 10_000);
        }
        assert!(meter.samples.len() <= MOST);
        assert_eq!(meter.left_us(5_000), 4_000);
        // Never more than there is.
        assert_eq!(meter.left_us(10), 0);
    }
}
