//! The data as comma-separated values. No field needs quoting.

use std::fmt::Write;

use crate::demo::analysis::Analysis;
use crate::demo::model::Limit;
use crate::demo::report::timeline::{actor_name, payer_name, Timeline};

/// A line for every point.
pub fn throughput(analysis: &Analysis) -> String {
    let mut text = String::from("period_us,budget_a_us,budget_b_us");
    for client in ["a", "b"] {
        let _ = write!(
            text,
            ",throughput_{client}_bytes_per_s,ideal_{client}_bytes_per_s,\
             deviation_{client}_percent_of_maximum,limit_{client},rollbacks_{client}"
        );
    }
    text.push_str(",releases,missed,longest_response_ns,longest_rollback_ns\n");
    for run in analysis.runs() {
        let [budget_a, budget_b] = run.point.budgets_us();
        let _ = write!(text, "{},{budget_a},{budget_b}", run.point.period_us);
        for (client, rollbacks) in analysis.compare(run).iter().zip(run.measurement.rollbacks) {
            let limit = match client.ideal.limit {
                Limit::Processor => "processor",
                Limit::Demand => "demand",
            };
            let _ = write!(
                text,
                ",{:.0},{:.0},{:.3},{limit},{rollbacks}",
                client.throughput, client.ideal.throughput, client.deviation
            );
        }
        let control = &run.measurement.control;
        let _ = writeln!(
            text,
            ",{},{},{},{}",
            control.responses_ns.len(),
            control.misses,
            run.measurement.longest_response_ns(),
            run.measurement.longest_rollback * 1000 / run.measurement.mhz,
        );
    }
    text
}

/// A line for every release of the control task.
pub fn responses(analysis: &Analysis) -> String {
    let mut text = String::from("period_us,budget_a_us,release,response_ns\n");
    for run in analysis.runs() {
        let [budget_a, _] = run.point.budgets_us();
        for (release, response) in run.measurement.control.responses_ns.iter().enumerate() {
            let period_us = run.point.period_us;
            let _ = writeln!(text, "{period_us},{budget_a},{release},{response}");
        }
    }
    text
}

/// A line for every interval of the timelines shown.
pub fn timeline(analysis: &Analysis) -> String {
    let mut text =
        String::from("period_us,budget_a_us,who,on_scheduling_context_of,start_ns,end_ns\n");
    for run in analysis
        .runs()
        .iter()
        .filter(|run| run.point.shows_timeline)
    {
        let [budget_a, _] = run.point.budgets_us();
        let timeline = Timeline::of(run);
        for bar in timeline.bars() {
            let _ = writeln!(
                text,
                "{},{budget_a},{},{},{},{}",
                run.point.period_us,
                actor_name(bar.actor),
                payer_name(bar),
                bar.start_ns,
                bar.end_ns
            );
        }
    }
    text
}
