//! The report: cost against threads.

use std::fmt::Write;

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::points::{mean, Line, Outcome, Point};
use crate::beside::figures::Figure;
use crate::values;

/// How much of the variance a line must explain to be one.
const LEAST_FIT: f64 = 0.999;
/// A thread may cost so many times what changing one priority costs.
const MOST_CHANGES: f64 = 2.0;

/// The report on an outcome.
///
/// # Errors
/// The chart cannot be drawn.
pub fn of(outcome: &Outcome) -> Result<Report> {
    Ok(Report {
        title: "Mode switches",
        claim: format!(
            "A switch is linear in the number of threads: {:.0} instructions for each when the mode \
             rises, {:.0} when it falls; changing one priority takes {:.0}.",
            outcome.rise.slope, outcome.fall.slope, outcome.change
        ),
        failures: failures(outcome),
        table: table(outcome),
        introduction: html! {
            p {
                "A critical task needs more than its budget in each period. The mode manager raises the "
                "mode, and suspends a number of threads that want to run all the time, by changing their "
                "priorities one at a time. When the processor idles, the mode falls, and they get their "
                "priorities back."
            }
        },
        sections: vec![Section {
            title: "Cost of a switch (Figure 8.7)".to_owned(),
            content: html! { (PreEscaped(draw(outcome)?)) },
        }],
        comparison: comparison(outcome),
        method: method(),
        figures: figures(outcome),
        data: vec![Data {
            name: "mode-switch.csv",
            content: csv(outcome),
        }],
    })
}

fn failures(outcome: &Outcome) -> Vec<String> {
    let mut failures = Vec::new();
    for (name, line) in [("rise", outcome.rise), ("fall", outcome.fall)] {
        // What is no number fails too.
        let (linear, cheap) = (
            line.fit >= LEAST_FIT,
            line.slope <= MOST_CHANGES * outcome.change,
        );
        if !linear {
            failures.push(format!(
                "a {name} is not linear: a line explains {:.5} of the variance, less than {LEAST_FIT}",
                line.fit
            ));
        }
        if !cheap {
            failures.push(format!(
                "a {name} costs {:.0} instructions for each thread, more than {MOST_CHANGES} times a \
                 priority change, {:.0}",
                line.slope, outcome.change
            ));
        }
    }
    failures
}

fn table(outcome: &Outcome) -> String {
    let mut text = format!("{:>7} {:>10} {:>10}\n", "threads", "rise", "fall");
    for point in &outcome.points {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>7} {:>10.1} {:>10.1}",
            point.threads,
            mean(&point.rises),
            mean(&point.falls)
        );
    }
    let line = |line: Line| {
        format!(
            "{:.0} + {:.1} n (explains {:.6} of the variance)",
            line.at_zero, line.slope, line.fit
        )
    };
    let _ = writeln!(text, "\nrise: {}", line(outcome.rise));
    let _ = writeln!(text, "fall: {}", line(outcome.fall));
    let _ = writeln!(text, "one priority change: {:.1}", outcome.change);
    text
}

fn figures(outcome: &Outcome) -> Vec<Figure> {
    let of = |point: &Point| {
        let threads = point.threads;
        [
            Figure::new(format!("{threads} threads: rise"), mean(&point.rises)),
            Figure::new(format!("{threads} threads: fall"), mean(&point.falls)),
        ]
    };
    let mut figures: Vec<Figure> = outcome.points.iter().flat_map(of).collect();
    figures.push(Figure::new("rise: a thread", outcome.rise.slope));
    figures.push(Figure::new("fall: a thread", outcome.fall.slope));
    figures.push(Figure::new("one priority change", outcome.change));
    figures
}

fn csv(outcome: &Outcome) -> String {
    let lines = outcome.points.iter().flat_map(|point| {
        let switches = [("rise", &point.rises), ("fall", &point.falls)];
        let samples = switches
            .into_iter()
            .flat_map(|(name, samples)| samples.iter().map(move |sample| (name, sample)));
        samples.map(|(name, sample)| (point.threads, name, sample))
    });
    values::text(["threads", "switch", "instructions"], lines)
}

fn draw(outcome: &Outcome) -> Result<String> {
    let curve = |label: &str, colour, of: fn(&Point) -> &[u64]| Curve {
        label: label.to_owned(),
        colour: COLOURS[colour],
        style: Style::Filled,
        points: outcome
            .points
            .iter()
            .map(|point| Datum::new(point.threads as f64, mean(of(point))))
            .collect(),
    };
    let most = outcome.points.iter().map(|point| point.threads).max();
    let most = most.unwrap_or(1) as f64;
    let limit = Curve {
        label: format!("{MOST_CHANGES} priority changes for each thread"),
        colour: COLOURS[5],
        style: Style::Line,
        points: [0.0, most]
            .map(|threads| Datum::new(threads, MOST_CHANGES * outcome.change * threads))
            .to_vec(),
    };
    let curves = [
        curve("the mode rises", 0, |point| &point.rises),
        curve("the mode falls", 1, |point| &point.falls),
        limit,
    ];
    let axes = Axes {
        x: "threads whose priority changes",
        y: "instructions",
        horizontal: Horizontal::Numbers(0.0..most),
        legend: SeriesLabelPosition::UpperLeft,
    };
    chart::draw(&axes, &curves)
}

fn comparison(outcome: &Outcome) -> Vec<Comparison> {
    let linear = outcome.rise.fit >= LEAST_FIT && outcome.fall.fit >= LEAST_FIT;
    let eight = outcome.rise.at_zero + 8.0 * outcome.rise.slope;
    vec![
        Comparison {
            what: "cost against the number of threads".to_owned(),
            paper: "linear, in kernel and user level".to_owned(),
            measured: format!(
                "lines that explain {:.5} and {:.5} of the variance",
                outcome.rise.fit, outcome.fall.fit
            ),
            verdict: Agreement::of(linear),
            why: String::new(),
        },
        Comparison {
            what: "a switch of eight threads".to_owned(),
            paper: "x64, cold: at most 4 us at user level, 2 us in the kernel".to_owned(),
            measured: format!(
                "{eight:.0} instructions at user level, {:.2} priority changes for each thread",
                outcome.rise.slope / outcome.change
            ),
            verdict: Agreement::of(outcome.rise.slope <= MOST_CHANGES * outcome.change),
            why: "our kernel changes no priorities in bulk; what user level adds to a switch is what \
                  a thread costs beyond one change"
                .to_owned(),
        },
    ]
}

fn method() -> Markup {
    html! {
        p {
            "The manager reads the counter when its system call has returned with the timeout or the "
            "idle signal, and before it waits again; an instruction takes 1 ns. So the cost of a rise "
            "includes filling the critical task's context, waking the idle thread and answering the "
            "fault, once each. Threads that change are ready to run, so each is taken out of one queue "
            "and put into another. A priority change is measured in the same manager, on one of the "
            "same threads, down and up."
        }
    }
}
