//! The report: throughput against budget, beside the ideal.

use std::fmt::Write;

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::points::{Measured, Outcome, TOLERANCE_PERCENT};
use crate::demo::analysis::{mib, CLIENTS};

/// The report on an outcome.
///
/// # Errors
/// A chart cannot be drawn.
pub fn of(outcome: &Outcome) -> Result<Report> {
    Ok(Report {
        title: "Isolation in a shared server",
        claim: format!(
            "Where the processor is the limit, throughput is within {:.2} % of the maximum of \
             proportional to budget ({TOLERANCE_PERCENT} % are allowed), in every period that has such points; where \
             there is head-room, both clients get what they ask for, within {:.2} %.",
            outcome.worst(true, |client| client.of_maximum),
            outcome.worst(false, |client| client.of_maximum),
        ),
        failures: outcome.failures.clone(),
        table: table(outcome),
        introduction: html! {
            p {
                "A passive server encrypts with AES-256 for clients A and B, on their time. Their "
                "budgets add up to the period, which is 10, 100 or 1,000 ms. Whose budget runs out in "
                "the server is rolled back to the last whole batch. Each client asks for 384 KiB a "
                "period, and sleeps when it has them, unless it has all of the period."
            }
        },
        sections: outcome
            .maxima
            .iter()
            .map(|&(period_ms, _)| section(outcome, period_ms))
            .collect::<Result<_>>()?,
        comparison: comparison(outcome),
        method: method(),
        data: vec![Data {
            name: "isolation.csv",
            content: csv(outcome),
        }],
    })
}

fn of_period(outcome: &Outcome, period_ms: u64) -> Vec<&Measured> {
    let measured = outcome.measured.iter();
    measured
        .filter(|measured| measured.period_ms == period_ms)
        .collect()
}

fn table(outcome: &Outcome) -> String {
    let mut text = format!(
        "{:>9} {:>7} {:>2}  {:>7} {:>7}  {:>10} {:>10} {:>9}\n",
        "period", "budget", "", "MiB/s", "ideal", "% of max", "% of ideal", "rollbacks"
    );
    for measured in &outcome.measured {
        for (name, client) in CLIENTS.into_iter().zip(&measured.clients) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{:>6} ms {:>5} % {name:>2}  {:>7.3} {:>7.3}  {:>+10.2} {:>+10.2} {:>9}{}",
                measured.period_ms,
                client.percent,
                mib(client.throughput),
                mib(client.ideal.throughput),
                client.of_maximum,
                client.of_ideal,
                client.rollbacks,
                if client.limited_by_processor() {
                    ""
                } else {
                    "  (asks for no more)"
                }
            );
        }
    }
    text
}

fn csv(outcome: &Outcome) -> String {
    let mut text = "period_ms,client,budget_percent,bytes_per_s,ideal_bytes_per_s,limited_by,\
                    percent_of_maximum,percent_of_ideal,rollbacks\n"
        .to_owned();
    for measured in &outcome.measured {
        for (name, client) in CLIENTS.into_iter().zip(&measured.clients) {
            let limit = if client.limited_by_processor() {
                "processor"
            } else {
                "demand"
            };
            let _ = writeln!(
                text,
                "{},{name},{},{:.1},{:.1},{limit},{:.4},{:.4},{}",
                measured.period_ms,
                client.percent,
                client.throughput,
                client.ideal.throughput,
                client.of_maximum,
                client.of_ideal,
                client.rollbacks
            );
        }
    }
    text
}

fn section(outcome: &Outcome, period_ms: u64) -> Result<Section> {
    let measured = of_period(outcome, period_ms);
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
        x: "A's budget, percent of the period; B has the rest",
        y: "MiB per second of virtual time",
        horizontal: Horizontal::Numbers(0.0..100.0),
        legend: SeriesLabelPosition::UpperMiddle,
    };
    Ok(Section {
        title: format!("Period {period_ms} ms"),
        content: html! { (PreEscaped(chart::draw(&axes, &curves)?)) },
    })
}

fn comparison(outcome: &Outcome) -> Vec<Comparison> {
    let limited = outcome.worst(true, |client| client.of_maximum);
    let relative = outcome.worst(true, |client| client.of_ideal);
    let free = outcome.worst(false, |client| client.of_ideal);
    vec![
        Comparison {
            what: "where the processor is the limit".to_owned(),
            paper: "near perfect proportionality, with slight wiggles due to the rollbacks".into(),
            measured: format!(
                "at most {limited:.2} % of the maximum off, {relative:.2} % of the client's share"
            ),
            verdict: Agreement::of(limited <= TOLERANCE_PERCENT),
            why: "a client pays for its rollbacks: half a batch of 512 bytes (some 24 µs) and its way back \
                  into the server each period, which weighs most where the budget is smallest"
                .to_owned(),
        },
        Comparison {
            what: "where there is head-room".to_owned(),
            paper: "both clients achieve their desired throughput".to_owned(),
            measured: format!("at most {free:.2} % off what they ask for"),
            verdict: Agreement::of(free <= TOLERANCE_PERCENT),
            why: String::new(),
        },
    ]
}

fn method() -> Markup {
    html! {
        p {
            "The system is that of the demonstration, " code { "systems/demo" } ", with a control task "
            "above all and a burner below. The ideal is a client's budget, as a share of what a client "
            "gets that has all of the period, or what it asks for if that is less; where the control "
            "task leaves less than the budgets need, both shares shrink alike. Nothing is taken off the "
            "ideal for rollbacks. " em { "Of the maximum" } " is the distance from the ideal in percent "
            "of what a client gets that has all, which is what is claimed; " em { "of the ideal" }
            " is in percent of the client's own share."
        }
        p {
            "The thesis asks for 4 MiB a period; under emulation, 384 KiB take as long. Every ciphertext "
            "is compared with that of another implementation of AES. Virtual time repeats to the "
            "instruction, so a point is one run, without an error bar."
        }
    }
}
