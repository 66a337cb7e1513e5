//! Releases without drift, and the side of a task that `release-timer` releases.

use sandglass_tasks::releases::{Missed, Releases as Inner};

use crate::environment;
use crate::foreign::Context;

/// When a task's jobs begin.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    /// The next one: its number, and its time in ticks of any clock.
    pub number: u64,
    pub at: u64,
    /// Ticks; 0 counts as 1.
    pub period: u64,
    /// Those that have passed are left out.
    pub skip_missed: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub number: u64,
    pub at: u64,
}

#[no_mangle]
pub extern "C" fn sg_next_release(releases: Option<&mut Releases>, now: u64) -> Release {
    let Some(releases) = releases else {
        return Release { number: 0, at: now };
    };
    let missed = match releases.skip_missed {
        true => Missed::Skip,
        false => Missed::CatchUp,
    };
    let period = releases.period.max(1);
    let next = Inner::new(releases.at, period, missed).next(now);
    let number = releases.number.saturating_add(next.number);
    releases.number = number.saturating_add(1);
    releases.at = next.at.saturating_add(period);
    Release {
        number,
        at: next.at,
    }
}

#[no_mangle]
pub extern "C" fn sg_run_released(
    job: extern "C" fn(number: u64, context: Context),
    context: Context,
) -> ! {
    releases::run(environment::get(), |number| job(number, context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn releases_are_those_of_the_library(
            at in any::<u64>(), period in 0u64..100, skip_missed in any::<bool>(),
            steps in prop::collection::vec(0u64..500, 1..50),
        ) {
            let missed = if skip_missed { Missed::Skip } else { Missed::CatchUp };
            let mut inner = Inner::new(at, period, missed);
            let mut releases = Releases { number: 0, at, period, skip_missed };
            let mut now = at.saturating_sub(100);
            for step in steps {
                now = now.saturating_add(step);
                let expected = inner.next(now);
                let release = sg_next_release(Some(&mut releases), now);
                prop_assert_eq!((release.number, release.at), (expected.number, expected.at));
            }
        }
    }
}
