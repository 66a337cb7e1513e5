//! How long a request waits at most for requests of less urgent threads. The formula, its reasons and its limits are
//! in the book: *How long a client waits*.

use super::super::super::document::SharingProtocol;
use super::super::names::ThreadIndex;
use super::super::policies::sharing::proxied;
use super::super::{text, Checker};
use super::services::{Payer, Service};

/// Most rows: with thousands of clients, of servers that call each other, there are millions.
pub const MOST_ROWS: usize = 10_000;

/// The worst case of one request of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocking {
    /// Path of the thread that waits.
    pub client: String,
    /// The component that serves.
    pub server: String,
    /// Where.
    pub endpoint: String,
    /// Path of the thread whose request takes longest; `None` if there is nobody to wait for.
    pub by: Option<String>,
    pub bound: Bound,
}

/// How long a request waits for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// At most this, µs, if what is assumed is true.
    Us(u64, Assumption),
    /// Nothing limits it; why.
    None(String),
}

/// What a bound rests on that nothing enforces, the weakest of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    /// Nothing: a policy ends what takes longer.
    Nothing,
    /// Requests take at most what the description states as `longest`.
    Longest,
    /// A request takes at most the whole budget of its client.
    OneBudget,
}

impl Bound {
    const ZERO: Self = Self::Us(0, Assumption::Nothing);

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Us(one, why), Self::Us(other, too)) => {
                Self::Us(one.saturating_add(other), why.max(too))
            }
            (none @ Self::None(_), _) | (_, none) => none,
        }
    }

    /// For comparison: none is the longest.
    pub fn length(&self) -> u64 {
        match self {
            Self::Us(us, _) => *us,
            Self::None(_) => u64::MAX,
        }
    }
}

impl Checker<'_> {
    /// The worst cases of all clients, and whether some are left out.
    pub(super) fn blocking(&self, services: &[Service<'_>]) -> (Vec<Blocking>, bool) {
        let mut rows = Vec::new();
        for service in services {
            if rows.len() + service.payers.len() > MOST_ROWS {
                return (rows, true);
            }
            let holds = service.payers.iter().map(|payer| self.hold(service, payer));
            let holds: Vec<Bound> = holds.collect();
            let ranking = Ranking::of(self, service, &holds);
            for (index, payer) in service.payers.iter().enumerate() {
                rows.push(self.row(service, payer.thread, index, &ranking, &holds));
            }
        }
        (rows, false)
    }

    fn row(
        &self,
        service: &Service<'_>,
        thread: ThreadIndex,
        index: usize,
        ranking: &Ranking,
        holds: &[Bound],
    ) -> Blocking {
        let (bound, by) = match service.has_room {
            true => (Bound::ZERO, None),
            false => ranking.wait(index, holds),
        };
        let level = self.level_at(service);
        let is_raised = service.protocol.and_then(proxied).is_some();
        let server = text(&self.document.components[service.server].name);
        let bound = match by {
            Some(_) if !is_raised && level < self.made(thread).priority => Bound::None(format!(
                "`{server}` runs at priority {level}, below this client: threads in between delay it"
            )),
            _ => bound,
        };
        Blocking {
            client: self.path(thread),
            server: server.to_owned(),
            endpoint: text(service.name).to_owned(),
            by: by.map(|by| self.path(service.payers[by].thread)),
            bound,
        }
    }

    /// How long a request may keep its server from others.
    fn hold(&self, service: &Service<'_>, payer: &Payer) -> Bound {
        let server = &self.threads[service.server][0];
        if !server.passive {
            return match payer.longest {
                Some(longest) => {
                    let (budget, period) = (server.time.budget_us, server.time.period_us);
                    Bound::Us(stretched(longest, budget, period), Assumption::Longest)
                }
                None => {
                    Bound::None("how long its requests take is not stated: `longest`".to_owned())
                }
            };
        }
        if service.protocol == Some(SharingProtocol::Blocking) {
            return match payer.longest {
                Some(longest) => Bound::Us(longest, Assumption::Longest),
                None => {
                    Bound::None("how long its device takes is not stated: `longest`".to_owned())
                }
            };
        }
        let is_policed = self.ends_requests(service.server);
        let time = self.made(payer.thread).time;
        if self.is_round_robin(payer.thread) {
            return match payer.longest {
                Some(longest) => Bound::Us(longest, Assumption::Longest),
                None => Bound::None(format!(
                    "the budget of `{}` never runs out",
                    self.path(payer.thread)
                )),
            };
        }
        if is_policed {
            let help = self.most_help(payer.thread);
            let most = time
                .budget_us
                .saturating_add(help.raise)
                .saturating_add(help.emergency);
            return match payer.longest {
                Some(longest) if longest < most => Bound::Us(longest, Assumption::Longest),
                _ => Bound::Us(most, Assumption::Nothing),
            };
        }
        let (longest, assumed) = match payer.longest {
            Some(longest) => (longest, Assumption::Longest),
            None => (time.budget_us, Assumption::OneBudget),
        };
        // Its waiters lend it their time, so it does not wait for its next period.
        let us = match service.protocol {
            Some(SharingProtocol::BandwidthInheritance) => longest,
            _ => stretched(longest, time.budget_us, time.period_us),
        };
        Bound::Us(us, assumed)
    }
}

/// How long a request of `longest` µs takes at most on a budget that lasts for `budget` of `period` µs, from when it
/// begins: each time that the budget is used up, the rest of the period passes.
fn stretched(longest: u64, budget: u64, period: u64) -> u64 {
    let waits = longest.div_ceil(budget.max(1));
    longest.saturating_add(waits.saturating_mul(period.saturating_sub(budget)))
}

/// The payers of a service by urgency, with what each of them may have to wait for.
struct Ranking {
    /// Of each payer, the payer with the longest request among those that are less urgent or on another core.
    longest_below: Vec<Option<usize>>,
    /// Of each payer, the others of its priority.
    equals: Vec<Vec<usize>>,
}

impl Ranking {
    fn of(checker: &Checker<'_>, service: &Service<'_>, holds: &[Bound]) -> Self {
        let key = |index: usize| {
            let made = checker.made(service.payers[index].thread);
            (made.priority, made.time.core)
        };
        let count = service.payers.len();
        // The longest of each priority and core; there are few of these.
        let mut classes: std::collections::BTreeMap<(u8, u32), Vec<usize>> = Default::default();
        for index in 0..count {
            classes.entry(key(index)).or_default().push(index);
        }
        let longest = |indices: &Vec<usize>| {
            indices
                .iter()
                .copied()
                .max_by_key(|&i| (holds[i].length(), std::cmp::Reverse(i)))
        };
        let longest: Vec<((u8, u32), Option<usize>)> = classes
            .iter()
            .map(|(class, indices)| (*class, longest(indices)))
            .collect();
        let below = |(priority, core): (u8, u32)| {
            let others = longest.iter().filter(|((other, other_core), _)| {
                *other < priority || (*other != priority && *other_core != core)
            });
            let others = others.filter_map(|(_, index)| *index);
            others.max_by_key(|&i| (holds[i].length(), std::cmp::Reverse(i)))
        };
        let below: std::collections::BTreeMap<(u8, u32), Option<usize>> = classes
            .keys()
            .map(|class| (*class, below(*class)))
            .collect();
        let same = |index: usize| {
            let (priority, _) = key(index);
            let classes = classes.range((priority, 0)..=(priority, u32::MAX));
            let others = classes.flat_map(|(_, indices)| indices.iter().copied());
            // Where many are equal, only the sum matters, which is beyond use anyway.
            others.filter(|&other| other != index).take(64).collect()
        };
        Self {
            longest_below: (0..count).map(|index| below[&key(index)]).collect(),
            equals: (0..count).map(same).collect(),
        }
    }

    /// What a payer waits for at most, and for whom longest.
    fn wait(&self, index: usize, holds: &[Bound]) -> (Bound, Option<usize>) {
        let below = self.longest_below[index];
        let first = below.map_or(Bound::ZERO, |by| holds[by].clone());
        let equals = &self.equals[index];
        let all = equals
            .iter()
            .map(|&by| holds[by].clone())
            .fold(first, Bound::plus);
        let by = below.into_iter().chain(equals.iter().copied());
        (
            all,
            by.max_by_key(|&by| (holds[by].length(), std::cmp::Reverse(by))),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::stretched;

    #[test]
    fn a_request_waits_for_the_rest_of_each_period_that_it_uses_up() {
        assert_eq!(stretched(0, 10, 100), 0);
        assert_eq!(stretched(10, 10, 100), 100);
        assert_eq!(stretched(11, 10, 100), 191);
        assert_eq!(stretched(5, 20, 20), 5);
    }
}
