//! The report: latencies beside what the thesis says, and what the simulation says.

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::measured::Measured;
use super::{Mode, DECISIONS, SHIFT, TASKS};
use crate::beside::figures::{self, Figure};
use crate::values;

/// Differences that are shown.
const SHOWN: usize = 10;

/// All sets of a mode with a number of tasks.
struct Row {
    mode: Mode,
    tasks: usize,
    sets: usize,
    decisions: usize,
    /// Instructions.
    least: u64,
    mean: f64,
    most: u64,
    /// Mean part of the time.
    overhead: f64,
    /// Sets that have room for everything.
    roomy: usize,
    jobs: usize,
    /// Late jobs of those sets, and of the others.
    missed_roomy: usize,
    missed_full: usize,
}

impl Row {
    fn of(mode: Mode, tasks: usize, all: &[Measured]) -> Option<Self> {
        let sets: Vec<&Measured> = all
            .iter()
            .filter(|set| (set.mode, set.tasks) == (mode, tasks))
            .collect();
        let latencies: Vec<u64> = sets
            .iter()
            .flat_map(|set| &set.latencies)
            .copied()
            .collect();
        let roomy = || sets.iter().filter(|set| set.has_room);
        let missed: usize = sets.iter().map(|set| set.verdict.missed).sum();
        let missed_roomy = roomy().map(|set| set.verdict.missed).sum();
        Some(Self {
            mode,
            tasks,
            sets: sets.len(),
            decisions: sets.iter().map(|set| set.verdict.compared).sum(),
            least: *latencies.iter().min()?,
            mean: latencies.iter().sum::<u64>() as f64 / latencies.len() as f64,
            most: *latencies.iter().max()?,
            overhead: sets.iter().map(|set| set.overhead).sum::<f64>() / sets.len() as f64,
            roomy: roomy().count(),
            jobs: sets.iter().map(|set| set.verdict.jobs).sum(),
            missed_roomy,
            missed_full: missed - missed_roomy,
        })
    }
}

/// The report on all sets.
///
/// # Errors
/// The chart cannot be drawn.
pub fn of(measured: &[Measured]) -> Result<Report> {
    let rows: Vec<Row> = Mode::ALL
        .into_iter()
        .flat_map(|mode| TASKS.map(|tasks| Row::of(mode, tasks, measured)))
        .flatten()
        .collect();
    let decisions: usize = rows.iter().map(|row| row.decisions).sum();
    Ok(Report {
        title: "EDF at user level",
        claim: format!(
            "Not one of {decisions} decisions, on {} task sets in two modes, differs from the \
             simulation; no deadline is missed by any set whose utilisation and measured overhead \
             are together at most 1.",
            measured.len() / Mode::ALL.len()
        ),
        failures: failures(measured, &rows),
        table: table(&rows),
        introduction: introduction(),
        sections: vec![
            Section {
                title: "Latency of the scheduler (Figure 8.8)".to_owned(),
                content: latencies(&rows)?,
            },
            Section {
                title: "Decisions and deadlines".to_owned(),
                content: html! { pre { (table(&rows)) } },
            },
        ],
        comparison: comparison(&rows),
        method: method(),
        figures: figures(&rows),
        data: vec![
            Data {
                name: "latency.csv",
                content: csv(&rows),
            },
            Data {
                name: "sets.csv",
                content: sets_csv(measured),
            },
        ],
    })
}

fn failures(measured: &[Measured], rows: &[Row]) -> Vec<String> {
    let differing = measured.iter().enumerate();
    let differing = differing.flat_map(|(number, set)| {
        let name = set.mode.name();
        let tasks = set.tasks;
        let lines = set.verdict.differences.iter();
        lines.map(move |line| format!("record {number} ({name}, {tasks} tasks): {line}"))
    });
    let mut failures: Vec<String> = differing.collect();
    let differences = failures.len();
    if differences > SHOWN {
        failures.truncate(SHOWN);
        failures.push(format!("{} more differ", differences - SHOWN));
    }
    failures.extend(rows.iter().filter(|row| row.missed_roomy > 0).map(|row| {
        format!(
            "{}, {} tasks: {} deadlines are missed by sets with room for everything",
            row.mode.name(),
            row.tasks,
            row.missed_roomy
        )
    }));
    failures
}

fn table(rows: &[Row]) -> String {
    let mut text = "mode      tasks  sets  decisions   latency (instructions)   overhead  \
                    with room: sets  late    others: late\n"
        .to_owned();
    for row in rows {
        text += &format!(
            "{:<9} {:>5} {:>5} {:>10} {:>7} {:>8.0} {:>7} {:>9.2} % {:>16} {:>5} {:>15}\n",
            row.mode.name(),
            row.tasks,
            row.sets,
            row.decisions,
            row.least,
            row.mean,
            row.most,
            row.overhead * 100.0,
            row.roomy,
            row.missed_roomy,
            row.missed_full
        );
    }
    text
}

/// The overhead is a percentage, as in the table.
fn figures(rows: &[Row]) -> Vec<Figure> {
    let mut figures = figures::of_csv(&csv(rows), 2);
    let overheads = figures
        .iter_mut()
        .filter(|figure| figure.name.ends_with("overhead"));
    for overhead in overheads {
        overhead.value *= 100.0;
        overhead.is_percentage = true;
    }
    figures
}

fn csv(rows: &[Row]) -> String {
    let header = [
        "mode",
        "tasks",
        "sets",
        "decisions",
        "least",
        "mean",
        "most",
        "overhead",
        "sets_with_room",
        "jobs",
        "late_with_room",
        "late_others",
    ];
    let lines = rows.iter().map(|row| {
        (
            row.mode.name(),
            row.tasks,
            row.sets,
            row.decisions,
            row.least,
            format!("{:.1}", row.mean),
            row.most,
            format!("{:.5}", row.overhead),
            row.roomy,
            row.jobs,
            row.missed_roomy,
            row.missed_full,
        )
    });
    values::text(header, lines)
}

fn sets_csv(measured: &[Measured]) -> String {
    let header = [
        "mode",
        "tasks",
        "utilisation",
        "overhead",
        "decisions",
        "differences",
        "jobs",
        "late",
    ];
    let lines = measured.iter().map(|set| {
        (
            set.mode.name(),
            set.tasks,
            format!("{:.5}", set.utilisation),
            format!("{:.5}", set.overhead),
            set.verdict.compared,
            set.verdict.differences.len(),
            set.verdict.jobs,
            set.verdict.missed,
        )
    });
    values::text(header, lines)
}

fn latencies(rows: &[Row]) -> Result<Markup> {
    let curves = Mode::ALL
        .into_iter()
        .zip(COLOURS)
        .map(|(mode, colour)| Curve {
            label: mode.name().to_owned(),
            colour,
            style: Style::Filled,
            points: rows
                .iter()
                .filter(|row| row.mode == mode)
                .map(|row| Datum {
                    range: Some((row.least as f64, row.most as f64)),
                    ..Datum::new(row.tasks as f64, row.mean)
                })
                .collect(),
        });
    let axes = Axes {
        x: "tasks",
        y: "instructions",
        horizontal: Horizontal::Numbers(0.0..21.0),
        legend: SeriesLabelPosition::LowerRight,
    };
    let chart = chart::draw(&axes, &curves.collect::<Vec<_>>())?;
    Ok(html! {
        p {
            "From the last look at the clock before a decision to the first after it: kernel, "
            "scheduler, timer and kernel again. Points are means, lines go from the least to the most."
        }
        (PreEscaped(chart))
    })
}

/// The mean latency of a mode over all numbers of tasks up to ten, as the thesis draws it.
fn mean(rows: &[Row], mode: Mode) -> f64 {
    let rows = rows
        .iter()
        .filter(|row| row.mode == mode && row.tasks <= 10);
    let (count, sum) = rows.fold((0.0, 0.0), |(count, sum), row| {
        (count + 1.0, sum + row.mean)
    });
    sum / f64::max(count, 1.0)
}

/// How much a mode's mean latency grows from the fewest tasks to the most.
fn growth(rows: &[Row], mode: Mode) -> f64 {
    let mut rows = rows
        .iter()
        .filter(|row| row.mode == mode)
        .map(|row| row.mean);
    let first = rows.next().unwrap_or(0.0);
    rows.next_back().unwrap_or(first) / first
}

fn comparison(rows: &[Row]) -> Vec<Comparison> {
    let (coop, preempt) = (mean(rows, Mode::Cooperative), mean(rows, Mode::Preemptive));
    let growths = Mode::ALL.map(|mode| growth(rows, mode));
    vec![
        Comparison {
            what: "which mode costs more".to_owned(),
            paper: "coop: it invokes the timer driver more often".to_owned(),
            measured: format!(
                "coop {coop:.0} instructions in the mean, pre-empt {preempt:.0} (1 to 10 tasks)"
            ),
            verdict: Agreement::of(coop > preempt),
            why: if coop > preempt {
                String::new()
            } else {
                "here a job that ends by a timeout costs more than one that ends by a call: its \
                 budget is filled anew by an invocation; and the timer is only programmed when the \
                 time of the next alarm changes"
                    .to_owned()
            },
        },
        Comparison {
            what: "growth with the number of tasks".to_owned(),
            paper: "slow, in both modes".to_owned(),
            measured: format!(
                "{:.2} (pre-empt) and {:.2} times (coop), from 1 task to 20",
                growths[0], growths[1]
            ),
            verdict: Agreement::of(growths.into_iter().all(|growth| growth < 2.0)),
            why: String::new(),
        },
    ]
}

fn introduction() -> Markup {
    html! {
        p {
            "The scheduler of " code { "user/policies/edf" } " (Listing 8.1 of Lyons' thesis) with "
            "random task sets: utilisations by " em { "randfixedsum" } " with sums from 0.3 to 1, "
            "periods of 10 to 1,000 ms, uniform in their logarithm, implicit deadlines, all released "
            "at once. Each set is scheduled until " (DECISIONS) " decisions are recorded, in two "
            "modes: " em { "pre-empt" } ", where jobs never call and end by a timeout, and "
            em { "coop" } ", where they end by a call. Many sets run in one boot, on one set of threads."
        }
        p {
            "Every record is compared with a simulation that shares no code with the scheduler. It "
            "takes from the record when decisions were made and when threads were seen to run, and "
            "predicts the rest: which event comes next and when, which task runs then, when the next alarm "
            "is to ring."
        }
    }
}

fn method() -> Markup {
    html! {
        p {
            "An instruction takes " (1u32 << SHIFT) " ns of virtual time, so the processor is one of "
            (1000 >> SHIFT) " million instructions a second, and overheads are what they are on such a "
            "processor. Jobs look at the clock every 110 instructions or so; a latency that begins with "
            "a preemption is too large by up to that. Where no task ran before, it begins with "
            "the alarm; decisions after which no task runs are not in the figure, but in the overhead. "
            "The thesis measures cycles, beside LITMUS" sup { "RT" } ", which is not repeated here."
        }
        p {
            "Overhead is the part of a run's time that neither tasks nor idle had. Late jobs of sets "
            "without room are expected: they ask for more than the processor has."
        }
    }
}
