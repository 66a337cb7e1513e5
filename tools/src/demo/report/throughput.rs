//! Throughput of A and B against their budgets, beside the ideal line (thesis, Figure 8.6).

use anyhow::{anyhow, Result};
use plotters::prelude::*;

use crate::demo::analysis::{mib, Analysis, CLIENTS};
use crate::demo::report::{CHART_HEIGHT, CHART_WIDTH};
use crate::demo::sweep::DEMAND_BYTES;

/// Colours of A and B, here and in the timeline.
pub const COLOURS: [RGBColor; 2] = [RGBColor(0x1f, 0x6f, 0xb4), RGBColor(0xd9, 0x5f, 0x0e)];

/// Radii of A's and B's points, pixels: where they meet, both are seen.
const RADII: [i32; 2] = [6, 3];

/// Points of the ideal line per percent of the period.
const RESOLUTION: u32 = 5;

/// The chart of one period, as SVG.
pub fn chart(analysis: &Analysis, period_us: u64) -> Result<String> {
    let mut svg = String::new();
    {
        let area =
            SVGBackend::with_string(&mut svg, (CHART_WIDTH, CHART_HEIGHT)).into_drawing_area();
        draw(&area, analysis, period_us).map_err(|error| anyhow!("{error}"))?;
    }
    Ok(svg)
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    analysis: &Analysis,
    period_us: u64,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let model = analysis.model(period_us);
    let top = mib(model.maximum) * 1.12;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .build_cartesian_2d(0f64..100f64, 0f64..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(11)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_desc("A's budget in % of the period (B has the rest)")
        .y_desc("MiB/s")
        .label_style(("sans-serif", 13))
        .draw()?;
    for (client, colour) in COLOURS.into_iter().enumerate() {
        let line = (0..=100 * RESOLUTION).map(|step| {
            let percent = f64::from(step) / f64::from(RESOLUTION);
            let budgets = [percent / 100.0, 1.0 - percent / 100.0];
            let ideal = model.ideal_of(budgets, period_us, DEMAND_BYTES)[client];
            (percent, mib(ideal.throughput))
        });
        chart
            .draw_series(LineSeries::new(line, colour.mix(0.55).stroke_width(2)))?
            .label(format!("{} ideal", CLIENTS[client]))
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 18, y)], colour.mix(0.55).stroke_width(2))
            });
        let points = analysis.runs_of(period_us).map(|run| {
            let throughput = analysis.compare(run)[client].throughput;
            let percent = run.point.percents[0] as f64;
            Circle::new((percent, mib(throughput)), RADII[client], colour.filled())
        });
        chart
            .draw_series(points)?
            .label(format!("{} measured", CLIENTS[client]))
            .legend(move |(x, y)| Circle::new((x + 9, y), RADII[client], colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperMiddle)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()
}
