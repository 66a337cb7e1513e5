//! Charts of curves, as SVG.

use std::ops::Range;

use anyhow::{anyhow, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

pub use plotters::prelude::SeriesLabelPosition;

/// Size of a chart, pixels.
const SIZE: (u32, u32) = (900, 380);
/// Colours that can be distinguished, one for each curve.
pub const COLOURS: [RGBColor; 6] = [
    RGBColor(0x1f, 0x6f, 0xb4),
    RGBColor(0xd9, 0x5f, 0x0e),
    RGBColor(0x2c, 0x8a, 0x3c),
    RGBColor(0x7b, 0x3f, 0x9e),
    RGBColor(0xb8, 0x28, 0x4a),
    RGBColor(0x55, 0x55, 0x55),
];

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Datum {
    pub x: f64,
    pub y: f64,
    /// From the least to the most, where a point stands for several values.
    pub range: Option<(f64, f64)>,
}

impl Datum {
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, range: None }
    }
}

/// How a curve is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// A line with filled points.
    Filled,
    /// A line with hollow points.
    Hollow,
    /// A line alone: a model, not a measurement.
    Line,
}

/// A curve: its name, how it looks, and its points from left to right.
#[derive(Clone, Debug)]
pub struct Curve {
    pub label: String,
    pub colour: RGBColor,
    pub style: Style,
    pub points: Vec<Datum>,
}

/// What stands along the horizontal axis.
#[derive(Clone, Debug)]
pub enum Horizontal {
    /// Numbers, in this range.
    Numbers(Range<f64>),
    /// These labels, at 0, 1, ...; the range is what is shown.
    Labels(Vec<String>, Range<f64>),
}

/// The axes of a chart. The vertical one begins at 0.
#[derive(Clone, Debug)]
pub struct Axes {
    pub x: &'static str,
    pub y: &'static str,
    pub horizontal: Horizontal,
    /// Where the curves do not go.
    pub legend: SeriesLabelPosition,
}

/// Draws curves.
///
/// # Errors
/// They cannot be drawn.
pub fn draw(axes: &Axes, curves: &[Curve]) -> Result<String> {
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
    let (range, labels) = match &axes.horizontal {
        Horizontal::Numbers(range) => (range.clone(), None),
        Horizontal::Labels(labels, range) => (range.clone(), Some(labels)),
    };
    let data = || curves.iter().flat_map(|curve| &curve.points);
    let highest = |datum: &Datum| datum.range.map_or(datum.y, |(_, most)| most.max(datum.y));
    let top = data().map(highest).fold(0.0, f64::max) * 1.12 + 1e-9;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(range, 0f64..top)?;
    let label = |x: &f64| match labels {
        None => format!("{x}"),
        Some(labels) => {
            let index = x.round();
            let is_whole = (x - index).abs() < 1e-6 && index >= 0.0;
            let label = labels.get(index as usize).filter(|_| is_whole);
            label.cloned().unwrap_or_default()
        }
    };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(labels.map_or(11, |labels| labels.len() + 1))
        .x_label_formatter(&label)
        .x_desc(axes.x)
        .y_desc(axes.y)
        .label_style(("sans-serif", 13))
        .draw()?;
    for curve in curves {
        let colour = curve.colour;
        let ranges = curve.points.iter().filter_map(|datum| {
            let (least, most) = datum.range?;
            Some(PathElement::new(
                [(datum.x, least), (datum.x, most)],
                colour.mix(0.6),
            ))
        });
        chart.draw_series(ranges)?;
        let line = LineSeries::new(
            curve.points.iter().map(|datum| (datum.x, datum.y)),
            colour.mix(0.6).stroke_width(2),
        );
        let drawn = chart.draw_series(line)?.label(curve.label.clone());
        let style = match curve.style {
            Style::Filled => colour.filled(),
            Style::Hollow => colour.stroke_width(2),
            Style::Line => {
                drawn.legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.mix(0.6).stroke_width(2))
                });
                continue;
            }
        };
        drawn.legend(move |(x, y)| Circle::new((x + 9, y), 4, style));
        let points = curve.points.iter();
        chart.draw_series(points.map(|datum| Circle::new((datum.x, datum.y), 4, style)))?;
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
