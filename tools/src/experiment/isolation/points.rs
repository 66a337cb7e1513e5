//! What is measured, and what is claimed of it.
//!
//! *Proportional* means: a client's throughput is its budget's share of what a client gets that
//! has all of the period, as long as it does not ask for less. Nothing is taken off for
//! rollbacks: that half of a batch is lost at each, and that the server's next note comes a batch
//! later, is part of what a client has to pay.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::super::Size;
use crate::demo::analysis::{model, Run, CLIENTS};
use crate::demo::model::{Ideal, Limit, Model};
use crate::demo::sweep::Point;

/// A throughput may be this far off, in percent of the maximum.
pub const TOLERANCE_PERCENT: f64 = 2.0;

/// Periods of the clients' scheduling contexts, ms, and how many of each are measured.
const PERIODS: [Period; 3] = [
    // The longest machines first.
    Period {
        ms: 1000,
        measured: [1, 2, 4],
    },
    Period {
        ms: 100,
        measured: [2, 4, 10],
    },
    Period {
        ms: 10,
        measured: [10, 30, 50],
    },
];

struct Period {
    ms: u64,
    /// By [`Size`].
    measured: [u64; 3],
}

/// The budgets of both add up to this, percent of the period. The control task has 2 %; with more
/// than the rest, the system would be overloaded, and who gets less would depend on when one looks.
const BUDGETS_PERCENT: u64 = 97;

/// What a client asks for, bytes per ms of its period: more than it can get with all of the time, or
/// about a third of that. Of a period of 1,000 ms, the latter is the thesis's 4 MiB.
pub const GREEDY: u64 = 16 << 10;
pub const MODEST: u64 = 4 << 10;
pub const DEMANDS: [u64; 2] = [GREEDY, MODEST];

/// The points of a sweep: a client alone with all the time at the ends, and each demand in between.
pub fn points(size: Size) -> Vec<Point> {
    PERIODS
        .iter()
        .flat_map(|period| {
            let periods = period.measured[size as usize];
            let point = move |percents: [u64; 2], demand: u64| Point {
                period_us: period.ms * 1000,
                percents,
                demand_bytes: demand * period.ms,
                window_us: period.ms * 1000 * periods,
                sends_ciphertext: false,
                shows_timeline: false,
            };
            let shared = between(size)
                .into_iter()
                .map(move |(percent, demand)| point([percent, BUDGETS_PERCENT - percent], demand));
            let alone = [[0, 100], [100, 0]].map(|percents| point(percents, GREEDY));
            alone.into_iter().chain(shared)
        })
        .collect()
}

/// A's budgets where both have one, percent of the period, and what is asked for.
fn between(size: Size) -> Vec<(u64, u64)> {
    let step = match size {
        Size::Smoke => return vec![(25, GREEDY), (50, MODEST)],
        Size::Quick => 25,
        Size::Full => 10,
    };
    let percents = (step..BUDGETS_PERCENT).step_by(step as usize);
    percents
        .flat_map(|percent| DEMANDS.map(|demand| (percent, demand)))
        .collect()
}

/// A client at a point.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    pub percent: u64,
    /// Bytes per second.
    pub throughput: f64,
    pub ideal: Ideal,
    /// From the ideal, percent of the maximum.
    pub of_maximum: f64,
    /// From the ideal, percent of the ideal; 0 for a client without budget.
    pub of_ideal: f64,
    pub rollbacks: u64,
}

impl Client {
    pub const fn limited_by_processor(&self) -> bool {
        matches!(self.ideal.limit, Limit::Processor)
    }

    /// Whether it shares: a client with all the time defines the maximum, and one without time gets nothing.
    pub const fn shares(&self) -> bool {
        0 < self.percent && self.percent < 100
    }

    /// Not `>`: a throughput that is no number is off too.
    fn is_off(&self) -> bool {
        !matches!(self.of_maximum.abs(), off if off <= TOLERANCE_PERCENT)
    }
}

/// A and B at one point.
#[derive(Debug)]
pub struct Measured {
    pub period_ms: u64,
    /// What each asks for in a period, bytes.
    pub demand_bytes: u64,
    pub clients: [Client; 2],
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Outcome {
    pub measured: Vec<Measured>,
    pub failures: Vec<String>,
    /// In ms.
    pub periods: BTreeSet<u64>,
}

/// What is known of a side, the limit or the head-room, in a period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Clients at points.
    pub count: usize,
    /// Furthest from the ideal, percent of the maximum, and of the ideal.
    pub of_maximum: f64,
    pub of_ideal: f64,
}

impl Outcome {
    /// # Errors
    /// A period lacks the points where one client has all, from which the maximum is taken.
    pub fn of(runs: &[Run]) -> Result<Self> {
        let mut outcome = Self::default();
        let periods: BTreeSet<u64> = runs.iter().map(|run| run.point.period_us).collect();
        for period_us in periods {
            let model = model(runs, period_us).with_context(|| format!("period {period_us} µs"))?;
            let mut of_period: Vec<&Run> = runs
                .iter()
                .filter(|run| run.point.period_us == period_us)
                .collect();
            of_period.sort_by_key(|run| (run.point.percents[0], run.point.demand_bytes));
            for run in of_period {
                outcome.add(run, &model);
            }
        }
        outcome.failures.extend(outcome.gaps());
        Ok(outcome)
    }

    fn add(&mut self, run: &Run, model: &Model) {
        let point = &run.point;
        let throughputs = run.measurement.throughput();
        let ideals = model.ideal(point);
        let clients = [0, 1].map(|client| {
            let (throughput, ideal) = (throughputs[client], ideals[client]);
            let difference = throughput - ideal.throughput;
            Client {
                percent: point.percents[client],
                throughput,
                ideal,
                of_maximum: model.deviation_percent(throughput, ideal),
                of_ideal: if ideal.throughput > 0.0 {
                    difference / ideal.throughput * 100.0
                } else {
                    0.0
                },
                rollbacks: run.measurement.rollbacks[client],
            }
        });
        for (name, client) in CLIENTS.into_iter().zip(&clients) {
            if client.is_off() {
                self.failures.push(format!(
                    "{point}: {name}'s throughput is {:+.2} % of the maximum off {} (at most \
                     {TOLERANCE_PERCENT} % are right)",
                    client.of_maximum,
                    if client.limited_by_processor() {
                        "its share"
                    } else {
                        "what it asks for"
                    }
                ));
            }
        }
        if run.measurement.control.misses > 0 {
            let misses = run.measurement.control.misses;
            self.failures
                .push(format!("{point}: HIGH missed {misses} deadlines"));
        }
        self.failures.extend(run.ciphertext_faults.iter().cloned());
        self.periods.insert(point.period_us / 1000);
        self.measured.push(Measured {
            period_ms: point.period_us / 1000,
            demand_bytes: point.demand_bytes,
            clients,
        });
    }

    /// The clients that share in a period, and that the processor limits, or that get what they ask
    /// for.
    pub fn side(&self, period_ms: u64, by_processor: bool) -> Side {
        let none = Side {
            count: 0,
            of_maximum: 0.0,
            of_ideal: 0.0,
        };
        self.measured
            .iter()
            .filter(|measured| measured.period_ms == period_ms)
            .flat_map(|measured| &measured.clients)
            .filter(|client| client.shares() && client.limited_by_processor() == by_processor)
            .fold(none, |side, client| Side {
                count: side.count + 1,
                of_maximum: side.of_maximum.max(client.of_maximum.abs()),
                of_ideal: side.of_ideal.max(client.of_ideal.abs()),
            })
    }

    /// The largest distance from the ideal of a side in all periods, percent of the maximum.
    pub fn worst(&self, by_processor: bool) -> f64 {
        let sides = self
            .periods
            .iter()
            .map(|&period| self.side(period, by_processor));
        sides.map(|side| side.of_maximum).fold(0.0, f64::max)
    }

    /// Periods of which nothing is shown, a line each.
    fn gaps(&self) -> Vec<String> {
        let sides = [
            (true, "the processor is the limit"),
            (false, "there is head-room"),
        ];
        let mut gaps = Vec::new();
        for Period { ms, .. } in PERIODS {
            for (by_processor, what) in sides {
                if self.side(ms, by_processor).count == 0 {
                    gaps.push(format!(
                        "period {ms} ms: no client that shares is measured where {what}, so nothing is \
                         shown of it"
                    ));
                }
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::sweep::CONTROL_PERIOD_US;

    #[test]
    fn every_sweep_has_all_periods_from_none_to_all() {
        for size in [Size::Smoke, Size::Quick, Size::Full] {
            let points = points(size);
            for period_us in [10_000, 100_000, 1_000_000] {
                for percents in [[0, 100], [25, 72], [100, 0]] {
                    let at = |point: &&Point| {
                        (point.period_us, point.percents) == (period_us, percents)
                            && point.demand_bytes == GREEDY * period_us / 1000
                    };
                    let count = usize::from(size != Size::Full || percents[0] % 10 == 0);
                    assert_eq!(points.iter().filter(at).count(), count, "{size:?}");
                }
            }
            for point in points {
                assert_eq!(point.window_us % CONTROL_PERIOD_US, 0);
                assert!(point.releases() <= demo_protocol::board::MAX_RELEASES as u64);
                assert_eq!(point.demand_bytes % demo_protocol::cipher::BATCH_BYTES, 0);
            }
        }
    }

    /// A point where A has `percent` of the period and B the rest, and `limit` holds for both.
    fn measured(period_ms: u64, percent: u64, limit: Limit) -> Measured {
        let client = |percent| Client {
            percent,
            throughput: 1.0,
            ideal: Ideal {
                throughput: 1.0,
                limit,
            },
            of_maximum: 0.5,
            of_ideal: 1.0,
            rollbacks: 0,
        };
        Measured {
            period_ms,
            demand_bytes: 1,
            clients: [client(percent), client(100 - percent)],
        }
    }

    #[test]
    fn a_period_without_a_point_on_either_side_fails() {
        let mut outcome = Outcome::default();
        for ms in [10, 100, 1000] {
            outcome.measured.push(measured(ms, 50, Limit::Processor));
            outcome.measured.push(measured(ms, 50, Limit::Demand));
        }
        assert_eq!(outcome.gaps(), Vec::<String>::new());
        assert_eq!(outcome.side(10, true).count, 2);
        for ms in [10, 100, 1000] {
            for limit in [Limit::Processor, Limit::Demand] {
                let index = outcome
                    .measured
                    .iter()
                    .position(|at| at.period_ms == ms && at.clients[0].ideal.limit == limit);
                // Who has all does not count.
                let alone = measured(ms, 100, limit);
                let place = &mut outcome.measured[index.unwrap()];
                let sharing = std::mem::replace(place, alone);
                let gaps = outcome.gaps();
                assert_eq!(gaps.len(), 1, "{gaps:?}");
                assert!(gaps[0].contains(&format!("period {ms} ms")), "{gaps:?}");
                outcome.measured[index.unwrap()] = sharing;
            }
        }
    }
}
