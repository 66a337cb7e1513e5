//! Who ran when, and on whose scheduling context: the last period of the measured window.

use anyhow::{anyhow, Result};
use demo_protocol::record::Actor;
use plotters::prelude::*;

use crate::demo::analysis::Run;
use crate::demo::report::throughput::COLOURS;
use crate::demo::report::CHART_WIDTH;

/// Height of a timeline, pixels.
const HEIGHT: u32 = 290;

/// A shorter interval is drawn this wide, pixels: a rollback of some µs must be seen.
const LEAST_WIDTH: f64 = 1.5;

/// Colour of threads that run on a scheduling context of their own and are not clients.
pub const OWN_COLOUR: RGBColor = RGBColor(0x55, 0x55, 0x55);

/// A stretch of time in which a thread ran, ns from the beginning of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    pub actor: Actor,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Badge of the client on whose scheduling context the actor ran, or 0 ([`Interval::OWN`]).
    ///
    /// [`Interval::OWN`]: demo_protocol::trace::Interval::OWN
    pub payer: u64,
}

/// The last period of a run's measured window.
#[derive(Debug)]
pub struct Timeline {
    period_ns: u64,
    bars: Vec<Bar>,
}

impl Timeline {
    pub fn of(run: &Run) -> Self {
        let measurement = &run.measurement;
        let end = measurement.window[1];
        let period_ns = run.point.period_us * 1000;
        let start = end.saturating_sub(run.point.period_us * measurement.khz / 1000);
        let ns = |ticks: u64| (ticks.clamp(start, end) - start) * 1_000_000 / measurement.khz;
        let mut bars = Vec::new();
        for (actor, intervals) in &measurement.traces {
            for interval in intervals {
                if interval.end > start && interval.start < end {
                    bars.push(Bar {
                        actor: *actor,
                        start_ns: ns(interval.start),
                        end_ns: ns(interval.end),
                        payer: interval.payer,
                    });
                }
            }
        }
        bars.sort_by_key(|bar| (bar.start_ns, bar.actor));
        Self { period_ns, bars }
    }

    /// In the order of their beginning.
    pub fn bars(&self) -> &[Bar] {
        &self.bars
    }
}

pub fn actor_name(actor: Actor) -> &'static str {
    match actor {
        Actor::Control => "HIGH",
        Actor::Handler => "handler",
        Actor::Server => "server",
        Actor::ClientA => "A",
        Actor::ClientB => "B",
        Actor::Burner => "LOW",
    }
}

/// On whose scheduling context a bar's actor ran.
pub fn payer_name(bar: &Bar) -> &'static str {
    match bar.payer {
        1 => "A",
        2 => "B",
        _ => actor_name(bar.actor),
    }
}

fn colour(bar: &Bar) -> RGBColor {
    match payer_name(bar) {
        "A" => COLOURS[0],
        "B" => COLOURS[1],
        _ => OWN_COLOUR,
    }
}

/// A run's timeline, as SVG.
pub fn chart(run: &Run) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (CHART_WIDTH, HEIGHT)).into_drawing_area();
        draw(&area, &Timeline::of(run)).map_err(|error| anyhow!("{error}"))?;
    }
    Ok(svg)
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    timeline: &Timeline,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let rows = Actor::ALL.len();
    let width_ms = timeline.period_ns as f64 / 1e6;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(0f64..width_ms, 0f64..rows as f64)?;
    // Names in place of the numbers of an axis.
    let name = |y: &f64| {
        let row = rows as f64 - y;
        let actor = Actor::ALL.get((row - 0.5).round() as usize);
        let middle = (y.fract() - 0.5).abs() < 0.01;
        actor
            .filter(|_| middle)
            .map_or_else(String::new, |&actor| actor_name(actor).to_owned())
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(11)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_labels(2 * rows + 1)
        .y_label_formatter(&name)
        .x_desc("ms")
        .label_style(("sans-serif", 13))
        .draw()?;
    let least_ms = width_ms * LEAST_WIDTH / f64::from(CHART_WIDTH);
    let bars = timeline.bars().iter().map(|bar| {
        let row = Actor::ALL.iter().position(|&actor| actor == bar.actor);
        let bottom = (rows - 1 - row.unwrap_or(0)) as f64;
        let start = bar.start_ns as f64 / 1e6;
        let end = (bar.end_ns as f64 / 1e6)
            .max(start + least_ms)
            .min(width_ms);
        Rectangle::new(
            [(start, bottom + 0.15), (end, bottom + 0.85)],
            colour(bar).filled(),
        )
    });
    chart.draw_series(bars)?;
    area.present()
}

#[cfg(test)]
mod tests {
    use demo_protocol::trace::Interval;

    use super::*;
    use crate::demo::measurement::Measurement;
    use crate::demo::sweep;

    #[test]
    fn bars_are_cut_to_the_last_period_and_in_order() {
        let point = sweep::points(true, 1).into_iter().last().unwrap();
        let interval = |start, end, payer| Interval { start, end, payer };
        let end = 2 * point.period_us;
        let measurement = Measurement {
            khz: 1000,
            window: [0, end],
            traces: vec![
                (
                    Actor::Server,
                    vec![
                        interval(1, end / 2, 1),
                        interval(end / 2 - 5, end / 2 + 5, 1),
                        interval(end - 5, end + 5, 2),
                    ],
                ),
                (Actor::Control, vec![interval(end / 2 + 1, end / 2 + 2, 0)]),
            ],
            ..Measurement::default()
        };
        let run = Run {
            point,
            measurement,
            ciphertext_faults: Vec::new(),
        };
        let timeline = Timeline::of(&run);
        let found: Vec<_> = timeline
            .bars()
            .iter()
            .map(|bar| (bar.actor, bar.start_ns, bar.end_ns, payer_name(bar)))
            .collect();
        let period = point.period_us * 1000;
        assert_eq!(
            found,
            [
                (Actor::Server, 0, 5000, "A"),
                (Actor::Control, 1000, 2000, "HIGH"),
                (Actor::Server, period - 5000, period, "B"),
            ]
        );
    }
}
