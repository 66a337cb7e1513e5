//! The report: text, figures and tables, beside what the thesis says.

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::report::{Agreement, Comparison, Data, Report, Section};
use super::points::{Point, Points, Source, FLAT, LEAST_SPEEDUP};
use super::window::Scenario;
use super::{chart, table};
use crate::cores::MOST_CORES;

/// The report on `points`.
///
/// # Errors
/// A chart cannot be drawn.
pub fn of(points: &Points) -> Result<Report> {
    Ok(Report {
        title: "Several cores",
        claim: format!(
            "`multiple` reaches at least {LEAST_SPEEDUP:.1} times the throughput of one core on \
             four; `single` is flat."
        ),
        failures: points.failures(),
        table: table::render(points),
        introduction: introduction(),
        sections: vec![
            Section {
                title: "A shared server (Figure 8.10)".to_owned(),
                content: servers(points)?,
            },
            Section {
                title: "Calls and replies on every core (Figure 8.9)".to_owned(),
                content: pairs(points)?,
            },
        ],
        comparison: comparison(points),
        method: method(),
        figures: Vec::new(),
        data: vec![Data {
            name: "points.csv",
            content: table::csv(points),
        }],
    })
}

/// Beside what the thesis says of its Figure 8.10; it gives no numbers.
fn comparison(points: &Points) -> Vec<Comparison> {
    let mut comparison = Vec::new();
    for source in points.sources() {
        let speedup = |scenario| {
            let series = points.of(source, scenario);
            let last = series.into_iter().find(|point| point.cores == MOST_CORES)?;
            points.speedup(last)
        };
        let mut add = |scenario: Scenario, paper: &str, agrees: fn(f64) -> bool| {
            if let Some(speedup) = speedup(scenario) {
                comparison.push(Comparison {
                    what: format!(
                        "`{}` on {MOST_CORES} cores, {}",
                        scenario.name(),
                        source.name()
                    ),
                    paper: paper.to_owned(),
                    measured: format!("{speedup:.2} times one core"),
                    verdict: Agreement::of(agrees(speedup)),
                    why: String::new(),
                });
            }
        };
        add(Scenario::Single, "no gain", |speedup| {
            (speedup - 1.0).abs() <= FLAT
        });
        add(Scenario::Multiple, "near perfect", |speedup| {
            speedup >= LEAST_SPEEDUP
        });
    }
    comparison
}

fn introduction() -> Markup {
    html! {
        p {
            "The multiprocessor benchmarks of Lyons' thesis, section 8.5, on the SMP kernel with one "
            "to four cores running. Every ciphertext was compared with that of an implementation of "
            "AES that shares nothing with the server's."
        }
    }
}

fn servers(points: &Points) -> Result<Markup> {
    let chart = chart::servers(points)?;
    Ok(html! {
        p {
            "A passive AES server encrypts for one client per core. " em { "Single" } " is one server "
            "for all: it migrates to the core of the client that it serves, and serves one at a time. "
            em { "Multiple" } " is one server per core."
        }
        (PreEscaped(chart))
        (beside_paper())
        (rows(points, |scenario| !matches!(scenario, Scenario::Pairs { .. })))
    })
}

/// What the thesis says of its Figure 8.10: its text gives no numbers.
fn beside_paper() -> Markup {
    html! {
        p { "The thesis, on two platforms of four cores:" }
        blockquote {
            "Single: “[...] effectively serialising access to the server. Consequently, Figure 8.10 "
            "shows there is no gain in throughput when further cores are added.” Multiple: “Due to "
            "the absence of bottlenecks in the stateless AES server, this results in near perfect "
            "scalability.”"
        }
    }
}

fn pairs(points: &Points) -> Result<Markup> {
    let mut charts = Vec::new();
    for source in points.sources() {
        let chart = chart::pairs(points, source)?;
        charts.push(html! {
            h3 { (source.name()) ": calls per million " (table::unit(source)) }
            (PreEscaped(chart))
        });
    }
    Ok(html! {
        p {
            "A client and a passive server of the same priority on each core; empty messages by Call "
            "and ReplyRecv; between two calls the client executes a random number of instructions, at "
            "most N."
        }
        @for chart in charts { (chart) }
        p { "The thesis, on x64 and SABRE:" }
        blockquote {
            "“Results are displayed in Figure 8.9 and show a minor impact on IPC throughput for low "
            "values of N. Scalability is not impacted on SABRE, but is on x64, with the curve "
            "flattening slightly more aggressively on the MCS kernel due to the fastpath overhead.”"
        }
        (rows(points, |scenario| matches!(scenario, Scenario::Pairs { .. })))
    })
}

/// A table of the points whose scenario is wanted.
fn rows(points: &Points, wanted: impl Fn(Scenario) -> bool) -> Markup {
    let mut rows: Vec<&Point> = Vec::new();
    for source in points.sources() {
        let scenarios = table::scenarios(points, source).into_iter();
        for scenario in scenarios.filter(|&scenario| wanted(scenario)) {
            rows.extend(points.of(source, scenario));
        }
    }
    html! {
        table {
            tr {
                th.name { "source" } th.name { "scenario" } th { "cores" } th { "work per million" }
                th { "speed-up" } th.name { "bounded by" } th { "busiest core" } th { "busiest server" }
                th { "kernel, all cores" }
            }
            @for point in rows { (row(points, point)) }
        }
    }
}

fn row(points: &Points, point: &Point) -> Markup {
    let counts = point.counts.as_ref();
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let cores = counts.map(|counts| counts.cores.iter());
    let core = cores
        .clone()
        .and_then(|cores| cores.map(|core| core.user + core.kernel).max());
    let kernel = cores.map(|cores| cores.map(|core| core.kernel).sum());
    let server = counts.and_then(|counts| counts.servers.iter().copied().max());
    html! {
        tr {
            td.name { (point.source.name()) }
            td.name { (table::title(point.scenario)) }
            td { (point.cores) }
            td { (format!("{:.1}", point.throughput())) }
            td { (format!("{:.2}", points.speedup(point).unwrap_or(f64::NAN))) }
            td.name { (point.limit.map_or("", |limit| limit.name())) }
            td { (number(core)) }
            td { (number(server)) }
            td { (number(kernel)) }
        }
    }
}

fn method() -> Markup {
    html! {
        p {
            (Source::Qemu.name()) ": the emulator executes one core after the other, and its clock is "
            "the sum of all. So it is not time that is measured, but what each core executes in the window, "
            "counted by a plugin. The window takes at least as long as the busiest of what does one "
            "thing at a time: a core executes one instruction after the other, a server serves one "
            "client after the other, on whatever core, and the kernel, which has one lock, runs on one "
            "core at a time. That is the time from which the throughput is computed; it is exact as "
            "long as the busiest is never idle. What a core executes while it waits for the kernel's "
            "lock is counted apart, and not part of it: the emulator decides how long that is. The "
            "kernel's way from one client of a server to the next is part of the cores' and the "
            "kernel's counts, not of the server's."
        }
        p {
            (Source::Hosted.name()) ": a discrete-event machine in which the clock of every core "
            "advances on its own, and the kernel that ships decides what happens; what its paths take "
            "is given: what the single-core kernel's benchmarks count, and what the SMP kernel was "
            "counted to execute more."
        }
        p {
            "Where they differ: the emulator counts work, and a core that waits does none. In parallel "
            "virtual time waiting is time, so it shows what the bound leaves out: that cores find the "
            "lock taken although it is not always taken, and the interrupt that tells a core of its "
            "new thread. That is seen where the lock is busy most of the time but not all of it, "
            "between N = 2,000 and N = 32,000."
        }
    }
}
