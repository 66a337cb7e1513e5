//! The report: the protocols side by side.

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::chart::{
    self, Axes, Curve, Datum, Horizontal, SeriesLabelPosition, Style, COLOURS,
};
use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::results::{Outcome, Results};
use super::rounds::TASKS;
use crate::beside::figures::Figure;
use crate::values;

/// The report on all variants.
///
/// # Errors
/// A chart cannot be drawn.
pub fn of(results: &Results) -> Result<Report> {
    Ok(Report {
        title: "Resource sharing: who waits for whom, and for how long",
        claim: "Under each protocol the high task is blocked for no longer than the textbook \
                says, plus what the protocol was measured to cost."
            .to_owned(),
        failures: results.failures(),
        table: table(results),
        introduction: introduction(),
        sections: vec![
            Section {
                title: "Blocking".to_owned(),
                content: blocking(results)?,
            },
            Section {
                title: "Making a thread".to_owned(),
                content: spawned(results),
            },
            Section {
                title: "All figures".to_owned(),
                content: rows(results),
            },
        ],
        comparison: comparison(results),
        method: method(),
        figures: figures(results),
        data: vec![Data {
            name: "rounds.csv",
            content: csv(results),
        }],
    })
}

const HEADER: [&str; 7] = [
    "protocol",
    "blocking",
    "bound",
    "of middle",
    "preemptions",
    "resets",
    "cost",
];

/// The fields of a line: what [`HEADER`] says.
fn fields(outcome: &Outcome) -> [String; 7] {
    let optional = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
    let has_all_tasks = outcome.variant.has_all_tasks();
    let middle = has_all_tasks
        .then(|| outcome.blocking_of_middle())
        .flatten();
    [
        outcome.variant.name.to_owned(),
        outcome.blocking().to_string(),
        optional(outcome.bound()),
        optional(middle),
        outcome.preemptions().to_string(),
        format!("{}/{}", outcome.resets(), outcome.log.rounds.len()),
        outcome.log.cost[1].to_string(),
    ]
}

fn table(results: &Results) -> String {
    let mut text = String::new();
    let mut line = |fields: [String; 7]| {
        let [name, rest @ ..] = fields;
        text += &format!("{name:<24}");
        for field in rest {
            text += &format!("{field:>13}");
        }
        text += "\n";
    };
    line(HEADER.map(str::to_owned));
    results.0.iter().for_each(|outcome| line(fields(outcome)));
    for (name, [threads, cost]) in made(results) {
        text += &format!("\n{name}: {threads} threads made, none for more than {cost}");
    }
    text
        + "\n\nblocking: the longest delay of the high task, in instructions; bound: the textbook's, \
            of measured requests;\npreemptions: in all rounds; cost: a request that asks for nothing, mean of 16\n"
}

/// Variants whose servers made threads: how many, and what the most expensive one cost.
fn made(results: &Results) -> impl Iterator<Item = (&'static str, [u64; 2])> + '_ {
    let outcomes = results.0.iter();
    outcomes.filter_map(|outcome| Some((outcome.variant.name, outcome.log.spawned?)))
}

fn spawned(results: &Results) -> Markup {
    html! {
        p {
            "Under stack spawning a request that finds all threads of its server busy gets one of its "
            "own, which is made in that moment, on its client's budget, and used again afterwards. "
            "Where no request waits, the first thread suffices; where a client's budget runs out in "
            "the store, the high task's request has another made, once."
        }
        table {
            tr { th { "protocol" } th { "threads made" } th { "most expensive one, instructions" } }
            @for (name, [threads, cost]) in made(results) {
                tr { td { (name) } td { (threads) } td { (cost) } }
            }
        }
    }
}

fn rows(results: &Results) -> Markup {
    html! {
        table {
            tr { @for name in HEADER { th { (name) } } th.name { "textbook" } }
            @for outcome in &results.0 {
                tr {
                    @for field in fields(outcome) { td { (field) } }
                    td.name { (outcome.variant.textbook) }
                }
            }
        }
    }
}

fn blocking(results: &Results) -> Result<Markup> {
    let (measured, bounds): (Vec<_>, Vec<_>) = results
        .0
        .iter()
        .filter(|outcome| outcome.variant.has_all_tasks())
        .enumerate()
        .map(|(x, outcome)| {
            let micros = |instructions: u64| instructions as f64 / 1000.0;
            let measured = Datum::new(x as f64, micros(outcome.blocking()));
            let bound = outcome.bound().map(|bound| Datum {
                x: x as f64,
                y: micros(bound),
                range: None,
            });
            (measured, bound)
        })
        .unzip();
    let labels = results
        .0
        .iter()
        .filter(|outcome| outcome.variant.has_all_tasks())
        .map(|outcome| outcome.variant.name.to_owned());
    let labels: Vec<String> = labels.collect();
    let end = labels.len() as f64 - 0.5;
    let axes = Axes {
        x: "protocol",
        y: "µs",
        horizontal: Horizontal::Labels(labels, -0.5..end),
        legend: SeriesLabelPosition::UpperRight,
    };
    let curve = |label: &str, colour: usize, style, points| Curve {
        label: label.to_owned(),
        colour: COLOURS[colour],
        style,
        points,
    };
    let curves = [
        curve(
            "longest blocking of the high task",
            0,
            Style::Filled,
            measured,
        ),
        curve(
            "textbook's bound, of measured requests",
            1,
            Style::Hollow,
            bounds.into_iter().flatten().collect(),
        ),
    ];
    let svg = chart::draw(&axes, &curves)?;
    Ok(html! {
        p {
            "The longest that the high task was delayed, over all moments at which the tasks were "
            "released. Without a protocol there is no bound: the delay grows with what the middle "
            "task does, which shares nothing."
        }
        (PreEscaped(svg))
    })
}

fn introduction() -> Markup {
    html! {
        p {
            "In 1997 the computer of the Mars Pathfinder reset itself again and again: a task of high "
            "priority waited for a resource that a low one held, which a task in the middle kept from "
            "running; the watchdog noticed that the high one missed its deadline (thesis, 2.3). Here "
            "is that workload: a high task that uses two resources, " em { "bus" } " and " em { "store" }
            "; a middle one that uses none; a low one that holds the bus and asks for the store "
            "meanwhile (a nested request); and a lowest one that holds the store. A conductor releases "
            "them at all the moments that hurt. Clients and servers are the same programs under every "
            "protocol."
        }
        p {
            em { "Starved" } ": the lowest task's budget runs out while the store works for it. "
            em { "Device" } ": its request waits for a device of the store instead."
        }
    }
}

fn comparison(results: &Results) -> Vec<Comparison> {
    let micros = |name| {
        let outcome = results.find(name);
        outcome.map_or(0, |outcome| outcome.blocking() / 1000)
    };
    let cost = |name| results.find(name).map_or(0, |outcome| outcome.log.cost[1]);
    let preemptions = |name| results.find(name).map_or(0, Outcome::preemptions);
    let line = |what: &str, paper: &str, measured: String, agrees: bool, why: &str| Comparison {
        what: what.to_owned(),
        paper: paper.to_owned(),
        measured,
        verdict: Agreement::of(agrees),
        why: why.to_owned(),
    };
    vec![
        line(
            "no protocol (2.3)",
            "blocked for an unbounded period; unexpected resets",
            format!(
                "{} µs; {} µs if the middle task works 1,000 µs longer; resets in {} rounds",
                micros("none"),
                micros("none, longer"),
                results.find("none").map_or(0, Outcome::resets)
            ),
            micros("none, longer") >= micros("none") + 900,
            "",
        ),
        line(
            "priority inversion bound (Figure 2.4)",
            "original ceiling lowest, inheritance higher",
            format!(
                "original ceiling {} µs, immediate {} µs, inheritance {} µs",
                micros("original ceiling"),
                micros("immediate ceiling"),
                micros("inheritance")
            ),
            micros("original ceiling") < micros("inheritance"),
            "the immediate ceiling has the original's bound, and less overhead",
        ),
        line(
            "cost (2.3.2, 6.2.1)",
            "inheritance has large system overheads; the immediate ceiling is simple",
            format!(
                "instructions of an empty request: ceiling {}, inheritance {}, original ceiling {}",
                cost("immediate ceiling"),
                cost("inheritance"),
                cost("original ceiling")
            ),
            cost("inheritance") > cost("immediate ceiling"),
            "",
        ),
        line(
            "preemptions (2.3.2, 2.3.3)",
            "inheritance has more than the immediate ceiling",
            format!(
                "{} in all rounds, and {}",
                preemptions("inheritance"),
                preemptions("immediate ceiling")
            ),
            preemptions("inheritance") > preemptions("immediate ceiling"),
            "",
        ),
        line(
            "a budget that runs out in the server (6.2.4, 6.4.2)",
            "blocked until replenishment; bandwidth inheritance finishes the request on the \
             pending client's context",
            format!(
                "inheritance {} µs, bandwidth inheritance {} µs",
                micros("inheritance, starved"),
                micros("bandwidth inh., starved")
            ),
            micros("inheritance, starved") > 10 * micros("bandwidth inh., starved"),
            "",
        ),
        line(
            "migrating threads (6.4.2)",
            "contexts of clients transfer to a stack of their own in the server",
            format!(
                "a budget that runs out in the server: ceiling {} µs, worker pool {} µs, stack \
                 spawning {} µs",
                micros("ceiling, starved"),
                micros("worker pool, starved"),
                micros("stack spawning, starved")
            ),
            micros("ceiling, starved") > 10 * micros("stack spawning, starved"),
            "a client with budget continues; data that requests share need a lock",
        ),
        line(
            "blocking servers (6.4.2)",
            "block on the endpoint, waiting for the interrupt or further requests",
            format!(
                "a request waits for a device: ceiling {} µs, blocking server {} µs, worker pool {} \
                 µs, stack spawning {} µs",
                micros("ceiling, device"),
                micros("blocking, device"),
                micros("worker pool, device"),
                micros("stack spawning, device")
            ),
            micros("ceiling, device") > 3 * micros("blocking, device"),
            "the rest is the device's own work, at a priority above all tasks",
        ),
        line(
            "best effort (6.4.2)",
            "the server executes on its own budget, without isolation",
            format!(
                "{} µs when the holder's budget runs out; an empty request costs {} instructions, \
                 under the ceiling {}",
                micros("best effort, starved"),
                cost("best effort"),
                cost("immediate ceiling")
            ),
            micros("best effort, starved") < 1000,
            "",
        ),
    ]
}

fn method() -> Markup {
    html! {
        p {
            "A round: each task is released once, by a timer's interrupt, at moments that are swept; the "
            "delay of a task is its response, from release to end, less its response when it is released "
            "alone. So the delay of the high task has everything in it that the others cause: their "
            "requests, the protocol's work for them, and the conductor's three other releases. The bound "
            "is the textbook's, with what the requests of the low tasks take when they are alone, "
            "protocol included; the claim allows, beyond it, four requests' cost and three releases."
        }
        p {
            "A preemption is an interruption of a task's or server's work of at least 15 µs: those of "
            "the conductor and of the proxy are shorter. The watchdog looks at the high task's deadline, "
            "900 µs after its release; it counts, and lets the round go on, so that the whole delay is "
            "seen. " em { "Of middle" } ": the delay of the middle task beyond the high task's own "
            "response; where it is large the low tasks' work went before it, as under a ceiling."
        }
        p {
            "Some columns say less than they seem. " em { "Worker pool" } " and " em { "stack spawning" }
            " serve requests side by side: nothing here needs exclusion, so no lock is among the "
            "costs. The workers have the high task's priority, and the thread that wakes goes first among "
            "equals; spawned threads are above their spawner, which is at the ceiling, and so above "
            "the high task, which waits for one of them as it waits for a section under the ceiling. "
            "Where a budget runs out (" em { "starved" } ") or a request waits (" em { "device" }
            ") neither waits. The " em { "blocking server" } " answers at once where there is no "
            "device, and what its interrupts would run on stays unused. A protocol that has one "
            "thread for a resource, and gives it to one request until that is answered, waits with "
            "the device, whatever it does about priorities: " em { "ceiling, device" } " stands for "
            "all of them."
        }
    }
}

fn figures(results: &Results) -> Vec<Figure> {
    let of = |outcome: &Outcome| {
        let named = |what: &str, value: u64| {
            Figure::new(format!("{}: {what}", outcome.variant.name), value as f64)
        };
        let mut figures = vec![
            named("blocking", outcome.blocking()),
            named("preemptions", outcome.preemptions()),
            named("resets", outcome.resets() as u64),
            named("cost", outcome.log.cost[1]),
        ];
        figures.extend(outcome.bound().map(|bound| named("bound", bound)));
        let middle = outcome.blocking_of_middle();
        figures.extend(middle.map(|blocking| named("blocking of the middle task", blocking)));
        if let Some([threads, cost]) = outcome.log.spawned {
            figures.extend([
                named("threads made", threads),
                named("a thread's cost", cost),
            ]);
        }
        figures
    };
    results.0.iter().flat_map(of).collect()
}

fn csv(results: &Results) -> String {
    let groups = ["release_us", "response", "requests"];
    let of_tasks = groups
        .into_iter()
        .flat_map(|what| TASKS.map(|task| format!("{what}_{task}")));
    let others = ["preemptions", "watchdog"].map(str::to_owned);
    let header = std::iter::once("variant".to_owned())
        .chain(of_tasks)
        .chain(others);
    let lines = results.0.iter().flat_map(|outcome| {
        let variant = outcome.variant.name.replace(',', "");
        let rounds = outcome.log.alone.iter().chain(&outcome.log.rounds);
        rounds.map(move |round| {
            let of_tasks = [round.releases, round.responses, round.requests];
            let others = [round.preemptions, u64::from(round.watchdog)];
            (variant.clone(), of_tasks, others)
        })
    });
    values::text(header, lines)
}
