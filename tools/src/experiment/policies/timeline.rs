//! When jobs ran, as SVG: a row for each task, honest on the left, attacked on the right.

use maud::{html, Markup};

use super::measured::Run;
use super::systems::{HOSTILE, TASKS};

/// What is drawn of each run, ms.
const SHOWN_MS: u64 = 20;
/// Pixels of a ms, a row, and the space for names.
const UNIT: f64 = 19.0;
const ROW: f64 = 24.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 20.0;
const BAR: f64 = 14.0;
/// Fill of jobs of high and of low criticality.
const HIGH: &str = "#1f6fb4";
const LOW: &str = "#d9a441";

/// Draws both runs, each from the same release of the first task.
pub fn draw(runs: &[Run; 2]) -> Markup {
    let panel = SHOWN_MS as f64 * UNIT;
    let width = LEFT + 2.0 * panel + 40.0;
    let bottom = TOP + ROW * TASKS.len() as f64;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {}", bottom + 20.0)) font-size="11" {
            @for (task, (name, _)) in TASKS.iter().enumerate() {
                text x="0" y=(TOP + ROW * task as f64 + 12.0) { (name) }
            }
            (one(&runs[0], LEFT, "all honest"))
            (one(&runs[1], LEFT + panel + 30.0, &format!("{HOSTILE} spins")))
        }
    }
}

fn one(run: &Run, left: f64, title: &str) -> Markup {
    let first = run.due(0).next().map_or(run.begin, |job| job.release);
    let end = first + SHOWN_MS * run.period(0) / 5;
    let x = |time: u64| left + run.us(time.clamp(first, end) - first) / 1e3 * UNIT;
    let y = |task: usize| TOP + ROW * task as f64;
    let bottom = y(TASKS.len());
    html! {
        text x=(left) y="12" font-weight="600" { (title) }
        @for ms in (0..=SHOWN_MS).step_by(5) {
            @let at = left + ms as f64 * UNIT;
            line x1=(at) x2=(at) y1=(TOP) y2=(bottom) stroke="#999" stroke-width="0.5" {}
            text x=(at) y=(bottom + 13.0) text-anchor="middle" { (ms) }
        }
        @for (task, (_, is_high)) in TASKS.iter().enumerate() {
            @for job in &run.jobs[task] {
                @if job.end > first && job.begin < end {
                    @let length = (x(job.end) - x(job.begin)).max(0.5);
                    rect x=(format!("{:.2}", x(job.begin))) y=(y(task)) width=(format!("{length:.2}")) height=(BAR)
                        fill=(if *is_high { HIGH } else { LOW }) {}
                }
            }
        }
    }
}
