//! What ran when, as SVG: a row for each partition, and the simulation's beside it.

use maud::{html, Markup};

use super::measured::Ran;
use super::simulation::{HYPERPERIOD, PARAMETERS};

/// Pixels of a unit, and of a row.
const UNIT: f64 = 14.0;
const ROW: f64 = 26.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 8.0;
const HEIGHT: f64 = 18.0;
/// Fill of what ran, and of what the simulation says.
const RAN: &str = "#1f6fb4";
const SIMULATED: &str = "#d9d9d9";

/// Draws both; the unit is in ticks.
pub fn draw(ran: &[Ran], unit: u64, simulated: &[Option<usize>]) -> Markup {
    let width = LEFT + HYPERPERIOD as f64 * UNIT + 10.0;
    let height = TOP + ROW * PARAMETERS.len() as f64 + 24.0;
    let x = |units: f64| LEFT + units * UNIT;
    let y = |partition: usize| TOP + ROW * partition as f64;
    let bottom = y(PARAMETERS.len());
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}")) font-size="12" {
            @for (partition, (period, budget)) in PARAMETERS.iter().enumerate() {
                text x="0" y=(y(partition) + 14.0) { "T = " (period) ", Θ = " (budget) }
            }
            @for (at, partition) in simulated.iter().enumerate() {
                @if let Some(partition) = *partition {
                    rect x=(x(at as f64)) y=(y(partition)) width=(UNIT) height=(HEIGHT) fill=(SIMULATED) {}
                }
            }
            @for ran in ran {
                @let (from, to) = (ran.from as f64 / unit as f64, ran.to as f64 / unit as f64);
                rect x=(format!("{:.2}", x(from))) y=(y(ran.partition) + 4.0)
                    width=(format!("{:.2}", (to - from).max(0.0) * UNIT)) height=(HEIGHT - 8.0) fill=(RAN) {}
            }
            @for at in (0..=HYPERPERIOD).step_by(5) {
                line x1=(x(at as f64)) x2=(x(at as f64)) y1=(TOP) y2=(bottom) stroke="#888" stroke-width="0.5" {}
                text x=(x(at as f64)) y=(bottom + 14.0) text-anchor="middle" { (at) }
            }
        }
    }
}
