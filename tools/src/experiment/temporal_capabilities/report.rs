//! The report: what was judged, what is lost, what it costs.

use std::time::Duration;

use allocation_reference::cost::{bytes, Cost, POINTS};
use allocation_reference::loss;
use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::cost::ratio;
use super::judged::Outcome;
use super::loss::{Asked, Counted, TENTHS};
use crate::values;

/// The least that an admission beside 150 others with 20 points must be cheaper by than the straightforward test.
const RATIO: u64 = 100;
/// The most that an allocation with 20 points may take, bytes.
const BYTES: usize = 1024;
/// Loss from 3 points on that is still convergence, in per cent of the sets.
const LOSS: f64 = 1.0;

/// The report on all parts; `finding` is what is wrong with the book.
///
/// # Errors
/// A chart cannot be drawn.
pub fn of(
    judged: &Outcome,
    asked: &[Asked],
    costs: &[Cost],
    finding: Option<String>,
) -> Result<Report> {
    let counted = Counted::of(asked);
    let mut failures = failures(judged, &counted, costs);
    failures.extend(finding);
    Ok(Report {
        title: "Temporal capabilities",
        claim: format!(
            "After each of {} admitted steps, all that was reserved passed the exact test; no deadline was missed, and \
             nothing was left when clients were gone. Allowances that match lost nothing.",
            judged.judged.admitted
        ),
        failures,
        table: table(judged, &counted, costs),
        introduction: introduction(),
        sections: vec![
            Section {
                title: "Judged".to_owned(),
                content: judged_section(judged),
            },
            Section {
                title: "Sets that are admitted, against their utilisation (Figure 5)".to_owned(),
                content: html! { (PreEscaped(draw_loss(asked)?)) (loss_table(&counted)) },
            },
            Section {
                title: "One more sub-allocation: how many times cheaper than the straightforward test (Figure 3)"
                    .to_owned(),
                content: html! { (PreEscaped(draw_costs(costs)?)) (cost_table(costs)) },
            },
            Section {
                title: "Memory (Figure 4)".to_owned(),
                content: memory_table(),
            },
        ],
        comparison: comparison(&counted, costs),
        method: method(),
        data: vec![
            Data {
                name: "loss.csv",
                content: loss_csv(asked),
            },
            Data {
                name: "cost.csv",
                content: cost_csv(costs),
            },
        ],
        figures: Vec::new(),
    })
}

/// Beside 150 sub-allocations, with 20 points.
fn papers(costs: &[Cost]) -> Option<&Cost> {
    costs
        .iter()
        .find(|cost| (cost.points, cost.held) == (20, 150))
}

fn failures(judged: &Outcome, counted: &Counted, costs: &[Cost]) -> Vec<String> {
    let mut failures: Vec<String> = judged.wrong.iter().cloned().collect();
    if judged.judged.admitted < judged.sequences {
        failures.push(format!("hardly anything was admitted: {:?}", judged.judged));
    }
    if judged.matching_wrong > 0 || judged.matching_admitted == 0 {
        failures.push(format!(
            "of hierarchies that match, {} agree and {} do not",
            judged.matching_admitted, judged.matching_wrong
        ));
    }
    if judged.missed > 0 {
        failures.push(format!(
            "replaced reservations missed deadlines on {} processors",
            judged.missed
        ));
    }
    if counted.wrong > 0 {
        failures.push(format!(
            "{} sets are admitted that the exact test refuses",
            counted.wrong
        ));
    }
    failures.extend(
        papers(costs)
            .filter(|cost| ratio(cost) < RATIO)
            .map(|cost| {
                format!(
                    "an admission beside 150 is only {} times cheaper, not {RATIO}",
                    ratio(cost)
                )
            }),
    );
    let size = bytes(20);
    if size > BYTES {
        failures.push(format!(
            "an allocation with 20 points takes {size} bytes, more than {BYTES}"
        ));
    }
    failures
}

fn table(judged: &Outcome, counted: &Counted, costs: &[Cost]) -> String {
    let all = &judged.judged;
    let mut text = format!(
        "{} sequences, {} operations: {} admitted, {} too much, {} refused otherwise, {} revocations; {} ticks simulated\n\
         hierarchies that match: {} admitted and {} refused by both tests, {} left out\n\
         replaced reservations, {} processors: deadlines missed on {}; by the paper's delay, on {}\n\n",
        judged.sequences,
        all.operations,
        all.admitted,
        all.too_much,
        all.refused,
        all.revocations,
        all.simulated,
        judged.matching_admitted,
        judged.matching_refused,
        judged.matching_skipped,
        judged.processors,
        judged.missed,
        judged.missed_by_deadline
    );
    text += &format!(
        "{} sets, admitted by the exact test: {}; with k points:",
        counted.sets, counted.exactly
    );
    for (points, admitted) in loss::POINTS.iter().zip(counted.by_points) {
        text += &format!(" {points}: {admitted}");
    }
    text += &format!(
        "\n\n{:>8} {:>16} {:>8} {:>16} {:>8}\n",
        "points", "sub-allocations", "steps", "straightforward", "times"
    );
    for cost in costs {
        let (points, held, steps, plain) =
            (cost.points, cost.held, cost.steps, cost.straightforward);
        text += &format!(
            "{points:>8} {held:>16} {steps:>8} {plain:>16} {:>8}\n",
            ratio(cost)
        );
    }
    text
}

fn introduction() -> Markup {
    html! {
        p {
            "A temporal capability is the right to allocate processor time: a set of allocations, each a part of a "
            "processor that is bounded by an allowance function. Clients that are not trusted derive, grant, share and "
            "revoke them, and make reservations. What all of them have reserved must be schedulable, taken flat."
        }
    }
}

fn judged_section(judged: &Outcome) -> Markup {
    html! {
        p {
            (judged.sequences) " sequences of operations by clients that forge names, flood, grant in circles and "
            "disappear. After each admitted step, the exact processor-demand test is applied to everything that is "
            "reserved, and each decision is compared with that of the straightforward test; beside it, processors are "
            "simulated whose tasks overrun, come back at once or never end."
        }
        table {
            tr { th.name { "operations" } th { "" } }
            tr { td.name { "asked for" } td { (judged.judged.operations) } }
            tr { td.name { "admitted" } td { (judged.judged.admitted) } }
            tr { td.name { "refused: too much" } td { (judged.judged.too_much) } }
            tr { td.name { "refused: names, quotas" } td { (judged.judged.refused) } }
            tr { td.name { "revocations" } td { (judged.judged.revocations) } }
        }
        p {
            "Theorem 2: of sets in random hierarchies of allowances that match, " (judged.matching_admitted)
            " were admitted by both tests, " (judged.matching_refused) " refused by both, "
            (judged.matching_wrong) " by one. " (judged.matching_skipped) " whose utilisation is 1 or close to it are "
            "left out: functions of finitely many points are not exact for them."
        }
        p {
            "Reservations that are replaced all the time on full processors: deadlines were missed on "
            (judged.missed) " of " (judged.processors) ". Where a removed reservation counts only until its server "
            "deadline, as the paper has it, on " (judged.missed_by_deadline) "."
        }
    }
}

fn loss_table(counted: &Counted) -> Markup {
    html! {
        table {
            tr { th { "points k" } th { "admitted, %" } th { "lost, % of all sets" } }
            @for (points, admitted) in loss::POINTS.iter().zip(counted.by_points) {
                tr {
                    td { (points) }
                    td { (format!("{:.2}", counted.per_cent(admitted))) }
                    td { (format!("{:.2}", counted.per_cent(counted.exactly - admitted))) }
                }
            }
            tr { td { "exact" } td { (format!("{:.2}", counted.per_cent(counted.exactly))) } td { "" } }
        }
    }
}

fn draw_loss(asked: &[Asked]) -> Result<String> {
    let curve = |label: String, colour, style, count: &dyn Fn(&Counted) -> u64| {
        let points = TENTHS.map(|tenths| {
            let counted = Counted::of(asked.iter().filter(|asked| asked.tenths == tenths));
            Datum::new(tenths as f64 / 10.0, counted.per_cent(count(&counted)))
        });
        Curve {
            label,
            colour,
            style,
            points: points.collect(),
        }
    };
    let shown = loss::POINTS
        .iter()
        .enumerate()
        .filter(|(_, &points)| points != 10);
    let by_points = shown.zip(COLOURS).map(|((index, points), colour)| {
        curve(
            format!("k = {points}"),
            colour,
            Style::Filled,
            &move |counted| counted.by_points[index],
        )
    });
    let mut curves: Vec<_> = by_points.collect();
    curves.push(curve(
        "the exact test".to_owned(),
        COLOURS[5],
        Style::Line,
        &|counted| counted.exactly,
    ));
    let axes = Axes {
        x: "utilisation of the set",
        y: "admitted, %",
        horizontal: Horizontal::Numbers(0.05..1.05),
        legend: SeriesLabelPosition::LowerLeft,
    };
    chart::draw(&axes, &curves)
}

fn draw_costs(costs: &[Cost]) -> Result<String> {
    let curves = POINTS.iter().zip(COLOURS).map(|(&points, colour)| {
        let of_points = costs.iter().filter(|cost| cost.points == points);
        Curve {
            label: format!("k = {points}"),
            colour,
            style: Style::Filled,
            points: of_points
                .map(|cost| Datum::new(cost.held as f64, ratio(cost) as f64))
                .collect(),
        }
    });
    let most = costs.iter().map(|cost| cost.held).max().unwrap_or(0);
    let axes = Axes {
        x: "sub-allocations before",
        y: "times cheaper",
        horizontal: Horizontal::Numbers(0.0..most as f64 * 1.05),
        legend: SeriesLabelPosition::UpperLeft,
    };
    chart::draw(&axes, &curves.collect::<Vec<_>>())
}

fn cost_table(costs: &[Cost]) -> Markup {
    html! {
        table {
            tr { th { "points k" } th { "sub-allocations before" } th { "steps" } th { "straightforward" } th { "times" } }
            @for cost in costs {
                tr {
                    td { (cost.points) } td { (cost.held) } td { (cost.steps) } td { (cost.straightforward) }
                    td { (ratio(cost)) }
                }
            }
        }
    }
}

fn memory_table() -> Markup {
    html! {
        table {
            tr { th { "points k" } th { "bytes of an allocation" } th { "3,000 allocations, MiB" } }
            @for points in POINTS {
                tr { td { (points) } td { (bytes(points)) } td { (format!("{:.2}", mebibytes(points))) } }
            }
        }
    }
}

/// Of 3,000 allocations.
fn mebibytes(points: usize) -> f64 {
    (3000 * bytes(points)) as f64 / f64::from(1 << 20)
}

fn comparison(counted: &Counted, costs: &[Cost]) -> Vec<Comparison> {
    let most_lost = loss::POINTS
        .iter()
        .zip(counted.by_points)
        .filter(|(&points, _)| points > 2);
    let most_lost = most_lost
        .map(|(_, admitted)| counted.per_cent(counted.exactly - admitted))
        .fold(0.0, f64::max);
    let mut lines = vec![
        Comparison {
            what: "sets that are admitted, for k > 2".to_owned(),
            paper: "converge with the exact test".to_owned(),
            measured: format!("at most {most_lost:.2} % of the sets are lost"),
            verdict: Agreement::of(most_lost <= LOSS),
            why: String::new(),
        },
        Comparison {
            what: "memory of 3,000 allocations with k = 20".to_owned(),
            paper: "around 2.6 MiB".to_owned(),
            measured: format!("{:.2} MiB", mebibytes(20)),
            verdict: Agreement::of(mebibytes(20) <= 2.65),
            why: String::new(),
        },
    ];
    lines.extend(papers(costs).map(|cost| Comparison {
        what: "one more sub-allocation beside 150, with k = 20".to_owned(),
        paper: "about 55 ms".to_owned(),
        measured: format!(
            "{} steps, beside {} of the straightforward test ({} and {} on this host)",
            cost.steps,
            cost.straightforward,
            rounded(cost.time),
            rounded(cost.straightforward_time)
        ),
        verdict: Agreement::Differs,
        why: "the sum of the functions is kept, which the paper proposes".to_owned(),
    }));
    lines
}

fn rounded(time: Duration) -> String {
    format!("{} µs", time.as_micros())
}

fn method() -> Markup {
    html! {
        p {
            "Costs are counted: a step is a point of a function that is looked at. The straightforward test evaluates "
            "every function, by binary search, at every interval at which one of them changes, and just before."
        }
        p {
            "Sets of tasks are made as in the paper: utilisations by " em { "randfixedsum" } ", periods of 10 to 100 ms, "
            "uniform in their logarithm, deadlines uniform in the first half of what is between budget and period, 5 to "
            "150 tasks. The exact test is quick processor-demand analysis. Simulated processors have no overhead."
        }
    }
}

fn loss_csv(asked: &[Asked]) -> String {
    let header = [
        "utilisation",
        "tasks",
        "number",
        "exact",
        "k1",
        "k2",
        "k3",
        "k5",
        "k10",
        "k20",
    ];
    let lines = asked.iter().map(|asked| {
        let by = asked.admitted.by_points.map(u64::from);
        let exactly = u64::from(asked.admitted.exactly);
        let utilisation = format!("{:.1}", asked.tenths as f64 / 10.0);
        (utilisation, asked.tasks, asked.number, exactly, by)
    });
    values::text(header, lines)
}

fn cost_csv(costs: &[Cost]) -> String {
    let header = ["points", "sub_allocations", "steps", "straightforward"];
    let lines = costs
        .iter()
        .map(|cost| (cost.points, cost.held, cost.steps, cost.straightforward));
    values::text(header, lines)
}
