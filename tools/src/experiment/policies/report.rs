//! The report: what each policy costs and isolates, side by side, and when jobs ran.

use std::fmt::Write;

use maud::{html, Markup};

use super::super::report::{Data, Report, Section};
use super::compared::Compared;
use super::switches::Switches;
use super::systems::{TaskSet, TASKS};
use super::timeline;
use crate::beside::figures;
use crate::values;

/// The report; `failures` are claims that do not hold.
pub fn of(
    tasks: &TaskSet,
    compared: &[Compared],
    switches: &[Switches],
    failures: Vec<String>,
) -> Report {
    Report {
        title: "Which policy for which problem?",
        claim: "Under no policy does a hostile task make another miss a deadline, or get more than it has reserved; \
                where a page promises when jobs begin, they do."
            .to_owned(),
        failures,
        table: table(compared, switches),
        introduction: introduction(tasks),
        sections: vec![
            Section {
                title: "Cost, all honest".to_owned(),
                content: costs(compared, switches),
            },
            Section {
                title: "What each conduct changes".to_owned(),
                content: effects(compared),
            },
            Section {
                title: "When jobs ran, ms".to_owned(),
                content: timelines(compared),
            },
        ],
        comparison: Vec::new(),
        method: method(),
        data: vec![Data {
            name: "policies.csv",
            content: csv(compared),
        }],
        figures: figures::of_csv(&csv(compared), 3),
    }
}

fn table(compared: &[Compared], switches: &[Switches]) -> String {
    let mut text = format!(
        "{:<30} {:>10} {:>10} {:>18} {:>8} {:>9} {:>12}\n",
        "all honest",
        "overhead %",
        "per job",
        "start mean (most)",
        "entries",
        "switches",
        "best effort %"
    );
    for (of, switches) in compared.iter().zip(switches) {
        let cost = of.cost;
        let start = format!("{} ({})", cost.start_mean, cost.start_most);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<30} {:>10.2} {:>10} {:>18} {:>8.1} {:>9.1} {:>12.1}",
            of.policy.name,
            cost.percent,
            cost.per_job,
            start,
            switches.entries,
            switches.switches,
            cost.left_percent
        );
    }
    for line in lines(compared) {
        let [policy, conduct, task, missed, response, jitter, moved, ..] = &line;
        let _ = write!(
            text,
            "\n{policy:<30} {conduct:<19} {task:<8} {missed:>3} missed, longest {response:>8} us, jitter {jitter:>8} us, \
             moved {moved:>8}"
        );
    }
    text + "\n"
}

const HEADS: [&str; 9] = [
    "policy",
    "conduct",
    "task",
    "missed",
    "longest_us",
    "jitter_us",
    "moved_instructions",
    "hostile_percent",
    "best_effort_percent",
];

fn lines(compared: &[Compared]) -> Vec<[String; HEADS.len()]> {
    let mut lines = Vec::new();
    for of in compared {
        for effect in &of.effects {
            for (task, (name, _)) in effect.tasks.iter().zip(TASKS) {
                lines.push([
                    of.policy.name.to_owned(),
                    effect.conduct.name().to_owned(),
                    name.to_owned(),
                    task.missed.to_string(),
                    format!("{:.1}", task.response),
                    format!("{:.1}", task.jitter),
                    task.moved.to_string(),
                    format!("{:.2}", effect.hostile_percent),
                    format!("{:.2}", effect.left_percent),
                ]);
            }
        }
    }
    lines
}

fn csv(compared: &[Compared]) -> String {
    values::text(HEADS, lines(compared))
}

fn introduction(tasks: &TaskSet) -> Markup {
    html! {
        p {
            "A flight controller, a sensor, a network stack and a camera, which reserve "
            (format!("{:.0}", tasks.percent(|task| task.reserved))) " % of the processor, and a logger that takes what is "
            "left. The same program runs under each policy, while all are honest and while the network stack is hostile."
        }
    }
}

fn costs(compared: &[Compared], switches: &[Switches]) -> Markup {
    html! {
        table {
            tr {
                th.name { "policy" } th { "% of the processor" } th { "" } th { "instructions a job" }
                th { "release to first instruction" } th { "entries a job" } th { "switches a job" }
                th { "best effort has, %" }
            }
            @for (of, switches) in compared.iter().zip(switches) {
                tr {
                    td.name { (of.policy.name) } td { (format!("{:.2}", of.cost.percent)) }
                    td.name { (bar(of.cost.percent)) } td { (of.cost.per_job) }
                    td { (of.cost.start_mean) " (" (of.cost.start_most) ")" }
                    td { (format!("{:.1}", switches.entries)) } td { (format!("{:.1}", switches.switches)) }
                    td { (format!("{:.1}", of.cost.left_percent)) }
                }
            }
        }
    }
}

/// A bar for a share of the processor, percent.
fn bar(percent: f64) -> Markup {
    let width = format!("{:.1}", percent * 40.0);
    html! {
        svg width="120" height="12" viewBox="0 0 120 12" {
            rect x="0" y="1" width=(width) height="10" fill="#1f6fb4" {}
        }
    }
}

fn effects(compared: &[Compared]) -> Markup {
    html! {
        table {
            tr {
                th.name { "policy" } th.name { "conduct" } th.name { "task" } th { "missed" } th { "longest, µs" }
                th { "jitter, µs" } th { "moved, instructions" } th { "hostile, %" } th { "best effort, %" }
            }
            @for line in lines(compared) {
                tr {
                    @for (column, cell) in line.iter().enumerate() {
                        @if column < 3 { td.name { (cell) } } @else { td { (cell) } }
                    }
                }
            }
        }
    }
}

fn timelines(compared: &[Compared]) -> Markup {
    html! {
        p { "From the first instruction of a job to its last; who preempts it has its own row." }
        @for of in compared {
            h3 { (of.policy.name) }
            (timeline::draw(&of.drawn))
        }
    }
}

fn method() -> Markup {
    html! {
        p {
            "An instruction takes 1 ns of virtual time. Tasks and logger execute chunks of a known number of instructions "
            "and count them: all of the window that is in no chunk is overhead, whoever had it, kernel included. A job notes "
            "when it begins and ends. What others of a run of whole periods say of caches is nothing: there are none."
        }
    }
}
