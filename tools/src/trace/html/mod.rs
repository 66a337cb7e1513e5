//! The trace as a page of its own, in the manner of the Grasp tool: a row for each thread with its
//! executions, coloured by who pays, releases as arrows up, deadlines as arrows down, what its
//! context has left of its budget, and arrows from thread to thread where time is lent. It can be
//! zoomed and moved; it needs nothing else.

use maud::{html, PreEscaped, DOCTYPE};
use serde::Serialize;

use super::history::History;
use super::record::{Event, Mark, Object};
use super::timeline::Timeline;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What the page draws. Times are µs since the beginning.
#[derive(Serialize)]
struct Data {
    /// Length of the trace.
    end: f64,
    rows: Vec<Row>,
    /// Names of contexts, by the index that executions have.
    payers: Vec<String>,
    /// Time, row that gives, row that gets, whether it is given back.
    arrows: Vec<(f64, usize, usize, bool)>,
    /// Time, the mode that begins.
    modes: Vec<(f64, u64)>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// From, to, core, payer.
    runs: Vec<(f64, f64, u8, usize)>,
    releases: Vec<f64>,
    deadlines: Vec<f64>,
    /// When jobs ended, and whether in time.
    ends: Vec<(f64, bool)>,
    /// Timeout faults and other faults.
    faults: Vec<(f64, &'static str)>,
    /// Time, what is left in µs: of the context with the row's name.
    budget: Vec<(f64, f64)>,
}

/// The page about the system that `title` names.
pub fn page(title: &str, history: &History, timeline: &Timeline) -> String {
    let data = data(history, timeline);
    // Within a script element, only the end tag is special.
    let json = serde_json::to_string(&data)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Trace of " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Trace of " (title) }
                    p {
                        "Scroll to zoom, drag to move, double-click to see all. Executions have the \
                         colour of the thread whose time they use; an outline marks one on the time \
                         of another thread. "
                        span.key { "↑ release" } span.key { "↓ deadline" }
                        span.key { "● job ended" } span.key { "✖ fault" }
                        span.key { "line: budget left" } span.key { "arrow: time lent, or back" }
                    }
                    p #hover { "\u{a0}" }
                }
                canvas #timeline {}
                script { (PreEscaped(format!("const TRACE = {json};"))) (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

fn data(history: &History, timeline: &Timeline) -> Data {
    let us = |time: u64| history.ns(time) as f64 / 1000.0;
    let threads = timeline.threads();
    let row_of = |thread: Object| threads.iter().position(|&known| known == thread);
    let mut payers: Vec<String> = Vec::new();
    let mut rows: Vec<Row> = threads
        .iter()
        .map(|&thread| Row::new(history.name(thread)))
        .collect();
    for run in &timeline.executions {
        let name = history.name(run.context);
        let payer = payers.iter().position(|known| *known == name);
        let payer = payer.unwrap_or_else(|| {
            payers.push(name);
            payers.len() - 1
        });
        if let Some(row) = row_of(run.thread) {
            rows[row]
                .runs
                .push((us(run.from), us(run.to), run.core, payer));
        }
    }
    for left in &timeline.budgets {
        let name = history.name(left.context);
        if let Some(row) = rows.iter_mut().find(|row| row.name == name) {
            row.budget.push((us(left.time), history.us(left.amount)));
        }
    }
    for job in &timeline.jobs {
        let Some(row) = row_of(job.thread).map(|row| &mut rows[row]) else {
            continue;
        };
        row.releases.extend(job.released.map(us));
        row.deadlines.extend(job.deadline.map(us));
        let in_time = |ended| job.deadline.is_none_or(|deadline| ended <= deadline);
        row.ends
            .extend(job.ended.map(|ended| (us(ended), in_time(ended))));
    }
    let mut modes = Vec::new();
    for record in &history.records {
        let (thread, what) = match record.event {
            Event::Timeout { thread, .. } => (thread, "timeout fault"),
            Event::Fault { thread, .. } => (thread, "fault"),
            Event::Mark {
                mark: Mark::Mode { to, .. },
                ..
            } => {
                modes.push((us(record.time), to));
                continue;
            }
            _ => continue,
        };
        if let Some(row) = row_of(thread) {
            rows[row].faults.push((us(record.time), what));
        }
    }
    let arrows = timeline.passings.iter().filter_map(|passing| {
        let (from, to) = (row_of(passing.from)?, row_of(passing.to)?);
        Some((us(passing.time), from, to, passing.back))
    });
    Data {
        end: us(history.end()),
        arrows: arrows.collect(),
        rows,
        payers,
        modes,
    }
}

impl Row {
    fn new(name: String) -> Self {
        Row {
            name,
            runs: Vec::new(),
            releases: Vec::new(),
            deadlines: Vec::new(),
            ends: Vec::new(),
            faults: Vec::new(),
            budget: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn the_page_has_everything_that_the_timeline_has() {
        let history = example::history();
        let timeline = Timeline::of(&history);
        let data = data(&history, &timeline);
        let runs: usize = data.rows.iter().map(|row| row.runs.len()).sum();
        assert_eq!(runs, timeline.executions.len());
        assert_eq!(data.arrows.len(), timeline.passings.len());
        let releases: usize = data.rows.iter().map(|row| row.releases.len()).sum();
        assert!(releases > 0 && releases == timeline.jobs.len());
        let names: Vec<_> = data.rows.iter().map(|row| row.name.as_str()).collect();
        assert!(names.contains(&"client") && names.contains(&"server"));
        let client = data.rows.iter().find(|row| row.name == "client").unwrap();
        assert!(!client.budget.is_empty());
    }

    #[test]
    fn the_page_is_self_contained() {
        let history = example::history();
        let page = page("a <system>", &history, &Timeline::of(&history));
        assert!(page.contains("a &lt;system&gt;"));
        for reference in ["src=", "href=", "http:", "https:", "@import"] {
            assert!(!page.contains(reference), "{reference}");
        }
        assert_eq!(page.matches("</script>").count(), 1);
    }
}
