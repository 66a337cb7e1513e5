//! The report: costs against the number of partitions, what ran with the parameters of Figure 10, and the long run.

use anyhow::{Context, Result};
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::attacked::report as isolation;
use super::attacked::Outcome;
use super::measured::{Attacked, Class, Figure, Measured, Served};
use super::{simulation, timeline};
use crate::arch::Arch;
use crate::beside::figures;
use crate::values;

/// What the mean invocation of one job may grow by from the fewest partitions to the most, as a fraction.
const GROWTH: (u64, u64) = (5, 4);
/// What the mean invocation of one job may cost, in instructions, with any number of threads.
const fn limit_of(arch: Arch) -> u64 {
    match arch {
        Arch::X86_64 => 2_500,
        // The timer's interrupt is acknowledged by a system call before the decision. A HPET's is a message, of which there is
        // nothing to acknowledge.
        Arch::Aarch64 => 2_500 + ACKNOWLEDGE,
    }
}
/// What that costs, at most.
const ACKNOWLEDGE: u64 = 300;
/// What invocations take at the edge of a window, in ticks, which are instructions: one, and with a request in service two,
/// a look at the watcher and a budget for the context.
const SWITCH: u64 = 5_000;
const SWITCH_WITH_SERVICE: u64 = 10_000;
/// The paper's figures, cycles: its scheduler, and its switch of context (5.3).
const PAPER: (u64, u64) = (113_747, 58_282);

/// The report on what was measured, and on systems that were attacked.
///
/// # Errors
/// A figure is missing, or a chart cannot be drawn.
pub fn of(arch: Arch, measured: &Measured, attacked: &[Outcome]) -> Result<Report> {
    let simulated = simulation::units();
    let mut failures = failures(arch, measured, &simulated)?;
    failures.extend(attacked.iter().flat_map(|outcome| outcome.failures.clone()));
    let seconds = measured.drift.seconds;
    Ok(Report {
        title: "The partition scheduler",
        claim: format!(
            "An invocation costs as much with {} partitions as with {}, within a quarter; what ran with the parameters \
             of Figure 10 is what the simulation says, in every unit; no request in service shortens another partition's \
             window; hostile partitions move no window of others by more than the bound, and change no result; in {seconds} s \
             no window drifted.",
            most_partitions(measured),
            fewest_partitions(measured)
        ),
        failures,
        table: table(measured) + &isolation::table(attacked),
        introduction: introduction(),
        sections: vec![
            Section {
                title: "Cost of an invocation, instructions (Figure 8)".to_owned(),
                content: html! { (PreEscaped(draw(measured)?)) (costs(measured)) },
            },
            Section {
                title: "What ran (Figure 10)".to_owned(),
                content: html! {
                    p { "Grey: the simulation. Blue: the threads of the machine." }
                    (timeline::draw(&measured.ran, measured.unit, &simulated))
                },
            },
            Section {
                title: "Systems with a hostile partition".to_owned(),
                content: isolation::section(attacked),
            },
        ],
        comparison: comparison(measured)?,
        method: method(),
        data: vec![
            Data {
                name: "partitions.csv",
                content: csv(measured),
            },
            Data {
                name: "attacked.csv",
                content: isolation::csv(attacked),
            },
        ],
        figures: compared(measured),
    })
}

fn fewest_partitions(measured: &Measured) -> u64 {
    measured.partitions().first().copied().unwrap_or(0)
}

fn most_partitions(measured: &Measured) -> u64 {
    measured.partitions().last().copied().unwrap_or(0)
}

/// The mean invocation of one job.
fn mean(measured: &Measured, partitions: u64, threads: u64) -> Result<u64> {
    let figure = measured.get(partitions, threads, Class::One);
    let figure = figure.with_context(|| {
        format!("no invocation of one job with {partitions} partitions of {threads} threads")
    })?;
    Ok(figure.invocation.mean)
}

fn failures(arch: Arch, measured: &Measured, simulated: &[Option<usize>]) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let (fewest, most) = (fewest_partitions(measured), most_partitions(measured));
    for threads in measured.threads() {
        let (few, many) = (
            mean(measured, fewest, threads)?,
            mean(measured, most, threads)?,
        );
        if many * GROWTH.1 > few * GROWTH.0 {
            failures.push(format!(
                "{threads} threads each: {few} instructions with {fewest} partitions, {many} with {most}"
            ));
        }
        for partitions in measured.partitions() {
            let mean = mean(measured, partitions, threads)?;
            let limit = limit_of(arch);
            if mean > limit {
                failures.push(format!(
                    "{partitions} partitions of {threads} threads: {mean} instructions, more than {limit}"
                ));
            }
        }
    }
    failures.extend(differences(measured, simulated));
    failures.extend(measured.served.iter().filter_map(unserved));
    failures.extend(measured.attacked.iter().filter_map(disturbed));
    let drift = measured.drift;
    if drift.astray > 0 || drift.windows == 0 {
        failures.push(format!(
            "{} of {} windows are astray",
            drift.astray, drift.windows
        ));
    }
    Ok(failures)
}

/// What is wrong with the windows beside a partition with requests in service.
fn unserved(served: &Served) -> Option<String> {
    let is_whole = served.shortest + SWITCH_WITH_SERVICE >= served.budget;
    let is_prompt = served.latest <= served.bound + SWITCH_WITH_SERVICE;
    let is_right = is_whole && is_prompt && served.ended > 0;
    (!is_right).then(|| format!("beside requests in service: {served:?}"))
}

/// What is wrong with the windows beside a partition that disturbs.
fn disturbed(attacked: &Attacked) -> Option<String> {
    let is_whole = attacked.shortest + SWITCH >= attacked.budget;
    let is_prompt = attacked.latest <= SWITCH;
    (!(is_whole && is_prompt)).then(|| format!("beside a partition that disturbs: {attacked:?}"))
}

/// Units in which anything but the simulation's partition ran, other than in the time that switches take.
fn differences(measured: &Measured, simulated: &[Option<usize>]) -> Vec<String> {
    let unit = measured.unit;
    let mut failures = Vec::new();
    for (number, expected) in simulated.iter().enumerate() {
        let (from, to) = (number as u64 * unit, (number as u64 + 1) * unit);
        for partition in 0..simulation::PARAMETERS.len() {
            let ran = measured.ran.iter().filter(|ran| ran.partition == partition);
            let within =
                |from_ran: u64, to_ran: u64| to_ran.min(to).saturating_sub(from_ran.max(from));
            let time: u64 = ran.map(|ran| within(ran.from, ran.to)).sum();
            let is_right = match *expected == Some(partition) {
                true => time + 2 * SWITCH >= unit,
                false => time <= 2 * SWITCH,
            };
            if !is_right {
                failures.push(format!(
                    "unit {number}: partition {partition} ran for {time} of {unit} ticks, the simulation says {expected:?}"
                ));
            }
        }
    }
    failures
}

/// How a number of partitions of so many threads is called.
fn name(figure: &Figure) -> String {
    let each = if figure.threads == 1 {
        "thread"
    } else {
        "threads"
    };
    format!(
        "{} partitions, {} {each}",
        figure.partitions, figure.threads
    )
}

/// Figures of classes that occurred.
fn counted(measured: &Measured) -> impl Iterator<Item = &Figure> {
    measured.figures.iter().filter(|figure| figure.count > 0)
}

const fn about(class: Class) -> &'static str {
    match class {
        Class::One => "one job",
        Class::Several => "several jobs",
        Class::Threads => "threads only",
    }
}

fn table(measured: &Measured) -> String {
    let mut text = format!(
        "{:<28} {:<13} {:>7} {:>16} {:>14} {:>14}\n",
        "instructions: mean (most)", "about", "count", "invocation", "decision", "switch"
    );
    for figure in counted(measured) {
        let cost = |cost: super::measured::Cost| format!("{} ({})", cost.mean, cost.most);
        text += &format!(
            "{:<28} {:<13} {:>7} {:>16} {:>14} {:>14}\n",
            name(figure),
            about(figure.class),
            figure.count,
            cost(figure.invocation),
            cost(figure.decision),
            cost(figure.switch)
        );
    }
    for served in &measured.served {
        text += &format!(
            "\nrequests of {} us beside a window of {} us, with a bound of {} us: the window has {} us or more, and begins \
             within {} us; {} requests ended",
            served.request / 1000,
            served.budget / 1000,
            served.bound / 1000,
            served.shortest / 1000,
            served.latest.div_ceil(1000),
            served.ended
        );
    }
    for attacked in &measured.attacked {
        text += &format!(
            "\nbeside a partition that {}: a window of {} instructions has {} or more, and begins within {}",
            attacked.name, attacked.budget, attacked.shortest, attacked.latest
        );
    }
    text += "\n";
    let drift = measured.drift;
    text += &format!(
        "\n{} windows in {} s: {} astray; the latest began {} us after its release\n",
        drift.windows,
        drift.seconds,
        drift.astray,
        drift.latest / 1000
    );
    text
}

fn costs(measured: &Measured) -> Markup {
    html! {
        table {
            tr {
                th.name { "mean (most)" } th.name { "about" } th { "count" } th { "invocation" } th { "decision" }
                th { "switch" }
            }
            @for figure in counted(measured) {
                tr {
                    td.name { (name(figure)) } td.name { (about(figure.class)) } td { (figure.count) }
                    @for cost in [figure.invocation, figure.decision, figure.switch] {
                        td { (cost.mean) " (" (cost.most) ")" }
                    }
                }
            }
        }
    }
}

/// The mean invocation of one job, and its switch, against the number of partitions.
fn draw(measured: &Measured) -> Result<String> {
    let numbers = measured.partitions();
    let series = |threads: u64, of: fn(&Figure) -> u64| {
        let points = numbers.iter().enumerate();
        let points = points.filter_map(|(x, &partitions)| {
            let figure = measured.get(partitions, threads, Class::One)?;
            Some(Datum::new(x as f64, of(figure) as f64))
        });
        points.collect::<Vec<_>>()
    };
    let mut curves = Vec::new();
    for (threads, colour) in measured.threads().into_iter().zip(COLOURS) {
        curves.push(Curve {
            label: format!("invocation, {threads} threads each"),
            colour,
            style: Style::Filled,
            points: series(threads, |figure| figure.invocation.mean),
        });
        curves.push(Curve {
            label: format!("switch, {threads} threads each"),
            colour,
            style: Style::Hollow,
            points: series(threads, |figure| figure.switch.mean),
        });
    }
    let labels: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let end = numbers.len() as f64 - 0.8;
    let axes = Axes {
        x: "partitions",
        y: "instructions",
        horizontal: Horizontal::Labels(labels, -0.2..end),
        legend: SeriesLabelPosition::LowerRight,
    };
    chart::draw(&axes, &curves)
}

fn introduction() -> Markup {
    html! {
        p {
            "Each partition has a period and a budget of one unit; the one with the earliest deadline has the processor. "
            "The periods are those of the paper, 11 to 28 units; of more than nine partitions they are as many times "
            "longer, so that the machine is as busy. In a partition of several threads all but one are periodic."
        }
    }
}

fn comparison(measured: &Measured) -> Result<Vec<Comparison>> {
    let (fewest, most) = (fewest_partitions(measured), most_partitions(measured));
    let few = mean(measured, fewest, 1)?;
    let many = mean(measured, most, 1)?;
    let nine = measured
        .get(9, 1, Class::One)
        .context("nine partitions are missing")?;
    Ok(vec![
        Comparison {
            what: "the scheduler's cost against the number of partitions".to_owned(),
            paper: "grows little from 2 to 9, with the jobs at one instant".to_owned(),
            measured: format!("{few} instructions with {fewest}, {many} with {most}, of one job"),
            verdict: Agreement::of(many * GROWTH.1 <= few * GROWTH.0),
            why: String::new(),
        },
        Comparison {
            what: "the scheduler beside a switch of context".to_owned(),
            paper: format!("{} cycles, twice the switch's {}", PAPER.0, PAPER.1),
            measured: format!(
                "{} instructions in all, of which {} decide and {} switch",
                nine.invocation.mean, nine.decision.mean, nine.switch.mean
            ),
            verdict: Agreement::Differs,
            why: "here the decision is the smallest part, and the kernel is entered four times"
                .to_owned(),
        },
        Comparison {
            what: "the trace of Figure 10".to_owned(),
            paper: "equals that of the TIMES tool".to_owned(),
            measured: "equals that of the simulation, in every unit".to_owned(),
            verdict: Agreement::of(differences(measured, &simulation::units()).is_empty()),
            why: String::new(),
        },
    ])
}

fn method() -> Markup {
    html! {
        p {
            "An instruction takes 1 ns of virtual time. An invocation is measured from the last instruction of the thread "
            "that is interrupted, or from the time at which the scheduler is to be woken if none runs, to the first one of "
            "the next thread: with the interrupt, everything that the kernel does, and both switches of context. Its "
            "decision is what the state machine takes, its switch what comes after that. Invocations after which no "
            "thread runs are not counted. Those that handle several jobs of partitions at one instant are counted apart, "
            "and so are those about threads within a partition only."
        }
    }
}

fn csv(measured: &Measured) -> String {
    let lines = measured.figures.iter().map(|figure| {
        let Figure {
            partitions,
            threads,
            class,
            count,
            invocation,
            decision,
            switch,
        } = figure;
        (
            (partitions, threads, class.name(), count),
            (invocation.mean, invocation.most),
            (decision.mean, decision.most),
            (switch.mean, switch.most),
        )
    });
    let header = [
        "partitions",
        "threads",
        "about",
        "count",
        "invocation",
        "most invocation",
        "decision",
        "most decision",
        "switch",
        "most switch",
    ];
    values::text(header, lines)
}

fn compared(measured: &Measured) -> Vec<figures::Figure> {
    let means = counted(measured).map(|figure| {
        let what = format!("{}, {}: mean", name(figure), about(figure.class));
        figures::Figure::new(what, figure.invocation.mean as f64)
    });
    means.collect()
}
