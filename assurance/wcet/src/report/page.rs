//! The page.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::icicle::picture;
use super::Report;
use crate::flow::Longest;
use crate::limits::Limits;
use crate::results::INTERRUPT_LATENCY;
use crate::tree::{short, tree, Frame};

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1200px; margin: 2em auto; padding: 0 1em; }
h1 { margin-bottom: 0.2em; } h2 { margin-top: 2em; }
svg { width: 100%; height: auto; display: block; margin: 0.8em 0; } svg text { font-size: 11px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; margin: 0.8em 0; }
th, td { padding: 2px 9px; text-align: right; border-bottom: 1px solid #ddd; vertical-align: top; }
th { font-weight: 600; border-bottom: 1px solid #888; } td.name, th.name { text-align: left; }
td.code { font-family: ui-monospace, monospace; font-size: 12px; white-space: pre; text-align: left; }
summary { cursor: pointer; } details, p { margin: 0.2em 0; } .about { color: #555; }
";

/// Parts of a path below so many hundredths of it are left out of the annotated source.
const LEAST_SHARE: i64 = 1;

/// Everything.
pub fn page(report: &Report) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Worst-case execution time of " (report.name) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Worst-case execution time of " (report.name) }
                p.about { "In executed instructions, computed from the binary. Each is an upper bound of what the kernel "
                    "executes from an entry, or from a check for interrupts on, to user level, to idleness or to the next check." }
                h2 { "Bounds" }
                (bounds(report))
                h2 { "The binary" }
                (properties(report))
                @if !report.invocations.is_empty() {
                    h2 { "Invocations" }
                    p.about { "The longest path of a system call through each function that serves invocations. What the compiler "
                        "inlined is a part of the function around it." }
                    (invocations(report))
                }
                h2 { "Worst paths" }
                @for each in report.results {
                    @for (entry, longest) in &each.entries {
                        h3 { (each.case.system.name()) " system, " (each.case.levels) " levels: "
                            (words(entry.name())) ", " (longest.cost) " instructions" }
                        (path(report, longest))
                    }
                }
                h2 { "What is assumed" }
                (assumed(report))
            }
        }
    }
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn bounds(report: &Report) -> Markup {
    html! {
        table {
            tr {
                th.name { "system" } th { "levels" } th { "system call" } th { "interrupt or exception" } th { "interrupt latency" }
            }
            @for each in report.results {
                @let figures = each.figures();
                @let of = |name: &str| figures.iter().find(|figure| figure.0 == name).map_or("–".to_string(), |figure| figure.1.to_string());
                tr {
                    td.name { (each.case.system.name()) }
                    td { (each.case.levels) }
                    td { (of("system_call")) }
                    td { (of("vector")) }
                    td { (of(INTERRUPT_LATENCY)) }
                }
            }
        }
        p.about { "Interrupt latency: the longest of all, and then the delivery of the interrupt to a thread that waits for it." }
    }
}

/// As Table 1 of the paper.
fn properties(report: &Report) -> Markup {
    let each = &report.properties;
    html! {
        table {
            tr { th.name { "what is analysed" } th { "this kernel" } th { "the paper, Table 1" } }
            @for (what, ours, paper) in [
                ("Code, in bytes", each.bytes, 98_704),
                ("Functions", each.functions, 84),
                ("Basic blocks", each.blocks, 1_922),
                ("Loops", each.loops, 68),
                ("Branches", each.branches, 1_410),
            ] {
                tr { td.name { (what) } td { (ours) } td { (paper) } }
            }
        }
        p.about { "Code that an entry can reach. The paper's is seL4 of 2011 for ARM "
            "(" i { "Protected Hard Real-Time: The Next Frontier" } ")." }
    }
}

/// A line for each function and each case; the picture where the spaces have the fewest levels.
fn invocations(report: &Report) -> Markup {
    let fewest = report.invocations.iter().map(|each| each.0.levels).min();
    html! {
        @for (case, function, longest) in report.invocations {
            @let name = short(&report.image.functions[*function].name);
            @if Some(case.levels) == fewest {
                details {
                    summary { code { (name) } ", " (case.levels) " levels: " (longest.cost) }
                    (picture(&tree(report.image, longest)))
                }
            } @else {
                p { code { (name) } ", " (case.levels) " levels: " (longest.cost) }
            }
        }
    }
}

/// The picture, and the source.
fn path(report: &Report, longest: &Longest) -> Markup {
    let root = tree(report.image, longest);
    html! {
        (picture(&root))
        details {
            summary { "Source, line by line" }
            table {
                tr { th.name { "function, and its lines" } th { "instructions" } th { "of its own" } }
                @for call in &root.calls { (source(call, 0, root.cost)) }
            }
        }
    }
}

/// A function, its lines, and what it calls; what costs little is only summed up.
fn source(frame: &Frame, depth: usize, all: i64) -> Markup {
    let indent = "  ".repeat(depth);
    let is_shown = |cost: i64| cost * 100 >= all * LEAST_SHARE;
    let rest: i64 = frame
        .calls
        .iter()
        .map(|call| call.cost)
        .filter(|&cost| !is_shown(cost))
        .sum();
    html! {
        tr {
            td.code { (indent) b { (frame.name) } @if let Some(line) = &frame.from { "  called in " (line) } }
            td { (frame.cost) }
            td { (frame.own()) }
        }
        @for (line, cost) in frame.lines.iter().filter(|(_, &cost)| is_shown(cost)) {
            tr { td.code { (indent) "  " (line) } td {} td { (cost) } }
        }
        @for call in frame.calls.iter().filter(|call| is_shown(call.cost)) { (source(call, depth + 1, all)) }
        @if rest > 0 {
            tr { td.code { (indent) "  … calls of less than " (LEAST_SHARE) " %" } td { (rest) } td {} }
        }
    }
}

/// The limits, with their reasons.
fn assumed(report: &Report) -> Markup {
    html! {
        @for (systems, limits) in &report.limits {
            p { (systems) ":" }
            (limit_table(limits))
        }
    }
}

fn limit_table(limits: &Limits) -> Markup {
    html! {
        table {
            tr { th { "at most" } th.name { "calls or places" } th.name { "because" } }
            @for limit in &limits.limit {
                tr {
                    td { (limit.at_most) @if let Some(more) = limit.after_check { " (" (more) " after a check)" } }
                    td.name { @for name in limit.calls.iter().chain(&limit.marks) { code { (name) } br; } }
                    td.name { (limit.why) }
                }
            }
        }
    }
}
