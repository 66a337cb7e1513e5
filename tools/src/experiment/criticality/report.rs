//! The report: jobs and missed deadlines, beside the thesis's.

use std::fmt::Write;

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::stages::{Outcome, TASKS};
use crate::beside::figures;
use crate::values;

/// The report on the stages.
///
/// # Errors
/// The chart cannot be drawn.
pub fn of(outcomes: &[Outcome]) -> Result<Report> {
    Ok(Report {
        title: "Criticality modes with real workloads",
        claim:
            "In no stage does a task at or above the stage's criticality miss a deadline; those \
                below it do."
                .to_owned(),
        failures: outcomes.iter().flat_map(Outcome::failures).collect(),
        table: table(outcomes),
        introduction: html! {
            p {
                "Three periodic tasks: corner detection (the most critical, with the longest period), "
                "JPEG encoding, and MP3 decoding (the least critical). Stage by stage, the more critical "
                "need more than their optimistic budgets; the mode rises to their level, and those below "
                "are demoted until the processor idles."
            }
        },
        sections: vec![Section {
            title: "Three stages (Table 8.16)".to_owned(),
            content: html! { (PreEscaped(draw(outcomes)?)) (stages_table(outcomes)) },
        }],
        comparison: comparison(outcomes),
        method: method(),
        figures: figures::of_csv(&csv(outcomes), 5),
        data: vec![Data {
            name: "criticality.csv",
            content: csv(outcomes),
        }],
    })
}

/// The lines of the table: stage, task, its period, level, C, U, jobs, missed, longest response.
fn lines(outcomes: &[Outcome]) -> Vec<[String; 10]> {
    let mut lines = Vec::new();
    for outcome in outcomes {
        for (index, task) in TASKS.iter().enumerate() {
            let jobs = outcome.tasks[index];
            lines.push([
                outcome.stage.name.to_owned(),
                task.name.to_owned(),
                format!("{:.1}", task.period_us as f64 / 1e3),
                task.criticality.to_string(),
                outcome.stage.level.to_string(),
                format!("{:.2}", outcome.alone_us[index] as f64 / 1e3),
                format!("{:.2}", outcome.allowed(index)),
                jobs.deadlines.to_string(),
                jobs.missed.to_string(),
                format!("{:.2}", jobs.longest_us as f64 / 1e3),
            ]);
        }
    }
    lines
}

const HEADS: [&str; 10] = [
    "stage", "task", "T ms", "L", "L_S", "C ms", "U", "jobs", "missed", "longest",
];

fn table(outcomes: &[Outcome]) -> String {
    let row = |cells: &[String]| {
        let mut text = format!("{:<6} {:<8}", cells[0], cells[1]);
        for cell in &cells[2..] {
            text += &format!(" {cell:>7}");
        }
        text + "\n"
    };
    let mut text = row(&HEADS.map(str::to_owned));
    for line in lines(outcomes) {
        text += &row(&line);
    }
    for outcome in outcomes {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "stage {}: the tasks want {:.0} % of the processor, and had {:.0} %",
            outcome.stage.name, outcome.demand, outcome.utilisation
        );
    }
    text
}

fn stages_table(outcomes: &[Outcome]) -> Markup {
    html! {
        table {
            tr { @for head in HEADS { th { (head) } } }
            @for line in lines(outcomes) {
                tr { @for cell in line { td { (cell) } } }
            }
        }
    }
}

fn csv(outcomes: &[Outcome]) -> String {
    let header = [
        "stage",
        "task",
        "period_ms",
        "criticality",
        "stage_criticality",
        "alone_ms",
        "allowed_share",
        "jobs",
        "missed",
        "longest_ms",
    ];
    values::text(header, lines(outcomes))
}

/// Missed deadlines, percent, of each task in each stage.
fn draw(outcomes: &[Outcome]) -> Result<String> {
    let curves: Vec<Curve> = TASKS
        .iter()
        .enumerate()
        .map(|(index, task)| Curve {
            label: format!("{}, criticality {}", task.name, task.criticality),
            colour: COLOURS[index],
            style: Style::Filled,
            points: outcomes
                .iter()
                .enumerate()
                .map(|(stage, outcome)| Datum::new(stage as f64, missed_percent(outcome, index)))
                .collect(),
        })
        .collect();
    let axes = Axes {
        x: "stage",
        y: "missed deadlines, percent",
        horizontal: Horizontal::Labels(
            outcomes.iter().map(|at| at.stage.name.to_owned()).collect(),
            -0.3..outcomes.len() as f64 - 0.7,
        ),
        legend: SeriesLabelPosition::UpperLeft,
    };
    chart::draw(&axes, &curves)
}

fn missed_percent(outcome: &Outcome, task: usize) -> f64 {
    let jobs = outcome.tasks[task];
    jobs.missed as f64 / jobs.deadlines.max(1) as f64 * 100.0
}

fn comparison(outcomes: &[Outcome]) -> Vec<Comparison> {
    let mut comparison = Vec::new();
    for outcome in outcomes {
        let stage = outcome.stage;
        let missed: Vec<String> = (0..TASKS.len())
            .map(|task| {
                format!(
                    "{} {:.0} %",
                    TASKS[task].name,
                    missed_percent(outcome, task)
                )
            })
            .collect();
        comparison.push(Comparison {
            what: format!("stage {}, missed deadlines", stage.name),
            paper: stage.thesis.to_owned(),
            measured: missed.join(", "),
            verdict: Agreement::of(outcome.failures().is_empty()),
            why: if stage.level == 0 {
                String::new()
            } else {
                "how many are missed below depends on how much is wanted, and differs".into()
            },
        });
        comparison.push(Comparison {
            what: format!("stage {}, use of the processor", stage.name),
            paper: format!("{} %", stage.thesis_utilisation),
            measured: format!("{:.0} %", outcome.utilisation),
            verdict: Agreement::of(
                (outcome.utilisation - stage.thesis_utilisation as f64).abs() <= 10.0,
            ),
            why: "the workloads are others, and so is what they want; ours is the time of the completed \
                  jobs alone, without timer and manager"
                .to_owned(),
        });
    }
    comparison
}

fn method() -> Markup {
    html! {
        p {
            "The programs are " code { "nanomp3-core" } " and " code { "jpeg-encoder" } ", as published, "
            "and a thin port of the corner response of " code { "chess-corners-core" } ", which needs the "
            "standard library. They run on a chord encoded as MP3, and on a picture drawn by numbers. "
            "Periods are a tenth of the thesis's; deadlines are implicit. A timer releases all tasks, the "
            "first time together. A job that ends after its task's next release is missed, and so is "
            "one that has not ended; jobs are not skipped, so a task that is behind misses until it has "
            "caught up."
        }
        p {
            "C is the longest time of a job that is alone on the processor; the use of the processor is that "
            "of the completed jobs, each with the mean time of those that are alone. U is the budget in the stage's "
            "mode as a share of the period. The mode rises when a job needs more than its optimistic "
            "budget, in each of the periods of the stage, and falls when the processor idles."
        }
    }
}
