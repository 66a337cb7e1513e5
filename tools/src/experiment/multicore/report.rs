//! The report: a page that needs nothing else, and the data as CSV.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::points::{Point, Points, Source, LEAST_SPEEDUP};
use super::window::Scenario;
use super::{chart, table};

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 940px; margin: 2em auto; padding: 0 1em; }
h1 { margin-bottom: 0.2em; } h2 { margin-top: 2em; } h3 { margin-bottom: 0.3em; }
svg { max-width: 100%; height: auto; display: block; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; margin: 0.8em 0; }
th, td { padding: 2px 9px; text-align: right; border-bottom: 1px solid #ddd; }
th { font-weight: 600; border-bottom: 1px solid #888; } td.name, th.name { text-align: left; }
.verdict { padding: 0.7em 1em; border-radius: 6px; white-space: pre-line; }
.good { background: #e7f4e8; } .bad { background: #fbe9e7; }
blockquote { color: #555; border-left: 3px solid #ccc; margin-left: 0; padding-left: 1em; }
";

/// Writes the report into `folder`, which exists, over an older one.
///
/// # Errors
/// A file cannot be written, or a chart cannot be drawn.
pub fn write(folder: &Path, points: &Points) -> Result<()> {
    let files = [
        ("index.html", page(points)?),
        ("points.csv", table::csv(points)),
    ];
    for (name, content) in files {
        fs::write(folder.join(name), content).with_context(|| format!("cannot write `{name}`"))?;
    }
    Ok(())
}

/// The whole page.
fn page(points: &Points) -> Result<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Sandglass: several cores" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Several cores" }
                (introduction(points))
                h2 { "A shared server (Figure 8.10)" }
                (servers(points)?)
                h2 { "Calls and replies on every core (Figure 8.9)" }
                (pairs(points)?)
                h2 { "What is counted, and what is not" }
                (method())
            }
        }
    };
    Ok(page.into_string())
}

fn introduction(points: &Points) -> Markup {
    let failures = points.failures();
    html! {
        p {
            "The multiprocessor benchmarks of Lyons' thesis, section 8.5, on the SMP kernel with one "
            "to four cores running. Every ciphertext was compared with that of an implementation of "
            "AES that shares nothing with the server's."
        }
        @if failures.is_empty() {
            p.verdict.good {
                "`multiple` reaches at least " (format!("{LEAST_SPEEDUP:.1}"))
                " times the throughput of one core on four; `single` is flat."
            }
        } @else {
            p.verdict.bad { @for failure in &failures { (failure) "\n" } }
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
            "the sum of all. So not time is measured, but what each core executes in the window, "
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
