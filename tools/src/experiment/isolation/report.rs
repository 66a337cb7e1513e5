//! The report: throughput against budget, beside the ideal.

use std::fmt::Write;

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::points::{Client, Measured, Outcome, DEMANDS, GREEDY, TOLERANCE_PERCENT};
use crate::beside::figures;
use crate::demo::analysis::{mib, CLIENTS};
use crate::values;

/// The report on an outcome.
///
/// # Errors
/// A chart cannot be drawn.
pub fn of(outcome: &Outcome) -> Result<Report> {
    Ok(Report {
        title: "Isolation in a shared server",
        claim: format!(
            "Where the processor is the limit, throughput is within {:.2} % of the maximum of \
             proportional to budget in all periods; where there is head-room, clients get what they ask \
             for, within {:.2} % of the maximum ({TOLERANCE_PERCENT} % are allowed).",
            outcome.worst(true),
            outcome.worst(false),
        ),
        failures: outcome.failures.clone(),
        table: table(outcome),
        introduction: html! {
            p {
                "A passive server encrypts with AES-256 for clients A and B, on their time. Their "
                "budgets add up to 97 % of the period, which is 10, 100 or 1,000 ms; a control task has "
                "the rest. A client whose budget runs out in the server is rolled back to the last whole batch. "
                "Each client asks for 16 KiB for each ms of its period, which is more than it can get "
                "with all of the time, or for 4 KiB, about a third of that; and sleeps when it has "
                "them. A client that has all of the period is alone, and never sleeps."
            }
        },
        sections: outcome
            .periods
            .iter()
            .flat_map(|&period_ms| DEMANDS.map(|demand| (period_ms, demand)))
            .map(|(period_ms, demand)| section(outcome, period_ms, demand))
            .collect::<Result<_>>()?,
        comparison: comparison(outcome),
        method: method(),
        figures: figures::of_csv(&csv(outcome), 4),
        data: vec![Data {
            name: "isolation.csv",
            content: csv(outcome),
        }],
    })
}

/// The points of a period and of a demand, bytes; a client that has all the time belongs to each.
fn curve_of(outcome: &Outcome, period_ms: u64, demand_bytes: u64) -> Vec<&Measured> {
    let measured = outcome.measured.iter();
    measured
        .filter(|measured| measured.period_ms == period_ms)
        .filter(|measured| {
            measured.demand_bytes == demand_bytes || !measured.clients.iter().all(Client::shares)
        })
        .collect()
}

/// What limits a client.
const fn limit(client: &Client) -> &'static str {
    if client.limited_by_processor() {
        "processor"
    } else {
        "demand"
    }
}

fn table(outcome: &Outcome) -> String {
    let mut text = format!(
        "{:>9} {:>10} {:>7} {:>2}  {:>7} {:>7}  {:>10} {:>10} {:>9}  limit\n",
        "period", "demand", "budget", "", "MiB/s", "ideal", "% of max", "% of ideal", "rollbacks"
    );
    for measured in &outcome.measured {
        for (name, client) in CLIENTS.into_iter().zip(&measured.clients) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{:>6} ms {:>6} KiB {:>5} % {name:>2}  {:>7.3} {:>7.3}  {:>+10.2} {:>+10.2} {:>9}  {}",
                measured.period_ms,
                measured.demand_bytes / 1024,
                client.percent,
                mib(client.throughput),
                mib(client.ideal.throughput),
                client.of_maximum,
                client.of_ideal,
                client.rollbacks,
                limit(client)
            );
        }
    }
    text
}

fn csv(outcome: &Outcome) -> String {
    let header = [
        "period_ms",
        "demand_bytes",
        "client",
        "budget_percent",
        "bytes_per_s",
        "ideal_bytes_per_s",
        "limited_by",
        "percent_of_maximum",
        "percent_of_ideal",
        "rollbacks",
    ];
    let lines = outcome.measured.iter().flat_map(|measured| {
        let clients = CLIENTS.into_iter().zip(&measured.clients);
        clients.map(|(name, client)| {
            (
                measured.period_ms,
                measured.demand_bytes,
                name,
                client.percent,
                format!("{:.1}", client.throughput),
                format!("{:.1}", client.ideal.throughput),
                limit(client),
                format!("{:.4}", client.of_maximum),
                format!("{:.4}", client.of_ideal),
                client.rollbacks,
            )
        })
    });
    values::text(header, lines)
}

/// `demand` is bytes per ms.
fn section(outcome: &Outcome, period_ms: u64, demand: u64) -> Result<Section> {
    let demand_bytes = demand * period_ms;
    let measured = curve_of(outcome, period_ms, demand_bytes);
    let curve = |index: usize, label: &str, style, value: fn(&Measured, usize) -> f64| Curve {
        label: format!("{}, {label}", CLIENTS[index]),
        colour: COLOURS[index],
        style,
        points: measured
            .iter()
            .map(|at| Datum::new(at.clients[0].percent as f64, value(at, index)))
            .collect(),
    };
    let curves: Vec<Curve> = [0, 1]
        .into_iter()
        .flat_map(|index| {
            [
                curve(index, "ideal", Style::Line, |at, index| {
                    mib(at.clients[index].ideal.throughput)
                }),
                curve(index, "measured", Style::Filled, |at, index| {
                    mib(at.clients[index].throughput)
                }),
            ]
        })
        .collect();
    let axes = Axes {
        x: "A's budget, percent of the period; B has what is missing to 97",
        y: "MiB per second of virtual time",
        horizontal: Horizontal::Numbers(0.0..100.0),
        legend: SeriesLabelPosition::UpperMiddle,
    };
    Ok(Section {
        title: format!(
            "Period {period_ms} ms, each asks for {} KiB{}",
            demand_bytes / 1024,
            if demand == GREEDY {
                ": more than it can get"
            } else {
                ""
            }
        ),
        content: html! { (PreEscaped(chart::draw(&axes, &curves)?)) },
    })
}

fn comparison(outcome: &Outcome) -> Vec<Comparison> {
    // A line for each period, since it must hold in each.
    let side = |by_processor: bool, what: &str, paper: &str, reference: &str, why: &str| {
        let lines = outcome.periods.iter().map(|&period_ms| {
            let side = outcome.side(period_ms, by_processor);
            Comparison {
                what: format!("{what}, period {period_ms} ms"),
                paper: paper.to_owned(),
                measured: format!(
                    "{} throughputs, at most {:.2} % of the maximum off, {:.2} % of {reference}",
                    side.count, side.of_maximum, side.of_ideal
                ),
                verdict: Agreement::of(side.count > 0 && side.of_maximum <= TOLERANCE_PERCENT),
                why: why.to_owned(),
            }
        });
        lines.collect::<Vec<_>>()
    };
    let mut comparison = side(
        true,
        "where the processor is the limit",
        "near perfect proportionality, with slight wiggles due to the rollbacks",
        "the client's share",
        "a client pays for its rollbacks: half a batch of 512 bytes (some 24 µs) and its way back into \
         the server each period, which weighs most where the budget is smallest",
    );
    comparison.extend(side(
        false,
        "where there is head-room",
        "both clients achieve their desired throughput",
        "what the client asks for",
        "",
    ));
    comparison
}

fn method() -> Markup {
    html! {
        p {
            "The system is that of the demonstration, " code { "systems/demo" } ", with a control task "
            "above all and a burner below. The ideal is a client's budget, as a share of what a client "
            "gets that has all of the period, or what it asks for if that is less. Nothing is taken off "
            "the ideal for rollbacks. " em { "Of the maximum" } " is the distance from the ideal in "
            "percent of what a client gets that has all, to which the claim refers; " em { "of the ideal" }
            " is in percent of the client's own share. A client that has all does not count: it "
            "defines the maximum."
        }
        p {
            "The thesis asks for 4 MiB a period, whichever it is, so that its short periods are all limit "
            "and its long one is nearly all head-room. Here the demand grows with the period, so that "
            "each period shows both. With budgets of 100 % and the control task, the system would be "
            "overloaded; the thesis has no such task. Every ciphertext "
            "is compared with that of another implementation of AES. Virtual time repeats to the "
            "instruction, so a point is one run, without an error bar."
        }
    }
}
