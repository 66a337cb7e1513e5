//! The table at the end of the demo.

use std::fmt::Write;

use crate::demo::analysis::{mib, Analysis, Comparison, Run};
use crate::demo::model::Limit;
use crate::demo::sweep::{CONTROL_DEADLINE_US, PERIODS_US};

/// All points, beside the ideal line.
pub fn render(analysis: &Analysis) -> String {
    let mut text = String::new();
    for period_us in PERIODS_US {
        let model = analysis.model(period_us);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\nPeriod {} ms. Throughput in MiB per second of virtual time; ideal, and distance \
             from it in % of the maximum, {:.2} MiB/s.\n\
             A distance in brackets: the client wants no more. HIGH's deadline: {:.3} ms.\n\n\
             {:^9} | {:^22} | {:^22} | {:^11} | {:^17}\n\
             {:>4} {:>4} | {:>6} {:>6}  {:>7} | {:>6} {:>6}  {:>7} | {:>5} {:>5} | {:>6} {:>10}\n",
            period_us / 1000,
            mib(model.maximum),
            CONTROL_DEADLINE_US as f64 / 1000.0,
            "budget %",
            "A",
            "B",
            "rollbacks",
            "HIGH",
            "A",
            "B",
            "MiB/s",
            "ideal",
            "off",
            "MiB/s",
            "ideal",
            "off",
            "A",
            "B",
            "missed",
            "longest ms",
        );
        for run in analysis.runs_of(period_us) {
            text.push_str(&row(analysis, run));
        }
    }
    text
}

fn row(analysis: &Analysis, run: &Run) -> String {
    let [percent_a, percent_b] = run.point.percents;
    let [a, b] = analysis.compare(run);
    let [rollbacks_a, rollbacks_b] = run.measurement.rollbacks;
    format!(
        "{percent_a:>4} {percent_b:>4} | {} | {} | {rollbacks_a:>5} {rollbacks_b:>5} | {:>6} {:>10.3}\n",
        cells(&a),
        cells(&b),
        run.measurement.control.misses,
        run.measurement.longest_response_ns() as f64 / 1e6,
    )
}

fn cells(client: &Comparison) -> String {
    let deviation = match client.ideal.limit {
        Limit::Processor => format!("{:+.2} ", client.deviation),
        Limit::Demand => format!("({:+.2})", client.deviation),
    };
    format!(
        "{:>6.2} {:>6.2} {deviation:>8}",
        mib(client.throughput),
        mib(client.ideal.throughput),
    )
}
