//! The two figures, as SVG.

use anyhow::Result;

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::points::{Points, Source};
use super::window::Scenario;
use crate::cores::MOST_CORES;

/// Figure 8.10: throughput of *single* and *multiple*, relative to that on one core, from every
/// source.
///
/// # Errors
/// It cannot be drawn.
pub fn servers(points: &Points) -> Result<String> {
    let mut curves = Vec::new();
    for source in points.sources() {
        for (scenario, colour) in [Scenario::Single, Scenario::Multiple]
            .into_iter()
            .zip(COLOURS)
        {
            let series = points.of(source, scenario);
            curves.push(Curve {
                label: format!("{}, {}", scenario.name(), source.name()),
                colour,
                style: style(source),
                points: series
                    .into_iter()
                    .filter_map(|point| {
                        Some(Datum::new(f64::from(point.cores), points.speedup(point)?))
                    })
                    .collect(),
            });
        }
    }
    let axes = Axes {
        x: "cores, each with a client",
        y: "throughput, in that of one core",
        horizontal: Horizontal::Labels(
            (0..=MOST_CORES).map(|cores| cores.to_string()).collect(),
            0.7..f64::from(MOST_CORES) + 0.3,
        ),
        legend: SeriesLabelPosition::UpperLeft,
    };
    chart::draw(&axes, &curves)
}

/// Figure 8.9: calls per million of a source's units of time, a curve for each number of cores.
///
/// # Errors
/// It cannot be drawn.
pub fn pairs(points: &Points, source: Source) -> Result<String> {
    let spins = points.spins(source);
    let mut curves = Vec::new();
    for (cores, colour) in (1..=MOST_CORES).zip(COLOURS) {
        let throughput = |(index, &spin): (usize, &u64)| {
            let series = points.of(source, Scenario::Pairs { spin });
            let point = series.into_iter().find(|point| point.cores == cores)?;
            Some(Datum::new(index as f64, point.throughput()))
        };
        curves.push(Curve {
            label: format!("{cores} core{}", if cores == 1 { "" } else { "s" }),
            colour,
            style: style(source),
            points: spins.iter().enumerate().filter_map(throughput).collect(),
        });
    }
    let axes = Axes {
        x: "N: at most so many instructions between two calls",
        y: "calls per million",
        horizontal: Horizontal::Labels(
            spins.iter().map(u64::to_string).collect(),
            -0.2..spins.len().saturating_sub(1) as f64 + 0.2,
        ),
        legend: SeriesLabelPosition::UpperRight,
    };
    chart::draw(&axes, &curves)
}

/// How a source's points are drawn.
fn style(source: Source) -> Style {
    match source {
        Source::Qemu => Style::Filled,
        Source::Hosted => Style::Hollow,
    }
}
