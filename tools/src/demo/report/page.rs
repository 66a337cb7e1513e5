//! The page: text, tables and drawings in one file.

use anyhow::Result;
use demo_protocol::cipher::{initial_counter, BATCH_BYTES, KEY};
use maud::{html, Markup, PreEscaped, DOCTYPE};

use crate::demo::analysis::{mib, Analysis, Comparison, Run, TOLERANCE_PERCENT};
use crate::demo::input::Input;
use crate::demo::model::Limit;
use crate::demo::report::responses::{self, Distribution};
use crate::demo::report::{throughput, timeline, CIPHERTEXT};
use crate::demo::sweep::{CONTROL_DEADLINE_US, CONTROL_PERIOD_US, DEMAND_BYTES, PERIODS_US};

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 940px; margin: 2em auto; padding: 0 1em; }
h1 { margin-bottom: 0.2em; } h2 { margin-top: 2em; } h3 { margin-bottom: 0.3em; }
svg { max-width: 100%; height: auto; display: block; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; margin: 0.8em 0; }
th, td { padding: 2px 9px; text-align: right; border-bottom: 1px solid #ddd; }
th { font-weight: 600; border-bottom: 1px solid #888; } .first { border-left: 1px solid #ccc; }
.verdict { padding: 0.7em 1em; border-radius: 6px; white-space: pre-line; }
.good { background: #e7f4e8; } .bad { background: #fbe9e7; } td.off { background: #f6b9b0; }
.demand { color: #777; } code, pre { font-size: 14px; background: #f5f5f5; } pre { padding: 0.7em; overflow-x: auto; }
.key i { display: inline-block; width: 0.9em; height: 0.9em; margin: 0 0.4em 0 1.2em; vertical-align: -0.1em; }
";

/// The whole page.
///
/// # Errors
/// A chart cannot be drawn.
pub fn render(analysis: &Analysis, input: &Input) -> Result<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Sandglass: a shared server, isolated in time" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "A shared server, isolated in time" }
                (introduction(analysis, input))
                h2 { "Throughput against budget" }
                (throughput_section(analysis)?)
                h2 { "Response times of HIGH" }
                (responses_section(analysis)?)
                h2 { "Who ran on whose scheduling context" }
                (timeline_section(analysis)?)
                h2 { "The ciphertext" }
                (ciphertext_section(input))
            }
        }
    };
    Ok(page.into_string())
}

fn introduction(analysis: &Analysis, input: &Input) -> Markup {
    let failures = analysis.failures();
    let runs = analysis.runs().len();
    html! {
        p {
            "Clients A and B, each in an address space of its own and untrusted, ask one "
            "server to encrypt " code { (input.name()) } " (" (input.len()) " bytes, over and over) "
            "with AES-256. The server is passive: it runs on its clients' scheduling contexts. When "
            "a client's budget runs out in the server, a timeout handler answers the client with how "
            "far the work came, and sends the server back to wait for the next request. Beside them, "
            "HIGH has a deadline every " (CONTROL_PERIOD_US / 1000) " ms, and LOW burns what is left."
        }
        p {
            "The budgets of A and B add up to their period. Each of the " (runs) " points below is a "
            "virtual machine of its own, with one core that executes one instruction per nanosecond "
            "of virtual time: the figures are the same on every run, on every host."
        }
        @if failures.is_empty() {
            p.verdict.good { (analysis.summary()) }
        } @else {
            p.verdict.bad { @for failure in &failures { (failure) "\n" } }
        }
    }
}

fn throughput_section(analysis: &Analysis) -> Result<Markup> {
    let mut sections = Vec::new();
    for period_us in PERIODS_US {
        let chart = throughput::chart(analysis, period_us)?;
        let model = analysis.model(period_us);
        sections.push(html! {
            h3 { "Period " (period_us / 1000) " ms" }
            (PreEscaped(chart))
            (table(analysis, period_us))
            p.demand {
                "The maximum, what a client with all of the period gets, is "
                (format!("{:.2} MiB/s", mib(model.maximum))) "; HIGH takes "
                (format!("{:.2} %", model.control_share * 100.0)) " of the processor."
            }
        });
    }
    Ok(html! {
        p {
            "This is Figure 8.6 of Lyons' thesis. The ideal line: a client's throughput is proportional to its budget, until it gets what "
            "it wants (" (DEMAND_BYTES / 1024) " KiB per period; then it "
            "sleeps until the next one). Where both budgets, with HIGH's time, exceed the processor, "
            "both shrink in the same proportion. A client with all of the period is the exception: "
            "alone, it never sleeps, and is the maximum. Where the processor is the limit, a distance "
            "of more than " (TOLERANCE_PERCENT) " % of the maximum fails the demo. Rollbacks and "
            "what they throw away, up to " (BATCH_BYTES) " bytes each, are the distance to be seen."
        }
        @for section in sections { (section) }
    })
}

fn table(analysis: &Analysis, period_us: u64) -> Markup {
    html! {
        table {
            tr {
                th colspan="2" { "budget, %" }
                th.first colspan="3" { "A, MiB/s" }
                th.first colspan="3" { "B, MiB/s" }
                th.first colspan="2" { "rollbacks" }
                th.first colspan="2" { "HIGH" }
            }
            tr {
                th { "A" } th { "B" }
                @for _ in 0..2 { th.first { "measured" } th { "ideal" } th { "off, %" } }
                th.first { "A" } th { "B" }
                th.first { "missed" } th { "longest, ms" }
            }
            @for run in analysis.runs_of(period_us) { (row(analysis, run)) }
        }
    }
}

fn row(analysis: &Analysis, run: &Run) -> Markup {
    let measurement = &run.measurement;
    html! {
        tr {
            @for percent in run.point.percents { td { (percent) } }
            @for client in analysis.compare(run) { (cells(&client)) }
            td.first { (measurement.rollbacks[0]) }
            td { (measurement.rollbacks[1]) }
            td.first.off[measurement.control.misses > 0] { (measurement.control.misses) }
            td { (format!("{:.3}", measurement.longest_response_ns() as f64 / 1e6)) }
        }
    }
}

fn cells(client: &Comparison) -> Markup {
    let is_demand = client.ideal.limit == Limit::Demand;
    html! {
        td.first { (format!("{:.2}", mib(client.throughput))) }
        td { (format!("{:.2}", mib(client.ideal.throughput))) }
        td.off[client.is_off()].demand[is_demand] { (format!("{:+.2}", client.deviation)) }
    }
}

fn responses_section(analysis: &Analysis) -> Result<Markup> {
    let chart = responses::chart(analysis)?;
    let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
    Ok(html! {
        p {
            "The HPET releases HIGH every " (CONTROL_PERIOD_US / 1000) " ms; it must be done "
            (format!("{:.0}", CONTROL_DEADLINE_US as f64 / 1000.0)) " ms later. Nearly all of its "
            "response time is its own work, whatever A, B and LOW do."
        }
        (PreEscaped(chart))
        table {
            tr {
                th { "period of A and B" } th { "releases" } th { "missed" }
                th { "shortest, ms" } th { "median" } th { "99 %" } th { "longest" }
            }
            @for period_us in PERIODS_US {
                @let distribution = Distribution::of_period(analysis, period_us);
                @let misses: u64 = analysis
                    .runs_of(period_us)
                    .map(|run| run.measurement.control.misses)
                    .sum();
                tr {
                    td { (period_us / 1000) " ms" }
                    td { (distribution.count()) }
                    td.off[misses > 0] { (misses) }
                    @for permille in [0, 500, 990, 1000] {
                        td { (ms(distribution.quantile_ns(permille))) }
                    }
                }
            }
        }
    })
}

fn timeline_section(analysis: &Analysis) -> Result<Markup> {
    let mut sections = Vec::new();
    let by_period = PERIODS_US
        .into_iter()
        .flat_map(|period| analysis.runs_of(period));
    for run in by_period.filter(|run| run.point.shows_timeline) {
        let [a, b] = run.point.percents;
        let chart = timeline::chart(run)?;
        sections.push(html! {
            h3 { "Period " (run.point.period_us / 1000) " ms: A has " (a) " %, B " (b) " %" }
            (PreEscaped(chart))
        });
    }
    let [colour_a, colour_b] = throughput::COLOURS;
    let [a, b, own] = [colour_a, colour_b, timeline::OWN_COLOUR].map(
        |plotters::style::RGBColor(red, green, blue)| {
            format!("background: rgb({red},{green},{blue})")
        },
    );
    let [mean_us, longest_us] = analysis.rollback_us();
    Ok(html! {
        p {
            "The last period of the measured window. Rows are threads, by priority; colours say whose "
            "scheduling context they ran on. The server has none of its own."
        }
        p.key {
            i style=(a) {} "A's" i style=(b) {} "B's" i style=(own) {} "their own"
        }
        @for section in sections { (section) }
        p {
            "A budget that is used in pieces, because HIGH came between, comes back in pieces. Where "
            "a piece ends, the server is rolled back even if the client's next piece is there already: "
            "the client asks again at once. A rollback keeps the handler busy for "
            (format!("{mean_us:.1} µs on average, and {longest_us:.1} µs at most, HIGH included")) "."
        }
    })
}

fn ciphertext_section(input: &Input) -> Markup {
    html! {
        p {
            "Every byte that the clients received was checked: on the machine by a digest, and here "
            "against what an implementation of AES that shares nothing with the server's computes. "
            code { (CIPHERTEXT) } " is what A received for " code { (input.name()) } ", "
            (input.len()) " bytes of AES-256-CTR. Whoever has OpenSSL can decrypt it:"
        }
        pre {
            "openssl enc -d -aes-256-ctr -K " (hex(&KEY)) " \\\n    -iv " (hex(&initial_counter(1, 0)))
            " -in " (CIPHERTEXT)
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
