//! How often threads are to have jobs: what the checks of a trace expect.

use super::super::document::BelowPolicy;
use super::super::quantity::Micros;
use super::super::spanned::Spanned;
use super::names::ThreadIndex;
use super::{text, Checker};
use crate::trace::check::Expected;

/// The keys that say so.
struct Keys<'d> {
    period: Option<&'d Spanned<Micros>>,
    deadline: Option<&'d Spanned<Micros>>,
    interval: Option<&'d Spanned<Micros>>,
    sporadic: bool,
}

macro_rules! keys {
    ($table:expr) => {
        Keys {
            period: $table.period.as_ref(),
            deadline: $table.deadline.as_ref(),
            interval: $table.interval.as_ref(),
            sporadic: $table.sporadic,
        }
    };
}

impl Checker<'_> {
    /// Threads with a deadline have a job in each interval: by default their period, and 0 for those that wait for
    /// events.
    pub(super) fn expected_jobs(&self) -> Vec<Expected> {
        let components = self.document.components.iter().enumerate();
        let mut expected = Vec::new();
        for (component, described) in components {
            let main = std::iter::once(keys!(described));
            let threads = main.chain(described.threads.iter().map(|thread| keys!(thread)));
            for (thread, keys) in threads.enumerate() {
                let Some(interval_us) = keys.interval_us() else {
                    continue;
                };
                let path = self.path(ThreadIndex { component, thread });
                if !self.gives_way(&path) {
                    expected.push(Expected {
                        thread: path,
                        interval_us,
                    });
                }
            }
        }
        expected
    }

    /// Whether a thread may be kept from its jobs by a change of the mode.
    fn gives_way(&self, path: &str) -> bool {
        let mut tasks = self.document.modes.iter().flat_map(|modes| &modes.tasks);
        tasks.any(|task| text(&task.component) == path && task.below != BelowPolicy::Keep)
    }
}

impl Keys<'_> {
    fn interval_us(&self) -> Option<u64> {
        self.deadline?;
        let by_default = self.period.filter(|_| !self.sporadic);
        let interval = self.interval.or(by_default)?.get_ref().0;
        (interval > 0).then_some(interval)
    }
}
