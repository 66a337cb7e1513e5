//! The report: the costs, beside the thesis's.

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::points::{find, Cost};
use crate::beside::figures::Figure;
use crate::values;

/// The report on `costs`, for each of which `samples` faults were asked for.
///
/// # Errors
/// The chart cannot be drawn.
pub fn of(costs: &[Cost], samples: usize) -> Result<Report> {
    Ok(Report {
        title: "The cost of timeout handlers",
        claim: format!(
            "Each of {samples} timeouts was handled as described; extending a budget is the \
             cheapest way."
        ),
        failures: failures(costs, samples)?,
        table: table(costs),
        introduction: html! {
            p {
                "A client asks a passive server for more than its budget is enough for. The "
                "server's handler receives the timeout, and does what the client's policy says. "
                "Measured is the handler alone: from the first instruction after it woke up to the "
                "last before it waits for the next timeout, kernel included."
            }
        },
        sections: vec![Section {
            title: "Cost of a timeout, instructions (Table 8.14)".to_owned(),
            content: html! { (PreEscaped(draw(costs)?)) (costs_table(costs)) },
        }],
        comparison: comparison(costs)?,
        method: method(),
        figures: figures(costs),
        data: vec![Data {
            name: "timeouts.csv",
            content: csv(costs),
        }],
    })
}

fn failures(costs: &[Cost], samples: usize) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let extend = find(costs, "extend")?;
    for cost in costs {
        let (name, found) = (cost.case.name, cost.samples.len());
        if found != samples {
            failures.push(format!("`{name}`: {found} timeouts instead of {samples}"));
        }
        if cost.least() < extend.most() && name != "extend" {
            failures.push(format!(
                "`{name}` costs as little as {} instructions, `extend` up to {}",
                cost.least(),
                extend.most()
            ));
        }
    }
    Ok(failures)
}

fn table(costs: &[Cost]) -> String {
    let mut text = format!(
        "{:<18} {:>6} {:>8} {:>6} {:>6}   thesis, x64, us (hot, cold)\n",
        "instructions", "min", "mean", "max", "sigma"
    );
    for cost in costs {
        let thesis = cost
            .case
            .thesis
            .map_or(String::new(), |[hot, cold]| format!("{hot:.2}, {cold:.2}"));
        text += &format!(
            "{:<18} {:>6} {:>8.1} {:>6} {:>6.1}   {thesis}\n",
            cost.case.name,
            cost.least(),
            cost.mean(),
            cost.most(),
            cost.deviation()
        );
    }
    text
}

fn costs_table(costs: &[Cost]) -> Markup {
    html! {
        table {
            tr {
                th.name { "policy" } th { "min" } th { "mean" } th { "max" } th { "σ" }
                th { "thesis, x64 hot, µs" } th { "cold, µs" }
            }
            @for cost in costs {
                tr {
                    td.name { (cost.case.name) }
                    td { (cost.least()) } td { (format!("{:.1}", cost.mean())) } td { (cost.most()) }
                    td { (format!("{:.1}", cost.deviation())) }
                    @match cost.case.thesis {
                        Some([hot, cold]) => { td { (hot) } td { (cold) } }
                        None => { td { "–" } td { "–" } }
                    }
                }
            }
        }
    }
}

fn figures(costs: &[Cost]) -> Vec<Figure> {
    let of = |cost: &Cost| {
        let name = cost.case.name;
        [
            Figure::new(format!("{name}: least"), cost.least() as f64),
            Figure::new(format!("{name}: mean"), cost.mean()),
            Figure::new(format!("{name}: most"), cost.most() as f64),
        ]
    };
    costs.iter().flat_map(of).collect()
}

fn csv(costs: &[Cost]) -> String {
    let lines = costs.iter().flat_map(|cost| {
        let samples = cost.samples.iter().enumerate();
        samples.map(|(number, sample)| (cost.case.name, number, *sample))
    });
    values::text(["policy", "fault", "instructions"], lines)
}

/// Ours and the thesis's, each in units of its `extend`.
fn draw(costs: &[Cost]) -> Result<String> {
    let extend = find(costs, "extend")?;
    let curve = |label: &str, colour, style, value: &dyn Fn(&Cost) -> Option<f64>| Curve {
        label: label.to_owned(),
        colour: COLOURS[colour],
        style,
        points: costs
            .iter()
            .enumerate()
            .filter_map(|(index, cost)| Some(Datum::new(index as f64, value(cost)?)))
            .collect(),
    };
    let thesis = |cache: usize| {
        move |cost: &Cost| Some(cost.case.thesis?[cache] / extend.case.thesis?[cache])
    };
    let curves = [
        curve("Sandglass, mean", 0, Style::Filled, &|cost| {
            Some(cost.mean() / extend.mean())
        }),
        curve("thesis, hot caches", 1, Style::Hollow, &thesis(0)),
        curve("thesis, cold caches", 2, Style::Hollow, &thesis(1)),
    ];
    let axes = Axes {
        x: "policy",
        y: "cost, in that of `extend`",
        horizontal: Horizontal::Labels(
            costs.iter().map(|cost| cost.case.name.to_owned()).collect(),
            -0.4..costs.len() as f64 - 0.6,
        ),
        legend: SeriesLabelPosition::UpperLeft,
    };
    chart::draw(&axes, &curves)
}

/// Ratios: the thesis measures time, we count instructions.
fn comparison(costs: &[Cost]) -> Result<Vec<Comparison>> {
    let extend = find(costs, "extend")?;
    let mut comparison = Vec::new();
    for (name, range, why) in [
        (
            "emergency",
            (2.4, 4.2),
            "the thesis's handler also queues itself on the server's endpoint, and takes the spare \
             context away; here the kernel does, when the server waits",
        ),
        (
            "kill",
            (4.1, 4.9),
            "as for emergency: our handler does not wait until the server waits",
        ),
        (
            "rollback",
            (4.4, 6.8),
            "as for emergency; and extend, the unit, fills a context in one system call of some \
             600 instructions, in which the thesis's kernel is quicker",
        ),
        (
            "rollback, waiting",
            (4.4, 6.8),
            "the thesis's protocol, in which the handler waits for the server: the distance that is \
             left is extend's, the unit",
        ),
    ] {
        let cost = find(costs, name)?;
        let ratio = cost.mean() / extend.mean();
        let agrees = (range.0..=range.1).contains(&ratio);
        comparison.push(Comparison {
            what: name.to_owned(),
            paper: format!("{} to {} times extend (hot to cold)", range.0, range.1),
            measured: format!("{ratio:.1} times extend"),
            verdict: Agreement::of(agrees),
            why: if agrees { String::new() } else { why.to_owned() },
        });
    }
    let mean = |name: &str| find(costs, name).map(Cost::mean);
    let (emergency, kill, rollback) = (mean("emergency")?, mean("kill")?, mean("rollback")?);
    let ordered = extend.mean() < emergency && emergency < rollback && emergency < kill;
    comparison.push(Comparison {
        what: "order".to_owned(),
        paper: "extend < emergency < kill ~ rollback".to_owned(),
        measured: format!(
            "extend {:.0}, emergency {emergency:.0}, kill {kill:.0}, rollback {rollback:.0}",
            extend.mean()
        ),
        verdict: Agreement::of(ordered),
        why: if ordered {
            String::new()
        } else {
            "the spare context is filled anew for each emergency, which the thesis's is not"
                .to_owned()
        },
    });
    Ok(comparison)
}

fn method() -> Markup {
    html! {
        p {
            "Inside: decoding the fault, the decision, the answer to the client, restoring the "
            "server's registers, configuring and binding contexts, suspending, and the reply to the "
            "fault: with all their system calls. Outside: the delivery of the timeout, the system "
            "call with which the handler waits, and what the server executes afterwards until it "
            "waits (in " em { "rollback, waiting" } ", that is inside, since the handler waits for it). "
            "Two reads of the counter, with what lies between them subtracted. 16 faults are "
            "discarded first."
        }
        p {
            "An instruction takes 1 ns in virtual time, and there are no caches: figures do not vary "
            "as the thesis's do, and are to be compared by their ratios. The state that is rolled "
            "back is one word, as little as the thesis's; the cost of restoring more comes in addition. "
            "In " em { "kill" } ", the client is resumed after each measurement, to be killed again."
        }
    }
}
