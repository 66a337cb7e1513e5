//! Throughputs, from several sources, and the verdict on them.

use super::window::{Counts, Limit, Scenario};

/// Where a time comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Instructions of the busiest in QEMU ([`Counts::time`]).
    Qemu,
    /// The parallel virtual time of the hosted kernel.
    Hosted,
}

impl Source {
    pub const ALL: [Self; 2] = [Self::Qemu, Self::Hosted];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "QEMU",
            Self::Hosted => "hosted",
        }
    }
}

/// The work of a scenario on a number of cores, and the time that it took.
#[derive(Clone, Debug)]
pub struct Point {
    pub source: Source,
    pub scenario: Scenario,
    pub cores: u32,
    /// Bytes encrypted, or calls.
    pub work: u64,
    /// In instructions of one core, or in units of the hosted machine's virtual time. Not 0.
    pub time: u64,
    /// What bounds the time, where that is known.
    pub limit: Option<Limit>,
    /// What was counted, where it was.
    pub counts: Option<Counts>,
}

impl Point {
    /// Work per million units of time.
    pub fn throughput(&self) -> f64 {
        self.work as f64 * 1e6 / self.time as f64
    }
}

/// *multiple* on 4 cores reaches at least so many times its throughput on one.
pub const LEAST_SPEEDUP: f64 = 3.6;
/// *single* is flat: its throughput on any number of cores is that on one, up to this part.
pub const FLAT: f64 = 0.1;

/// All points.
#[derive(Default)]
pub struct Points {
    points: Vec<Point>,
}

impl Points {
    pub fn add(&mut self, points: Vec<Point>) {
        self.points.extend(points);
    }

    /// Of a source and a scenario, by rising number of cores.
    pub fn of(&self, source: Source, scenario: Scenario) -> Vec<&Point> {
        let matches = |point: &&Point| (point.source, point.scenario) == (source, scenario);
        let mut points: Vec<&Point> = self.points.iter().filter(matches).collect();
        points.sort_by_key(|point| point.cores);
        points
    }

    /// All of a source, in the order in which they were added.
    pub fn all(&self, source: Source) -> impl Iterator<Item = &Point> {
        self.points
            .iter()
            .filter(move |point| point.source == source)
    }

    /// The sources that there are points of.
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        let present = |source: &Source| self.all(*source).next().is_some();
        Source::ALL.into_iter().filter(present)
    }

    /// The bounds of instructions between calls, rising.
    pub fn spins(&self, source: Source) -> Vec<u64> {
        let spin = |point: &Point| match point.scenario {
            Scenario::Pairs { spin } => Some(spin),
            _ => None,
        };
        let mut spins: Vec<u64> = self.all(source).filter_map(spin).collect();
        spins.sort_unstable();
        spins.dedup();
        spins
    }

    /// Throughput of a point relative to the same on one core.
    pub fn speedup(&self, point: &Point) -> Option<f64> {
        let series = self.of(point.source, point.scenario);
        let alone = series.into_iter().find(|point| point.cores == 1)?;
        Some(point.throughput() / alone.throughput())
    }

    /// What is not as it must be, a line each: of each source that has these scenarios.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for source in self.sources() {
            let name = source.name();
            for point in self.of(source, Scenario::Multiple) {
                let speedup = self.speedup(point).unwrap_or(0.0);
                let least = LEAST_SPEEDUP * f64::from(point.cores) / 4.0;
                if point.cores > 1 && speedup < least {
                    failures.push(format!(
                        "{name}: `multiple` on {} cores has {speedup:.2} times the throughput of \
                         one, less than {least:.2}",
                        point.cores
                    ));
                }
            }
            for point in self.of(source, Scenario::Single) {
                let speedup = self.speedup(point).unwrap_or(0.0);
                if (speedup - 1.0).abs() > FLAT {
                    failures.push(format!(
                        "{name}: `single` on {} cores has {speedup:.2} times the throughput of \
                         one: it is not flat",
                        point.cores
                    ));
                }
            }
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(scenario: Scenario, times: [u64; 2]) -> Points {
        let mut points = Points::default();
        for (cores, time) in [1, 4].into_iter().zip(times) {
            points.add(vec![Point {
                source: Source::Hosted,
                scenario,
                cores,
                work: u64::from(cores) * 100,
                time,
                limit: None,
                counts: None,
            }]);
        }
        points
    }

    #[test]
    fn multiple_must_scale_and_single_must_not() {
        assert_eq!(
            points(Scenario::Multiple, [100, 105]).failures().len(),
            0,
            "3.8 times"
        );
        assert_eq!(
            points(Scenario::Multiple, [100, 120]).failures().len(),
            1,
            "3.3 times"
        );
        assert_eq!(points(Scenario::Single, [100, 401]).failures().len(), 0);
        assert_eq!(points(Scenario::Single, [100, 300]).failures().len(), 1);
        assert_eq!(points(Scenario::Single, [100, 500]).failures().len(), 1);
    }

    #[test]
    fn throughput_is_work_per_million() {
        let points = points(Scenario::Pairs { spin: 7 }, [1_000, 2_000]);
        assert_eq!(points.spins(Source::Hosted), [7]);
        let all: Vec<f64> = points
            .all(Source::Hosted)
            .map(|point| point.throughput())
            .collect();
        assert_eq!(all, [100_000.0, 200_000.0]);
    }
}
