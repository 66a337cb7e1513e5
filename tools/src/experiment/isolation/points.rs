//! What is measured, and what is claimed of it.
//!
//! *Proportional* means: a client's throughput is its budget's share of what a client gets that
//! has all of the period, as long as it does not ask for less. Nothing is taken off for
//! rollbacks: that half of a batch is lost at each, and that the server's next note comes a batch
//! later, is part of what a client has to pay.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use demo_protocol::cipher::DEMAND_BYTES;

use super::super::Size;
use crate::demo::analysis::{model, Run};
use crate::demo::model::{Ideal, Limit, Model};
use crate::demo::sweep::Point;

/// A throughput may be this far off, in percent of the maximum.
pub const TOLERANCE_PERCENT: f64 = 2.0;

/// Periods of the clients' scheduling contexts, ms, and how many of each are measured.
const PERIODS: [(u64, u64, u64); 3] = [
    // The longest machines first.
    (1000, 2, 4),
    (100, 4, 10),
    (10, 30, 50),
];

/// The points of a sweep.
pub fn points(size: Size) -> Vec<Point> {
    let step = match size {
        Size::Smoke => 50,
        Size::Quick => 25,
        Size::Full => 10,
    };
    let point = |period_ms: u64, periods: u64, percent_a: u64| Point {
        period_us: period_ms * 1000,
        percent_a,
        window_us: period_ms * 1000 * periods,
        sends_ciphertext: false,
        shows_timeline: false,
    };
    PERIODS
        .into_iter()
        .flat_map(|(period_ms, quick, full)| {
            let periods = if size == Size::Full { full } else { quick };
            (0..=100)
                .step_by(step)
                .map(move |percent| point(period_ms, periods, percent))
        })
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
    /// From the ideal, percent of the ideal; 0 for who has no budget.
    pub of_ideal: f64,
    pub rollbacks: u64,
}

impl Client {
    pub const fn limited_by_processor(&self) -> bool {
        matches!(self.ideal.limit, Limit::Processor)
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
    pub clients: [Client; 2],
}

/// All that was measured.
#[derive(Debug)]
pub struct Outcome {
    pub measured: Vec<Measured>,
    pub failures: Vec<String>,
    /// Throughput of a client that has all, bytes per second, by period, ms.
    pub maxima: Vec<(u64, f64)>,
}

impl Outcome {
    /// # Errors
    /// A period lacks the points where one client has all, from which the maximum is taken.
    pub fn of(runs: &[Run]) -> Result<Self> {
        let periods: BTreeSet<u64> = runs.iter().map(|run| run.point.period_us).collect();
        let mut outcome = Self {
            measured: Vec::new(),
            failures: Vec::new(),
            maxima: Vec::new(),
        };
        for period_us in periods {
            let model = model(runs, period_us, DEMAND_BYTES)
                .with_context(|| format!("period {period_us} µs"))?;
            outcome.maxima.push((period_us / 1000, model.maximum));
            let mut of_period: Vec<&Run> = runs
                .iter()
                .filter(|run| run.point.period_us == period_us)
                .collect();
            of_period.sort_by_key(|run| run.point.percent_a);
            for run in of_period {
                outcome.add(run, &model);
            }
        }
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
                percent: point.percents()[client],
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
        for (name, client) in crate::demo::analysis::CLIENTS.into_iter().zip(&clients) {
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
        self.measured.push(Measured {
            period_ms: point.period_us / 1000,
            clients,
        });
    }

    /// The largest distance, in percent, among clients that the processor limits, or that get what
    /// they ask for.
    pub fn worst(&self, by_processor: bool, distance: fn(&Client) -> f64) -> f64 {
        self.measured
            .iter()
            .flat_map(|measured| &measured.clients)
            .filter(|client| client.percent > 0)
            .filter(|client| client.limited_by_processor() == by_processor)
            .map(|client| distance(client).abs())
            .fold(0.0, f64::max)
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
                for percent in [0, 50, 100] {
                    let at =
                        |point: &&Point| (point.period_us, point.percent_a) == (period_us, percent);
                    assert_eq!(points.iter().filter(at).count(), 1);
                }
            }
            for point in points {
                assert_eq!(point.window_us % CONTROL_PERIOD_US, 0);
                assert!(point.releases() <= demo_protocol::board::MAX_RELEASES as u64);
            }
        }
    }
}
