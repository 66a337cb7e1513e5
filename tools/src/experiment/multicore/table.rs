//! The table of throughputs.

use std::fmt::Write;

use super::points::{Point, Points, Source};
use super::window::Scenario;
use crate::values;

/// All points of all sources.
pub fn render(points: &Points) -> String {
    let mut text = String::new();
    for source in points.sources() {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n{}: work per million {}\n\n{:<16}{:>6}{:>14}{:>9}  bounded by\n",
            source.name(),
            unit(source),
            "scenario",
            "cores",
            "throughput",
            "speed-up",
        );
        for scenario in scenarios(points, source) {
            for point in points.of(source, scenario) {
                text += &row(points, point);
            }
        }
    }
    text
}

/// What a source measures time in.
pub const fn unit(source: Source) -> &'static str {
    match source {
        Source::Qemu => "instructions of the busiest",
        Source::Hosted => "units of parallel virtual time",
    }
}

/// The scenarios of a source, in the order of the report.
pub fn scenarios(points: &Points, source: Source) -> Vec<Scenario> {
    let pairs = points.spins(source).into_iter();
    let pairs = pairs.map(|spin| Scenario::Pairs { spin });
    [Scenario::Single, Scenario::Multiple]
        .into_iter()
        .chain(pairs)
        .collect()
}

/// How a scenario is called.
pub fn title(scenario: Scenario) -> String {
    match scenario {
        Scenario::Pairs { spin } => format!("pairs, N={spin}"),
        other => other.name().to_owned(),
    }
}

fn row(points: &Points, point: &Point) -> String {
    format!(
        "{:<16}{:>6}{:>14.1}{:>9.2}  {}\n",
        title(point.scenario),
        point.cores,
        point.throughput(),
        points.speedup(point).unwrap_or(f64::NAN),
        point.limit.map_or("", |limit| limit.name()),
    )
}

/// A line for every point, as comma-separated values.
pub fn csv(points: &Points) -> String {
    let header = [
        "source",
        "scenario",
        "spin",
        "cores",
        "work",
        "time",
        "limit",
        "server_instructions",
        "core_user_instructions",
        "core_kernel_instructions",
        "core_waiting_instructions",
    ];
    let sources = points.sources();
    let all = sources.flat_map(|source| points.all(source));
    let lines = all.map(|point| {
        let counts = point.counts.clone().unwrap_or_default();
        let list = |numbers: Vec<u64>| {
            let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
            words.join(" ")
        };
        (
            point.source.name(),
            point.scenario.name(),
            point.scenario.spin(),
            point.cores,
            point.work,
            point.time,
            point.limit.map_or("", |limit| limit.name()),
            list(counts.servers.clone()),
            list(counts.cores.iter().map(|core| core.user).collect()),
            list(counts.cores.iter().map(|core| core.kernel).collect()),
            list(counts.cores.iter().map(|core| core.waiting).collect()),
        )
    });
    values::text(header, lines)
}
