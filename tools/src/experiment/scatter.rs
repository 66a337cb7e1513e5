//! Scatter plots over time with a logarithmic vertical axis, as SVG.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{anyhow, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::chart::COLOURS;

/// Size of a plot, pixels.
const SIZE: (u32, u32) = (900, 300);
/// Points that would be drawn over each other are drawn once: columns and rows of the grid on which they are compared.
const GRID: (f64, f64) = (800.0, 230.0);
const EXCESS: RGBColor = RGBColor(0xb8, 0x28, 0x4a);

/// A stretch of the horizontal axis with a name of its own.
#[derive(Clone, Debug)]
pub struct Phase {
    pub name: String,
    pub range: Range<f64>,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Scatter {
    pub x: &'static str,
    pub y: &'static str,
    /// In order, one beginning where the last one ends.
    pub phases: Vec<Phase>,
    /// What is shown; above 0.
    pub range: Range<f64>,
    /// A line across the plot, and what it is: what is above it is drawn in another colour.
    pub bound: f64,
    pub bound_name: String,
    /// Those outside of the range are drawn at its ends.
    pub points: Vec<(f64, f64)>,
}

impl Scatter {
    /// Draws it.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn draw(&self) -> Result<String> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            self.draw_on(&area).map_err(|error| anyhow!("{error}"))?;
        }
        Ok(svg)
    }

    fn width(&self) -> Range<f64> {
        let ends = self.phases.first().zip(self.phases.last());
        ends.map_or(0.0..1.0, |(first, last)| first.range.start..last.range.end)
    }

    fn draw_on<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let width = self.width();
        let Range { start, end } = self.range;
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(24)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(width.clone(), (start..end).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(9)
            .y_label_formatter(&|y| format!("{y}"))
            .x_desc(self.x)
            .y_desc(self.y)
            .label_style(("sans-serif", 13))
            .draw()?;
        let font = ("sans-serif", 12).into_font().color(&BLACK.mix(0.65));
        for phase in &self.phases {
            let from = phase.range.start;
            let edge = [(from, start), (from, end)];
            chart.draw_series([PathElement::new(edge, BLACK.mix(0.25))])?;
            let place = (from + (width.end - width.start) * 0.006, end * 0.93);
            chart.draw_series([Text::new(phase.name.clone(), place, font.clone())])?;
        }
        for (is_above, colour) in [(false, COLOURS[0]), (true, EXCESS)] {
            let points = self.distinct(is_above).into_iter();
            chart.draw_series(points.map(|point| Circle::new(point, 1, colour.filled())))?;
        }
        let line = [(width.start, self.bound), (width.end, self.bound)];
        chart.draw_series([PathElement::new(line, BLACK.stroke_width(1))])?;
        let place = (
            width.start + (width.end - width.start) * 0.006,
            self.bound * 1.25,
        );
        let font = ("sans-serif", 12).into_font();
        chart.draw_series([Text::new(self.bound_name.clone(), place, font)])?;
        area.present()
    }

    /// The points above the bound, or the others, without those that would not be seen.
    fn distinct(&self, is_above: bool) -> Vec<(f64, f64)> {
        let width = self.width();
        let Range { start, end } = self.range;
        let mut seen = BTreeSet::new();
        let points = self
            .points
            .iter()
            .filter(|(_, y)| (*y > self.bound) == is_above);
        let points = points.map(|&(x, y)| (x, y.clamp(start, end)));
        let is_new = |&(x, y): &(f64, f64)| {
            let column = (x - width.start) / (width.end - width.start) * GRID.0;
            let row = (y / start).ln() / (end / start).ln() * GRID.1;
            seen.insert((column.round() as i64, row.round() as i64))
        };
        points.filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scatter(points: Vec<(f64, f64)>) -> Scatter {
        Scatter {
            x: "time",
            y: "delay",
            phases: vec![
                Phase {
                    name: "quiet".to_owned(),
                    range: 0.0..10.0,
                },
                Phase {
                    name: "storm".to_owned(),
                    range: 10.0..20.0,
                },
            ],
            range: 1.0..1_000.0,
            bound: 30.0,
            bound_name: "bound: 30 ms".to_owned(),
            points,
        }
    }

    #[test]
    fn a_plot_has_its_phases_its_bound_and_every_point_once() {
        let points = vec![(1.0, 2.0), (1.0, 2.0), (5.0, 31.0), (15.0, 5_000.0)];
        let svg = scatter(points).draw().unwrap();
        for text in ["quiet", "storm", "bound: 30 ms", "time", "delay"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("#B8284A").count(), 2);
    }

    #[test]
    fn a_plot_without_points_is_drawn() {
        assert!(scatter(Vec::new()).draw().is_ok());
    }
}
