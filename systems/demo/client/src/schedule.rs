//! When more is wanted: once per period. Who is behind goes on at once; who is ahead sleeps
//! until its budget is replenished, as in thesis 8.3.5.

use sandglass::sys::yield_now;
use sandglass::time::{ticks, Tsc};
use sandglass::Environment;

pub struct Schedule {
    /// Of the client's scheduling context, ticks; `None` for a client that has all of the time,
    /// and never sleeps.
    period: Option<u64>,
    /// Release of the first period.
    start: u64,
}

impl Schedule {
    /// The clock starts now.
    pub fn new(env: &Environment, tsc: Tsc) -> Self {
        let sleeps = env.parameter("sleeps") != 0;
        let period = tsc.us_to_ticks(env.parameter("period"));
        Self {
            period: sleeps.then_some(period),
            start: ticks(),
        }
    }

    /// Gives up the rest of the budget until period number `number` begins.
    ///
    /// Budgets are replenished a period after they were first used, which is shortly before
    /// the program first looked at the clock; so a period may begin up to an eighth of
    /// itself early. Otherwise this would now and then find itself just too early, and sleep for another
    /// period.
    pub fn wait_for_release(&self, number: u64) {
        let Some(period) = self.period else {
            return;
        };
        let earliest = self.start + (number * period).saturating_sub(period / 8);
        while ticks() < earliest {
            yield_now();
        }
    }
}
