//! Releases without drift (`sandglass-tasks`), of a job that somebody delays, and at the end of time.
//!
//! Of a task with first release f and period p, whenever it looks:
//! - release k is at f + k·p, or at the end of time if that is earlier;
//! - with `CatchUp` no release is missing;
//! - with `Skip` the release is the first that was not given yet and is still to come.

use sandglass_tasks::releases::{Missed, Releases};

use crate::promise::promise;
use crate::{Held, Journal, Source};

pub const WHAT: &str = "looks at the clock, of a task that is released by it";

const ON_TIME: &str = "on time";
const CAUGHT_UP: &str = "caught up with";
const SKIPPED: &str = "skipped";
const END_OF_TIME: &str = "the end of time";

pub const SITUATIONS: &[&str] = &[ON_TIME, CAUGHT_UP, SKIPPED, END_OF_TIME];

/// Ticks of a long time.
const LONG: u64 = 1 << 62;

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let near = source.number(0..=1000);
    let first = source.one_of(&[near, u64::MAX - near, LONG]);
    let period = source.number(0..=100);
    let period = source.one_of(&[period, period, LONG]);
    let missed = source.one_of(&[Missed::CatchUp, Missed::Skip]);
    let mut now = first.saturating_sub(source.number(0..=100));
    journal.note(format_args!(
        "first at {first}, every {period}, {missed:?}, from {now} on"
    ));
    let mut releases = Releases::new(first, period, missed);
    let real_period = u128::from(period.max(1));
    // Of the next release.
    let mut expected: u128 = 0;
    while !source.is_empty() {
        let delay = source.number(0..=250);
        now = now.saturating_add(source.one_of(&[delay, delay, delay, delay, LONG]));
        let release = releases.next(now);
        journal.step(format_args!("at {now}: {release:?}"));
        let passed = u128::from(now.saturating_sub(first)).div_ceil(real_period);
        if missed == Missed::Skip && passed > expected {
            expected = passed;
            journal.saw(SKIPPED);
        }
        let at = u128::from(first) + expected * real_period;
        promise!(
            u128::from(release.number) == expected.min(u64::MAX.into()),
            "release {} is next, not {}",
            expected,
            release.number
        );
        promise!(
            u128::from(release.at) == at.min(u64::MAX.into()),
            "release {expected} is at {at}, not {}",
            release.at
        );
        journal.saw(match release.at {
            u64::MAX => END_OF_TIME,
            at if at < now => CAUGHT_UP,
            _ => ON_TIME,
        });
        expected += 1;
    }
    Ok(())
}
