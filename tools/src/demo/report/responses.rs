//! Response times of the control task: their distribution, against the deadline.

use anyhow::{anyhow, Result};
use plotters::prelude::*;

use crate::demo::analysis::Analysis;
use crate::demo::report::{CHART_HEIGHT, CHART_WIDTH};
use crate::demo::sweep::{CONTROL_DEADLINE_US, PERIODS_US};

/// Width of a bar, µs.
const BIN_US: u64 = 10;

const COLOUR: RGBColor = RGBColor(0x2e, 0x7d, 0x32);
const DEADLINE_COLOUR: RGBColor = RGBColor(0xb7, 0x1c, 0x1c);

/// How the response times of one period's runs are distributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    sorted_ns: Vec<u64>,
}

impl Distribution {
    pub fn of_period(analysis: &Analysis, period_us: u64) -> Self {
        Self::new(
            analysis
                .runs_of(period_us)
                .flat_map(|run| run.measurement.control.responses_ns.iter().copied())
                .collect(),
        )
    }

    fn of_all(analysis: &Analysis) -> Self {
        let periods = PERIODS_US.into_iter();
        Self::new(
            periods
                .flat_map(|period_us| Self::of_period(analysis, period_us).sorted_ns)
                .collect(),
        )
    }

    fn new(mut responses_ns: Vec<u64>) -> Self {
        responses_ns.sort_unstable();
        Self {
            sorted_ns: responses_ns,
        }
    }

    pub fn count(&self) -> usize {
        self.sorted_ns.len()
    }

    /// The smallest value that `permille` of 1000 do not exceed, ns; 0 of none.
    pub fn quantile_ns(&self, permille: usize) -> u64 {
        let rank = (self.count() * permille).div_ceil(1000).max(1);
        self.sorted_ns.get(rank - 1).copied().unwrap_or(0)
    }

    /// Number of responses in each bin of [`BIN_US`], up to the longest one's.
    fn bins(&self) -> Vec<u32> {
        let last = self.quantile_ns(1000) / (BIN_US * 1000);
        let mut bins = vec![0; last as usize + 1];
        for response in &self.sorted_ns {
            bins[(response / (BIN_US * 1000)) as usize] += 1;
        }
        bins
    }
}

/// The histogram of all responses, as SVG.
pub fn chart(analysis: &Analysis) -> Result<String> {
    let mut svg = String::new();
    {
        let area =
            SVGBackend::with_string(&mut svg, (CHART_WIDTH, CHART_HEIGHT)).into_drawing_area();
        draw(&area, &Distribution::of_all(analysis)).map_err(|error| anyhow!("{error}"))?;
    }
    Ok(svg)
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    distribution: &Distribution,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let bins = distribution.bins();
    let right = (bins.len() as u64 * BIN_US).max(CONTROL_DEADLINE_US) as f64 * 1.05;
    let top = f64::from(bins.iter().copied().max().unwrap_or(0)) * 1.15 + 1.0;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .build_cartesian_2d(0f64..right, 0f64..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_desc("response time in µs, from release to completion")
        .y_desc("releases")
        .label_style(("sans-serif", 13))
        .draw()?;
    let bars = bins.iter().enumerate().filter(|(_, &count)| count > 0);
    let bars = bars.map(|(bin, &count)| {
        let left = (bin as u64 * BIN_US) as f64;
        let corners = [(left, 0.0), (left + BIN_US as f64, f64::from(count))];
        Rectangle::new(corners, COLOUR.filled())
    });
    chart.draw_series(bars)?;
    let deadline = CONTROL_DEADLINE_US as f64;
    chart.draw_series(LineSeries::new(
        [(deadline, 0.0), (deadline, top)],
        DEADLINE_COLOUR.stroke_width(2),
    ))?;
    let label = Text::new(
        "deadline",
        (deadline - right * 0.075, top * 0.93),
        ("sans-serif", 14).into_font().color(&DEADLINE_COLOUR),
    );
    chart.draw_series([label])?;
    area.present()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occur() {
        let distribution = Distribution::new((1..=100).rev().collect());
        assert_eq!(distribution.quantile_ns(0), 1);
        assert_eq!(distribution.quantile_ns(500), 50);
        assert_eq!(distribution.quantile_ns(999), 100);
        assert_eq!(distribution.quantile_ns(1000), 100);
        assert_eq!(Distribution::new(Vec::new()).quantile_ns(500), 0);
    }

    #[test]
    fn every_response_is_in_a_bin() {
        let distribution = Distribution::new(vec![0, 9_999, 10_000, 35_000]);
        assert_eq!(distribution.bins(), [2, 1, 0, 1]);
    }
}
