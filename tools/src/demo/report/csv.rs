//! The data as comma-separated values.

use crate::demo::analysis::Analysis;
use crate::demo::model::Limit;
use crate::demo::report::timeline::{actor_name, payer_name, Bar, Timeline};
use crate::values;

/// A line for every point.
pub fn throughput(analysis: &Analysis) -> String {
    let of_point = ["period_us", "budget_a_us", "budget_b_us"].map(str::to_owned);
    let of_client = ["a", "b"].into_iter().flat_map(|client| {
        [
            format!("throughput_{client}_bytes_per_s"),
            format!("ideal_{client}_bytes_per_s"),
            format!("deviation_{client}_percent_of_maximum"),
            format!("limit_{client}"),
            format!("rollbacks_{client}"),
        ]
    });
    let of_control = [
        "releases",
        "missed",
        "longest_response_ns",
        "longest_rollback_ns",
    ];
    let header = of_point
        .into_iter()
        .chain(of_client)
        .chain(of_control.map(str::to_owned));
    let lines = analysis.runs().iter().map(|run| {
        let [budget_a, budget_b] = run.point.budgets_us();
        let mut line = [run.point.period_us, budget_a, budget_b]
            .map(|number| number.to_string())
            .to_vec();
        for (client, rollbacks) in analysis.compare(run).iter().zip(run.measurement.rollbacks) {
            let limit = match client.ideal.limit {
                Limit::Processor => "processor",
                Limit::Demand => "demand",
            };
            line.extend([
                format!("{:.0}", client.throughput),
                format!("{:.0}", client.ideal.throughput),
                format!("{:.3}", client.deviation),
                limit.to_owned(),
                rollbacks.to_string(),
            ]);
        }
        let control = &run.measurement.control;
        line.extend([
            control.responses_ns.len().to_string(),
            control.misses.to_string(),
            run.measurement.longest_response_ns().to_string(),
            (run.measurement.longest_rollback * 1_000_000 / run.measurement.khz).to_string(),
        ]);
        line
    });
    values::text(header, lines)
}

/// A line for every release of the control task.
pub fn responses(analysis: &Analysis) -> String {
    let lines = analysis.runs().iter().flat_map(|run| {
        let [budget_a, _] = run.point.budgets_us();
        let period_us = run.point.period_us;
        let responses = run.measurement.control.responses_ns.iter().enumerate();
        responses.map(move |(release, response)| (period_us, budget_a, release, response))
    });
    values::text(
        ["period_us", "budget_a_us", "release", "response_ns"],
        lines,
    )
}

/// A line for every interval of the timelines shown.
pub fn timeline(analysis: &Analysis) -> String {
    let shown = analysis
        .runs()
        .iter()
        .filter(|run| run.point.shows_timeline);
    let lines = shown.flat_map(|run| {
        let [budget_a, _] = run.point.budgets_us();
        let line = |bar: &Bar| {
            (
                run.point.period_us,
                budget_a,
                actor_name(bar.actor),
                payer_name(bar),
                bar.start_ns,
                bar.end_ns,
            )
        };
        Timeline::of(run)
            .bars()
            .iter()
            .map(line)
            .collect::<Vec<_>>()
    });
    let header = [
        "period_us",
        "budget_a_us",
        "who",
        "on_scheduling_context_of",
        "start_ns",
        "end_ns",
    ];
    values::text(header, lines)
}
