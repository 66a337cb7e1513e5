//! The two figures, as SVG.

use anyhow::{anyhow, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::points::{Points, Source};
use super::window::Scenario;
use crate::cores::MOST_CORES;

/// Size of a chart, pixels.
const SIZE: (u32, u32) = (900, 380);
/// One for each curve.
const COLOURS: [RGBColor; 4] = [
    RGBColor(0x1f, 0x6f, 0xb4),
    RGBColor(0xd9, 0x5f, 0x0e),
    RGBColor(0x2c, 0x8a, 0x3c),
    RGBColor(0x7b, 0x3f, 0x9e),
];

/// A curve: its name, its colour, whether it is drawn with hollow points, and its points.
struct Curve {
    label: String,
    colour: RGBColor,
    hollow: bool,
    points: Vec<(f64, f64)>,
}

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
                hollow: source == Source::Hosted,
                points: series
                    .into_iter()
                    .filter_map(|point| Some((f64::from(point.cores), points.speedup(point)?)))
                    .collect(),
            });
        }
    }
    let axes = Axes {
        x: "cores, each with a client",
        y: "throughput, in that of one core",
        labels: (0..=MOST_CORES).map(|cores| cores.to_string()).collect(),
        legend: SeriesLabelPosition::UpperLeft,
        left: 0.7,
        right: f64::from(MOST_CORES) + 0.3,
    };
    draw(&axes, &curves)
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
            Some((index as f64, point.throughput()))
        };
        curves.push(Curve {
            label: format!("{cores} core{}", if cores == 1 { "" } else { "s" }),
            colour,
            hollow: source == Source::Hosted,
            points: spins.iter().enumerate().filter_map(throughput).collect(),
        });
    }
    let axes = Axes {
        x: "N: at most so many instructions between two calls",
        y: "calls per million",
        labels: spins.iter().map(u64::to_string).collect(),
        legend: SeriesLabelPosition::UpperRight,
        left: -0.2,
        right: spins.len().saturating_sub(1) as f64 + 0.2,
    };
    draw(&axes, &curves)
}

/// The axes of a chart; the labels are those of 0, 1, ... on the horizontal one.
struct Axes {
    x: &'static str,
    y: &'static str,
    labels: Vec<String>,
    /// Where the curves do not go.
    legend: SeriesLabelPosition,
    left: f64,
    right: f64,
}

fn draw(axes: &Axes, curves: &[Curve]) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        draw_on(&area, axes, curves).map_err(|error| anyhow!("{error}"))?;
    }
    Ok(svg)
}

fn draw_on<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    axes: &Axes,
    curves: &[Curve],
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let values = curves.iter().flat_map(|curve| &curve.points);
    let top = values.map(|point| point.1).fold(0.0, f64::max) * 1.12 + 1e-9;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(axes.left..axes.right, 0f64..top)?;
    let label = |x: &f64| {
        let index = x.round();
        let is_whole = (x - index).abs() < 1e-6 && index >= 0.0;
        let label = axes.labels.get(index as usize).filter(|_| is_whole);
        label.cloned().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(axes.labels.len() + 1)
        .x_label_formatter(&label)
        .x_desc(axes.x)
        .y_desc(axes.y)
        .label_style(("sans-serif", 13))
        .draw()?;
    for curve in curves {
        let colour = curve.colour;
        let style = if curve.hollow {
            colour.stroke_width(2)
        } else {
            colour.filled()
        };
        let line = LineSeries::new(
            curve.points.iter().copied(),
            colour.mix(0.6).stroke_width(2),
        );
        chart
            .draw_series(line)?
            .label(curve.label.clone())
            .legend(move |(x, y)| Circle::new((x + 9, y), 4, style));
        let points = curve.points.iter();
        chart.draw_series(points.map(|&point| Circle::new(point, 4, style)))?;
    }
    chart
        .configure_series_labels()
        .position(axes.legend.clone())
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()
}
