//! The report: costs against the number of timers, and how late jobs began.

use anyhow::Result;
use maud::{html, Markup, PreEscaped};
use sandglass_description::policy::timers::{EXPIRY_US, REQUEST_US};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Data, Report, Section};
use super::measured::{Drift, Figures};
use crate::beside::figures;
use crate::values;

/// Instructions in a µs of the machines.
const PER_US: u64 = 1000;
const ARMED: [u64; 3] = [10, 100, 10_000];
/// What is measured of the service, how it is called, and what it may take, instructions.
const COSTS: [(&str, &str, Option<u64>); 5] = [
    ("arm", "arm, by its caller", Some(REQUEST_US * PER_US)),
    ("cancel", "cancel, by its caller", Some(REQUEST_US * PER_US)),
    ("expiry", "expiry, by the service", Some(EXPIRY_US * PER_US)),
    ("wake", "from its time to its user", None),
    ("crowd", "the same, when all others are due", None),
];
/// How late a job may begin when it waits for its predecessors and for nothing else, ms: what drifts is later than that in
/// the longest run.
const LATE_MS: u64 = 2;
/// How late the judge may be woken, for whom nobody is in the way, µs.
const WOKEN_US: u64 = 100;

/// The report on what was measured: with the service, with an HPET of one's own, and in the example, which ran for so
/// many seconds.
///
/// # Errors
/// A figure is missing.
pub fn of(served: &Figures, own: &Figures, drift: &Drift, seconds: u64) -> Result<Report> {
    Ok(Report {
        title: "The timer service",
        claim: format!(
            "A request and an expiry take what the builder counts, or less, with 10 timers and with 10,000; in {seconds} s, \
             no release was off its grid, and no job missing."
        ),
        failures: failures(served, drift)?,
        table: table(served, own, drift, seconds)?,
        introduction: html! {
            p {
                "The service shares one HPET among all who have timers. A request to it is paid for by its caller, an "
                "expiry by a small context of the service."
            }
        },
        sections: vec![
            Section {
                title: "Cost against the number of timers, instructions".to_owned(),
                content: html! { (PreEscaped(draw(served)?)) (costs(served, own)?) },
            },
            Section {
                title: format!("Two EDF sets, two time-triggered tasks and modes, for {seconds} s"),
                content: tasks(drift),
            },
        ],
        comparison: Vec::new(),
        method: method(),
        data: vec![Data {
            name: "timers.csv",
            content: csv(served),
        }],
        figures: compared(served),
    })
}

fn failures(served: &Figures, drift: &Drift) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    for (name, what, bound) in COSTS {
        let Some(bound) = bound else { continue };
        for timers in ARMED {
            let most = served.get(name, timers)?.most;
            if most > bound {
                failures.push(format!(
                    "{what}: {most} instructions with {timers} timers, more than the {bound} that the builder counts"
                ));
            }
        }
        let [few, _, many] = ARMED;
        let (few, many) = (served.get(name, few)?.mean, served.get(name, many)?.mean);
        if many > 2 * few {
            failures.push(format!(
                "{what}: from {few} instructions to {many}, more than log n explains"
            ));
        }
    }
    let wrong = |task: &super::measured::Task| {
        task.astray + task.late > 0 || task.missing > 1 || task.latest > LATE_MS
    };
    for (number, task) in drift.tasks.iter().enumerate() {
        if wrong(task) {
            failures.push(format!("task {number}: {task:?}"));
        }
    }
    if drift.tasks.is_empty() || drift.woken > WOKEN_US {
        failures.push(format!("the example was judged late, or not: {drift:?}"));
    }
    Ok(failures)
}

fn table(served: &Figures, own: &Figures, drift: &Drift, seconds: u64) -> Result<String> {
    let mut text = format!("{:<34}", "instructions: mean (most)");
    for timers in ARMED {
        text += &format!("{:>18}", format!("{timers} timers"));
    }
    text += "\n";
    for (name, what, _) in COSTS {
        text += &format!("{what:<34}");
        for timers in ARMED {
            let figure = served.get(name, timers)?;
            text += &format!("{:>18}", format!("{} ({})", figure.mean, figure.most));
        }
        text += "\n";
    }
    let (set, wake) = (own.get("set", 1)?, own.get("wake", 1)?);
    text += &format!(
        "an HPET of one's own: set {}, from its time to its user {}\n\n{seconds} s of the example: judged {} us after its \
         time\n",
        set.mean, wake.mean, drift.woken
    );
    for (number, task) in drift.tasks.iter().enumerate() {
        text += &format!(
            "task {number}: {} jobs, {} missing, {} off the grid, {} late, begun within {} ms of their release\n",
            task.jobs, task.missing, task.astray, task.late, task.latest
        );
    }
    Ok(text)
}

fn costs(served: &Figures, own: &Figures) -> Result<Markup> {
    let mut rows = Vec::new();
    for (name, what, _) in COSTS {
        let figures: Result<Vec<_>> = ARMED.map(|n| served.get(name, n)).into_iter().collect();
        rows.push((what, figures?));
    }
    let (set, wake) = (own.get("set", 1)?, own.get("wake", 1)?);
    Ok(html! {
        table {
            tr {
                th.name { "mean (most)" }
                @for timers in ARMED { th { (timers) " timers" } }
            }
            @for (what, figures) in rows {
                tr {
                    td.name { (what) }
                    @for figure in figures { td { (figure.mean) " (" (figure.most) ")" } }
                }
            }
        }
        p {
            "Who has the HPET without the service sets it in " (set.mean) " instructions, and runs " (wake.mean)
            " after its time."
        }
    })
}

/// The bounded costs against the number of timers.
fn draw(served: &Figures) -> Result<String> {
    let bounded = COSTS.iter().filter(|(_, _, bound)| bound.is_some());
    let curves = bounded.enumerate().map(|(number, (name, what, _))| {
        let points = ARMED.iter().enumerate().map(|(x, &timers)| {
            let figure = served.get(name, timers)?;
            Ok(Datum::new(x as f64, figure.mean as f64))
        });
        Ok(Curve {
            label: (*what).to_owned(),
            colour: COLOURS[number],
            style: Style::Filled,
            points: points.collect::<Result<_>>()?,
        })
    });
    let labels = ARMED.map(|timers| timers.to_string()).to_vec();
    let axes = Axes {
        x: "armed timers",
        y: "instructions",
        horizontal: Horizontal::Labels(labels, -0.2..ARMED.len() as f64 - 0.8),
        legend: SeriesLabelPosition::LowerRight,
    };
    chart::draw(&axes, &curves.collect::<Result<Vec<_>>>()?)
}

fn tasks(drift: &Drift) -> Markup {
    html! {
        table {
            tr {
                th { "task" } th { "jobs" } th { "missing" } th { "off the grid" } th { "late" }
                th { "begun within, ms" }
            }
            @for (number, task) in drift.tasks.iter().enumerate() {
                tr {
                    td { (number) } td { (task.jobs) } td { (task.missing) } td { (task.astray) } td { (task.late) }
                    td { (task.latest) }
                }
            }
        }
    }
}

fn csv(served: &Figures) -> String {
    let lines = served.0.iter();
    let lines = lines.map(|(name, timers, figure)| (name, timers, figure.mean, figure.most));
    values::text(["what", "timers", "mean", "most"], lines)
}

fn compared(served: &Figures) -> Vec<figures::Figure> {
    let means = served.0.iter().map(|(name, timers, figure)| {
        figures::Figure::new(format!("{name}, {timers} timers: mean"), figure.mean as f64)
    });
    means.collect()
}

fn method() -> Markup {
    html! {
        p {
            "An instruction takes 1 ns of virtual time. A request is measured by its caller, from before the call until "
            "after the answer, with both switches; an expiry by what the service's context has consumed, with the "
            "interrupt, the signal and the wait for the next; kernel included. The timers that are armed belong to one "
            "capability, which is the worst case: each operation then sees all of them."
        }
    }
}
