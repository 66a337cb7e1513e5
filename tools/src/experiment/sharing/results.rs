//! Blocking, preemptions and cost of every variant, beside what the textbook allows.

use super::rounds::{Log, HIGH, MIDDLE};
use super::systems::{Bound, Variant, Work};

/// The requests of tasks below the high one, in the order of the log: low, lowest.
const LOWER: [usize; 2] = [2, 3];
/// Instructions that the conductor needs for a release, at most: an interrupt, a signal, the next
/// deadline. They delay whoever runs, once for each other task, and are not the protocol's.
const RELEASE: u64 = 12_000;

/// What came of one variant.
pub struct Outcome {
    pub variant: &'static Variant,
    pub log: Log,
}

pub struct Results(pub Vec<Outcome>);

impl Outcome {
    /// The longest delay of the high task, by whoever is below it.
    pub fn blocking(&self) -> u64 {
        let delays = self.log.rounds.iter();
        delays
            .filter_map(|round| self.log.delay(HIGH, round))
            .max()
            .unwrap_or(0)
    }

    /// The longest delay of the middle task beyond the high task's work.
    pub fn blocking_of_middle(&self) -> Option<u64> {
        let delays = self.log.rounds.iter();
        delays
            .filter_map(|round| self.log.delay(MIDDLE, round))
            .max()
            .map(|delay| delay.saturating_sub(self.log.alone(HIGH)))
    }

    /// Preemptions in all rounds.
    pub fn preemptions(&self) -> u64 {
        let rounds = self.log.rounds.iter();
        rounds.map(|round| round.preemptions).sum()
    }

    /// Rounds in which the watchdog bit.
    pub fn resets(&self) -> usize {
        self.log
            .rounds
            .iter()
            .filter(|round| round.watchdog)
            .count()
    }

    /// How long the high task may be blocked: what requests of the tasks below it take alone, with
    /// what their protocol costs.
    pub fn bound(&self) -> Option<u64> {
        let lower: Vec<u64> = LOWER
            .into_iter()
            .filter(|&task| self.variant.has_all_tasks() || task == LOWER[1])
            .map(|task| self.log.requests_alone(task))
            .collect();
        match self.variant.bound {
            Bound::Longest => Some(self.longest_section(&lower)),
            Bound::Sum => Some(lower.iter().sum()),
            Bound::Free => Some(0),
            Bound::None => None,
        }
    }

    /// Where a budget runs out, the request alone takes periods: the section itself does not, so
    /// the bound is the low task's section, which is as long.
    fn longest_section(&self, lower: &[u64]) -> u64 {
        match self.variant.work {
            Work::All { .. } | Work::Device => lower.iter().copied().max().unwrap_or(0),
            Work::Starved => STARVED_SECTION,
        }
    }

    /// What the protocol and the conductor may add to the bound: a request of each task below goes
    /// through the protocol while the high one waits, and so do the high one's own two; and three
    /// releases.
    pub fn overhead(&self) -> u64 {
        4 * self.log.cost[2] + 3 * RELEASE
    }

    fn failure(&self) -> Option<String> {
        let limit = self.bound()? + self.overhead();
        let blocking = self.blocking();
        (blocking > limit).then(|| {
            format!(
                "`{}`: the high task is blocked for {blocking} instructions, longer than {limit} \
                 ({})",
                self.variant.name, self.variant.textbook
            )
        })
    }
}

/// The lowest task's section, instructions; 300 µs.
const STARVED_SECTION: u64 = 300_000;

impl Results {
    pub fn find(&self, name: &str) -> Option<&Outcome> {
        self.0.iter().find(|outcome| outcome.variant.name == name)
    }

    /// Claims that do not hold.
    pub fn failures(&self) -> Vec<String> {
        let mut failures: Vec<String> = self.0.iter().filter_map(Outcome::failure).collect();
        let blocking = |name| self.find(name).map_or(0, Outcome::blocking);
        let (none, longer) = (blocking("none"), blocking("none, longer"));
        if longer < none + 900_000 {
            failures.push(format!(
                "without a protocol the blocking does not grow with the middle task's work: \
                 {none}, then {longer} instructions"
            ));
        }
        if self.find("none").is_none_or(|none| none.resets() == 0) {
            failures.push("without a protocol the watchdog never fires".to_owned());
        }
        for name in [
            "inheritance",
            "original ceiling",
            "immediate ceiling",
            "worker pool",
            "stack spawning",
            "blocking server",
        ] {
            if self.find(name).is_none_or(|outcome| outcome.resets() > 0) {
                failures.push(format!("under `{name}` the watchdog fires"));
            }
        }
        for name in ["stack spawning", "stack spawning, starved"] {
            let log = self.find(name).map(|outcome| &outcome.log);
            if log.is_none_or(|log| log.spawned.is_none()) {
                failures.push(format!("under `{name}` no thread was made"));
            }
        }
        failures
    }
}
