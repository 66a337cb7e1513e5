//! Releases without drift: each is a whole number of periods after the first, whenever the job before
//! it ended.

/// What becomes of releases that a job which took too long has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// They happen at once, one after the other.
    CatchUp,
    /// They do not happen: the next release is the first that is still to come.
    Skip,
}

/// A release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// From 0; the numbers of skipped ones are missing.
    pub number: u64,
    /// In the ticks of [`Releases::new`].
    pub at: u64,
}

/// The releases of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    next: Release,
    /// Not 0.
    period: u64,
    missed: Missed,
}

impl Releases {
    /// The first release is at `first`, the others `period` apart, both in ticks of any clock; a
    /// period of 0 counts as 1.
    pub const fn new(first: u64, period: u64, missed: Missed) -> Self {
        Self {
            next: Release {
                number: 0,
                at: first,
            },
            period: if period == 0 { 1 } else { period },
            missed,
        }
    }

    /// The next release, seen at `now`. With [`Missed::Skip`] it is not before `now`.
    pub fn next(&mut self, now: u64) -> Release {
        if self.missed == Missed::Skip {
            self.advance(now.saturating_sub(self.next.at).div_ceil(self.period));
        }
        let release = self.next;
        self.advance(1);
        release
    }

    /// Goes on by so many releases.
    fn advance(&mut self, releases: u64) {
        self.next.number = self.next.number.saturating_add(releases);
        let time = self.period.saturating_mul(releases);
        self.next.at = self.next.at.saturating_add(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn passed_releases_are_caught_up_with_or_skipped() {
        let seen = [100, 100, 135, 136, 137];
        let at = |missed| {
            let mut releases = Releases::new(100, 10, missed);
            seen.map(|now| releases.next(now).at)
        };
        assert_eq!(at(Missed::CatchUp), [100, 110, 120, 130, 140]);
        assert_eq!(at(Missed::Skip), [100, 110, 140, 150, 160]);
    }

    #[test]
    fn a_release_that_is_due_now_is_not_missed() {
        let mut releases = Releases::new(100, 10, Missed::Skip);
        assert_eq!(releases.next(120), Release { number: 2, at: 120 });
    }

    #[test]
    fn the_end_of_time_is_no_panic() {
        let mut releases = Releases::new(u64::MAX - 1, 0, Missed::CatchUp);
        let ends = [0; 4].map(|now| releases.next(now).at);
        assert_eq!(ends, [u64::MAX - 1, u64::MAX, u64::MAX, u64::MAX]);
    }

    proptest! {
        #[test]
        fn releases_do_not_drift(
            first in 0u64..1000,
            period in 1u64..100,
            steps in prop::collection::vec(0u64..500, 1..100),
            skip in any::<bool>(),
        ) {
            let missed = if skip { Missed::Skip } else { Missed::CatchUp };
            let mut releases = Releases::new(first, period, missed);
            let mut now = 0;
            let mut last: Option<Release> = None;
            for step in steps {
                now += step;
                let release = releases.next(now);
                // On the grid, later than the one before, and by number what it is by time.
                prop_assert_eq!(release.at, first + release.number * period);
                prop_assert!(last.is_none_or(|last| last.number < release.number));
                if skip {
                    // The first of those to come.
                    prop_assert!(release.at >= now);
                    let earlier = release.at.checked_sub(period).filter(|at| *at >= now.max(first));
                    prop_assert!(earlier.is_none_or(|at| last.is_some_and(|last| last.at >= at)));
                } else {
                    prop_assert_eq!(release.number, last.map_or(0, |last| last.number + 1));
                }
                last = Some(release);
            }
        }
    }
}
