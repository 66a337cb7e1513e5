//! When more is wanted: once per period, as in thesis 8.3.5. A client that is behind continues at once; one that is
//! ahead sleeps until the control task, which has the timer, signals that a period begins.

use alloc::format;

use sandglass::cap::Notification;
use sandglass::time::{ticks, Tsc};
use sandglass::Environment;

/// A client that has all of the time never sleeps, and has none.
pub struct Schedule(Option<Releases>);

struct Releases {
    /// Signalled at every release.
    signal: Notification,
    /// Of the client's scheduling context, ticks.
    period: u64,
    /// Release of the first period.
    start: u64,
}

impl Schedule {
    /// Waits for the first release.
    pub fn new(env: &Environment, tsc: Tsc) -> Self {
        if env.parameter("sleeps") == 0 {
            return Self(None);
        }
        let signal: Notification = env.capability(&format!("{}.release", env.name()));
        signal.wait();
        Self(Some(Releases {
            signal,
            period: tsc.us_to_ticks(env.parameter("period")),
            start: ticks(),
        }))
    }

    /// Sleeps until period number `number` begins. It keeps its budget: the sleeper is blocked.
    pub fn wait_for_release(&self, number: u64) {
        let Some(releases) = &self.0 else {
            return;
        };
        // A signal may be an older one, which was not waited for; the clock tells, and need not be
        // exact, since signals come at releases only.
        let earliest =
            releases.start + (number * releases.period).saturating_sub(releases.period / 2);
        while ticks() < earliest {
            releases.signal.wait();
        }
    }
}
