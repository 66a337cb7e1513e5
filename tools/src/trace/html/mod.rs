//! The trace as a page of its own, in the manner of the Grasp tool: what each core executes, and a row
//! for each thread with its executions, coloured by who pays, releases as arrows up, deadlines as
//! arrows down, what its context has left of its budget, and arrows from thread to thread where time
//! is lent. It can be zoomed and moved; it needs nothing else.

mod data;
mod gates;

use maud::{html, Markup, PreEscaped, DOCTYPE};

use self::data::Data;
use super::history::History;
use super::timeline::Timeline;

const STYLE: &str = include_str!("page.css");
const SCRIPTS: [&str; 3] = [
    include_str!("scale.js"),
    include_str!("paint.js"),
    include_str!("page.js"),
];

/// What the page's marks mean: a drawing in a field of 22 by 16, and words.
const LEGEND: &[(&str, &str)] = &[
    (
        r#"<rect x="1" y="3" width="20" height="10" fill="var(--first)"/>"#,
        "executes, in the colour of the context that pays",
    ),
    (
        r#"<rect x="1" y="5" width="16" height="8" fill="var(--first)" opacity=".5"/><rect x="17" y="3" width="4" height="10" fill="var(--bad)"/>"#,
        "window of a partition, overrun",
    ),
    (
        r#"<rect x="1" y="7" width="9" height="5" fill="var(--ready)"/><rect x="11" y="3" width="10" height="10" fill="var(--second)"/>"#,
        "at a gate: waits; is served, in the colour of who pays",
    ),
    (
        r#"<rect x="1.5" y="3.5" width="19" height="9" fill="var(--second)" stroke="var(--ink)"/>"#,
        "on another thread's time",
    ),
    (
        r#"<rect x="1" y="6" width="20" height="6" fill="var(--ready)"/>"#,
        "ready, waits for its turn",
    ),
    (
        r#"<rect x="1" y="6" width="20" height="6" fill="var(--bad)" opacity=".25"/>"#,
        "waits for its budget",
    ),
    (
        r#"<path d="M1 8H21" stroke="var(--lent)" stroke-dasharray="2 3"/>"#,
        "waits for an answer",
    ),
    (
        r#"<path d="M11 15V3M8 7L11 2L14 7" fill="none" stroke="var(--release)" stroke-width="1.6"/>"#,
        "release",
    ),
    (
        r#"<path d="M11 1V13M8 9L11 14L14 9" fill="none" stroke="var(--deadline)" stroke-width="1.6"/>"#,
        "deadline",
    ),
    (
        r#"<circle cx="7" cy="8" r="3.5" fill="var(--release)"/><circle cx="16" cy="8" r="3.5" fill="var(--bad)"/>"#,
        "job ended: in time, late",
    ),
    (
        r#"<path d="M7 3H15L7 13H15Z" fill="none" stroke="var(--bad)" stroke-width="1.3"/>"#,
        "timeout fault",
    ),
    (
        r#"<path d="M7 4L15 12M7 12L15 4" stroke="var(--bad)" stroke-width="2"/>"#,
        "other fault",
    ),
    (
        r#"<path d="M1 14V3L9 11V3L17 11V3H21V14Z" fill="var(--first)" fill-opacity=".2" stroke="var(--first)"/>"#,
        "budget left",
    ),
    (
        r#"<path d="M7 1V14M4 10L7 15L10 10" fill="none" stroke="var(--lent)"/><path d="M16 15V2M13 6L16 1L19 6" fill="none" stroke="var(--back)"/>"#,
        "time lent, given back",
    ),
];

/// The page about the system that `title` names.
pub fn page(title: &str, history: &History, timeline: &Timeline) -> String {
    let data = Data::of(history, timeline);
    // Within a script element, only the end tag is special.
    let json = serde_json::to_string(&data)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    let turns = match history.cores().len() {
        1 => String::new(),
        cores => format!(", {cores} cores, which the emulator executed in turns"),
    };
    let facts = format!(
        "{:.3} ms, {} threads, {} records{turns}",
        data.end / 1000.0,
        data.rows.len(),
        history.records.len()
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Trace of " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(title, &facts))
                div { canvas #overview {} }
                div { canvas #axis {} }
                main #chart tabindex="0" aria-label="Timeline" { canvas #rows {} }
                footer.line {
                    span.help {
                        "Wheel or W, S: zoom · drag or A, D: move · double-click or 0: all · Shift and drag: \
                         measure · N, P: next, previous fault or late job · /: choose threads"
                    }
                    output #note {}
                }
                div #tip role="tooltip" {}
                script { (PreEscaped(format!("const TRACE = {json};"))) @for script in SCRIPTS { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

fn header(title: &str, facts: &str) -> Markup {
    html! {
        header {
            div.line {
                h1 { "Trace of " (title) }
                span.facts { (facts) }
                div.controls {
                    input #filter type="search" placeholder="threads" aria-label="Show threads whose name contains";
                    button data-act="budgets" aria-pressed="true" { "budgets" }
                    button data-act="arrows" aria-pressed="true" { "lending" }
                    button data-act="out" aria-label="Zoom out" { "−" }
                    button data-act="in" aria-label="Zoom in" { "+" }
                    button data-act="all" { "all" }
                }
            }
            div.line.legend {
                @for (drawing, words) in LEGEND {
                    span.key { svg aria-hidden="true" { (PreEscaped(drawing)) } (words) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

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
