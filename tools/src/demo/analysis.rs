//! The runs beside the ideal line, and what fails.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use demo_protocol::cipher::request_bytes;

use crate::demo::measurement::Measurement;
use crate::demo::model::{Ideal, Limit, Model};
use crate::demo::reference::Reference;
use crate::demo::sweep::{Point, CONTROL_PERIOD_US, PERIODS_US};

/// A throughput may be this far off the ideal line where the processor is the limit, percent of
/// the maximum.
pub const TOLERANCE_PERCENT: f64 = 3.0;

/// The clients' names.
pub const CLIENTS: [&str; 2] = ["A", "B"];

/// One point's run.
#[derive(Debug)]
pub struct Run {
    pub point: Point,
    pub measurement: Measurement,
    /// What is wrong with the ciphertexts.
    pub ciphertext_faults: Vec<String>,
}

impl Run {
    /// Checks the ciphertexts of `measurement` against `reference`.
    pub fn new(point: Point, measurement: Measurement, reference: &Reference) -> Self {
        let mut faults = Vec::new();
        for (client, name) in CLIENTS.into_iter().enumerate() {
            if let Err(fault) = check_client(&point, &measurement, client, reference) {
                faults.push(format!("{point}: client {name}: {fault}"));
            }
        }
        if point.sends_ciphertext {
            let expected = reference.first_copy(1);
            if measurement.ciphertext.as_ref() != Some(&expected) {
                faults.push(format!(
                    "{point}: the ciphertext that A received differs from that of the independent \
                     implementation"
                ));
            }
        }
        Self {
            point,
            measurement,
            ciphertext_faults: faults,
        }
    }

    /// One line for whoever waits.
    pub fn progress(&self) -> String {
        let [a, b] = self.measurement.throughput().map(mib);
        let control = &self.measurement.control;
        format!(
            "{}: A {a:5.2} and B {b:5.2} MiB/s; HIGH missed {} of {} deadlines; ciphertext {}",
            self.point,
            control.misses,
            control.responses_ns.len(),
            if self.ciphertext_faults.is_empty() {
                "right"
            } else {
                "WRONG"
            }
        )
    }
}

/// Checks what one client acknowledges: that it is all that the server finished for it, up to
/// what is under way, and that its digest is right.
fn check_client(
    point: &Point,
    measurement: &Measurement,
    client: usize,
    reference: &Reference,
) -> Result<(), String> {
    let takes_part = point.budgets_us()[client] > 0;
    let Some((bytes, digest)) = measurement.acknowledged[client] else {
        return if takes_part {
            Err("it left no result".to_owned())
        } else {
            Ok(())
        };
    };
    let finished = measurement.total[client];
    // Most that a client has under way: a request.
    let under_way = request_bytes(reference.lap_bytes(), 0, point.demand_bytes);
    if bytes + under_way < finished {
        return Err(format!(
            "it acknowledges {bytes} bytes of the {finished} that the server counts"
        ));
    }
    // A client does not lie, but a broken one could keep the host busy for hours.
    if bytes > finished + under_way {
        return Err(format!(
            "it acknowledges {bytes} bytes, but the server counts only {finished}"
        ));
    }
    if reference.digest(client as u64 + 1, bytes) != digest {
        return Err(format!(
            "its {bytes} bytes of ciphertext differ from those of the independent implementation"
        ));
    }
    Ok(())
}

/// A client at a point.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// Bytes per second.
    pub throughput: f64,
    pub ideal: Ideal,
    /// Percent of the maximum.
    pub deviation: f64,
}

impl Comparison {
    /// Whether it is off the ideal line where it must not be.
    pub fn is_off(&self) -> bool {
        // Not `>`: a throughput that is no number is off too.
        self.ideal.limit == Limit::Processor
            && !matches!(self.deviation.abs(), off if off <= TOLERANCE_PERCENT)
    }
}

/// All runs of the sweep.
#[derive(Debug)]
pub struct Analysis {
    runs: Vec<Run>,
    /// By period, µs.
    models: BTreeMap<u64, Model>,
}

impl Analysis {
    /// # Errors
    /// A period lacks the points where one client has all, from which the maximum is taken.
    pub fn new(runs: Vec<Run>) -> Result<Self> {
        let models = PERIODS_US
            .into_iter()
            .map(|period| Ok((period, model(&runs, period)?)))
            .collect::<Result<_>>()?;
        Ok(Self { runs, models })
    }

    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The runs of one period, by A's budget.
    pub fn runs_of(&self, period_us: u64) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .filter(move |run| run.point.period_us == period_us)
    }

    pub fn model(&self, period_us: u64) -> &Model {
        &self.models[&period_us]
    }

    /// A and B at one point, beside the ideal line.
    pub fn compare(&self, run: &Run) -> [Comparison; 2] {
        let model = self.model(run.point.period_us);
        let throughputs = run.measurement.throughput();
        let ideals = model.ideal(&run.point);
        [0, 1].map(|client| Comparison {
            throughput: throughputs[client],
            ideal: ideals[client],
            deviation: model.deviation_percent(throughputs[client], ideals[client]),
        })
    }

    /// What A received for its first copy of the input.
    pub fn ciphertext(&self) -> Option<&[u8]> {
        let mut sent = self
            .runs
            .iter()
            .filter_map(|run| run.measurement.ciphertext.as_deref());
        sent.next()
    }

    /// What does not hold: a line each.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for run in &self.runs {
            failures.extend(self.deadline_failure(run));
            failures.extend(run.ciphertext_faults.iter().cloned());
            for (name, client) in CLIENTS.into_iter().zip(self.compare(run)) {
                if client.is_off() {
                    failures.push(format!(
                        "{}: {name}'s throughput is {:.2} MiB/s, {:+.2} % of the maximum off the \
                         ideal {:.2} MiB/s (at most {TOLERANCE_PERCENT} % are right)",
                        run.point,
                        mib(client.throughput),
                        client.deviation,
                        mib(client.ideal.throughput),
                    ));
                }
            }
        }
        failures
    }

    fn deadline_failure(&self, run: &Run) -> Option<String> {
        let control = &run.measurement.control;
        let (found, expected) = (control.responses_ns.len() as u64, run.point.releases());
        if control.misses > 0 {
            Some(format!(
                "{}: HIGH missed {} of {found} deadlines; its longest response is {:.3} ms",
                run.point,
                control.misses,
                run.measurement.longest_response_ns() as f64 / 1e6
            ))
        } else if found != expected {
            Some(format!(
                "{}: HIGH completed {found} jobs instead of {expected}",
                run.point
            ))
        } else {
            None
        }
    }

    /// The claims that hold, when all do.
    pub fn summary(&self) -> String {
        let releases: usize = self
            .runs
            .iter()
            .map(|run| run.measurement.control.responses_ns.len())
            .sum();
        let longest = self.longest_response_ns() as f64 / 1e6;
        let worst = self.worst_deviation();
        let bytes: u64 = self
            .runs
            .iter()
            .flat_map(|run| run.measurement.acknowledged)
            .flatten()
            .map(|(bytes, _)| bytes)
            .sum();
        format!(
            "HIGH met all {releases} deadlines; its longest response is {longest:.3} ms.\n\
             All {:.0} MiB of ciphertext are right.\n\
             Where the processor is the limit, no throughput is more than {worst:.2} % of the \
             maximum off the ideal line.",
            mib(bytes as f64)
        )
    }

    /// Of all points, ns.
    pub fn longest_response_ns(&self) -> u64 {
        let longest = self
            .runs
            .iter()
            .map(|run| run.measurement.longest_response_ns());
        longest.max().unwrap_or(0)
    }

    /// How long a rollback keeps the timeout handler busy, µs: the mean of all, and the longest.
    pub fn rollback_us(&self) -> [f64; 2] {
        let measurements = || self.runs.iter().map(|run| &run.measurement);
        let count: u64 = measurements().flat_map(|m| m.rollbacks).sum();
        let all: f64 = measurements().map(|m| m.us(m.handling)).sum();
        let longest = measurements().map(|m| m.us(m.longest_rollback));
        [all / count.max(1) as f64, longest.fold(0.0, f64::max)]
    }

    /// Of all points where the processor is the limit, percent of the maximum.
    pub fn worst_deviation(&self) -> f64 {
        self.runs
            .iter()
            .flat_map(|run| self.compare(run))
            .filter(|client| client.ideal.limit == Limit::Processor)
            .map(|client| client.deviation.abs())
            .fold(0.0, f64::max)
    }
}

/// The ideal line of a period.
pub(crate) fn model(runs: &[Run], period_us: u64) -> Result<Model> {
    let alone = |client: usize| {
        runs.iter()
            .find(|run| run.point.period_us == period_us && run.point.has_all(client))
            .with_context(|| {
                format!(
                    "no run of period {period_us} µs gives all of it to client {}",
                    CLIENTS[client]
                )
            })
    };
    let ends = [alone(0)?, alone(1)?];
    let mean = |values: [f64; 2]| (values[0] + values[1]) / 2.0;
    Ok(Model {
        maximum: mean([0, 1].map(|client| ends[client].measurement.throughput()[client])),
        control_share: mean(ends.map(|run| run.measurement.control_share(CONTROL_PERIOD_US))),
    })
}

/// Bytes as MiB.
pub fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::measurement::Control;
    use crate::demo::sweep;

    const TEXT: &[u8] = b"sand";
    const LAP: u64 = 1 << 20;
    /// Bytes per second of a client that has all.
    const MAXIMUM: u64 = 30 << 20;

    /// Runs in which every client gets exactly its budget's share, and wants all of it.
    fn ideal_runs() -> Vec<Run> {
        let reference = Reference::new(TEXT, LAP);
        let run = |point: Point| {
            let window_ns = point.window_us * 1000;
            let mut measurement = Measurement {
                khz: 1_000_000,
                window: [0, window_ns],
                control: Control {
                    misses: 0,
                    busy: 0,
                    responses_ns: vec![100_000; point.releases() as usize],
                },
                ..Measurement::default()
            };
            for client in 0..2 {
                let percent = point.percents[client];
                if percent == 0 {
                    continue;
                }
                let finished = MAXIMUM * percent / 100 * point.window_us / 1_000_000;
                measurement.finished[client] = finished;
                measurement.total[client] = finished;
                let bytes = finished.min(4096) / 8 * 8;
                measurement.total[client] = bytes;
                let digest = reference.digest(client as u64 + 1, bytes);
                measurement.acknowledged[client] = Some((bytes, digest));
            }
            if point.sends_ciphertext {
                measurement.ciphertext = Some(reference.first_copy(1));
            }
            Run::new(point, measurement, &reference)
        };
        // Demand beyond reach, so that the processor is the limit everywhere.
        let greedy = |point: Point| Point {
            demand_bytes: 1 << 30,
            ..point
        };
        let points = sweep::points(true, 1).into_iter();
        points.map(greedy).map(run).collect()
    }

    fn analysis(runs: Vec<Run>) -> Analysis {
        let models = PERIODS_US
            .into_iter()
            .map(|period| (period, model(&runs, period).unwrap()))
            .collect();
        Analysis { runs, models }
    }

    fn failures(change: impl FnOnce(&mut Vec<Run>)) -> Vec<String> {
        let mut runs = ideal_runs();
        change(&mut runs);
        analysis(runs).failures()
    }

    fn middle(runs: &mut [Run]) -> &mut Run {
        let found = runs
            .iter_mut()
            .find(|run| run.point.percents[0] == 50 && run.point.period_us == 10_000);
        found.unwrap()
    }

    #[test]
    fn ideal_runs_fail_nothing() {
        assert_eq!(failures(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn a_missed_deadline_fails() {
        let failures = failures(|runs| middle(runs).measurement.control.misses = 1);
        assert!(failures[0].contains("missed 1 of"), "{failures:?}");
    }

    #[test]
    fn a_control_task_that_does_not_run_fails() {
        let failures = failures(|runs| {
            middle(runs).measurement.control.responses_ns.pop();
        });
        assert!(failures[0].contains("instead of"), "{failures:?}");
    }

    #[test]
    fn a_throughput_beyond_the_tolerance_fails_and_one_within_does_not() {
        for (percent, count) in [(103, 0), (107, 1), (93, 1)] {
            let failures = failures(|runs| {
                // Half of the maximum: 7 % of it are 3.5 % of the maximum.
                let finished = &mut middle(runs).measurement.finished[0];
                *finished = *finished * percent / 100;
            });
            assert_eq!(failures.len(), count, "{failures:?}");
        }
    }

    #[test]
    fn wrong_ciphertexts_fail() {
        let reference = Reference::new(TEXT, LAP);
        let faults = |change: &dyn Fn(&mut Measurement)| {
            let mut runs = ideal_runs();
            let run = middle(&mut runs);
            let mut measurement = run.measurement.clone();
            change(&mut measurement);
            Run::new(run.point, measurement, &reference).ciphertext_faults
        };
        assert!(faults(&|_| {}).is_empty());
        let digest = faults(&|m| m.acknowledged[1] = Some((8, 1)));
        assert!(digest[0].contains("client B"), "{digest:?}");
        let absent = faults(&|m| m.acknowledged[0] = None);
        assert!(absent[0].contains("no result"), "{absent:?}");
        let sent = faults(&|m| m.ciphertext.as_mut().unwrap()[3] ^= 1);
        assert!(sent[0].contains("A received differs"), "{sent:?}");
        let lost = faults(&|m| m.total[0] += 2 * LAP);
        assert!(lost[0].contains("acknowledges"), "{lost:?}");
    }
}
