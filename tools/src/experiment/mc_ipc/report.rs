//! The report: Figure 2, what was seen of each phase, and the paper's statements.

use anyhow::Result;
use maud::{html, Markup, PreEscaped};

use super::super::report::{Data, Report, Section};
use super::super::scatter::{Phase, Scatter};
use super::runs::{ms, Outcome, Protocol, Series, PAPER, PAPER_CORES, PHASES};
use super::statements::{self, STATEMENTS};
use crate::beside::figures::Figure;
use crate::values;

/// What the plots show, ms.
const SHOWN: std::ops::Range<f64> = 1.0..400.0;

/// The report on `outcomes`, whose phases took so long each.
///
/// # Errors
/// A plot cannot be drawn.
pub fn of(outcomes: &[Outcome], phase_ms: u64) -> Result<Report> {
    Ok(Report {
        title: "A key server for clients that fail",
        claim: "By MC-IPC, no request was delayed beyond its bound, whatever others did, on one, two and four cores; the other \
                orders' bounds are exceeded where others fail."
            .to_owned(),
        failures: failures(outcomes),
        table: table(outcomes),
        introduction: introduction(phase_ms),
        sections: sections(outcomes, phase_ms)?,
        comparison: statements::comparison(outcomes),
        method: method(),
        data: vec![Data {
            name: "key-server.csv",
            content: csv(outcomes),
        }],
        figures: figures(outcomes),
    })
}

/// All series, those of the paper first.
fn series(outcomes: &[Outcome]) -> Vec<Series<'_>> {
    let mut series = PAPER
        .map(|of| Series::of(outcomes, PAPER_CORES, of))
        .to_vec();
    for outcome in outcomes {
        let run = outcome.run;
        let key = |of: &Series<'_>| (of.cores, of.protocol, of.time);
        let known = |of: &Series<'_>| key(of) == (run.cores, run.protocol, run.time);
        if !series.iter().any(known) {
            series.push(Series::of(outcomes, run.cores, (run.protocol, run.time)));
        }
    }
    series
}

fn title(series: &Series<'_>) -> String {
    let cores = match series.cores {
        1 => "one core".to_owned(),
        cores => format!("{cores} cores"),
    };
    format!(
        "{}, the server {}, {cores}",
        series.protocol.name(),
        series.time.name()
    )
}

/// What must hold.
fn failures(outcomes: &[Outcome]) -> Vec<String> {
    let mut failures = Vec::new();
    for series in series(outcomes) {
        let phases = (1..=PHASES).map(|phase| (phase, series.phase(phase)));
        for (phase, seen) in phases {
            if seen.requests == 0 {
                failures.push(format!("{}: no request in phase {phase}", title(&series)));
            }
            if series.protocol == Protocol::McIpc && seen.above > 0 {
                failures.push(format!(
                    "{}: in phase {phase} {} requests waited longer than the bound of {:.0} ms, up to {:.2} ms",
                    title(&series),
                    seen.above,
                    ms(series.bound_ns()),
                    seen.longest_ms()
                ));
            }
        }
    }
    // A study in which nothing goes wrong says nothing of who is shielded from it.
    for (phase, statement) in (1..).zip(&STATEMENTS) {
        let seen = statements::exceeded(outcomes, phase);
        for protocol in statement.exceeded {
            if !seen.iter().any(|series| series.protocol == *protocol) {
                failures.push(format!(
                    "{} was not to keep its bound in phase {phase}, and did",
                    protocol.name()
                ));
            }
        }
    }
    failures
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = format!("{:<60} {:>6}", "longest delay of T1, ms", "bound");
    for phase in 1..=PHASES {
        text += &format!(" {:>8}", format!("phase {phase}"));
    }
    text += "\n";
    for series in series(outcomes) {
        text += &format!("{:<60} {:>6.0}", title(&series), ms(series.bound_ns()));
        for phase in 1..=PHASES {
            let seen = series.phase(phase);
            let mark = if seen.above > 0 { "!" } else { "" };
            text += &format!(" {:>8}", format!("{mark}{:.2}", seen.longest_ms()));
        }
        text += "\n";
    }
    text + "!: above the bound\n"
}

fn introduction(phase_ms: u64) -> Markup {
    html! {
        p {
            "A key server timestamps and signs packets for fourteen clients, which do not trust each other: four of high "
            "criticality, with slots of a table, and ten of low criticality, with budgets. An operation takes 2 ms. Others "
            "fail or are launched in eight phases, of " (phase_ms / 1000) " s each; what is observed is T1, of high "
            "criticality, which does nothing wrong. Each of its requests is a point."
        }
    }
}

fn sections(outcomes: &[Outcome], phase_ms: u64) -> Result<Vec<Section>> {
    let mut sections = vec![Section {
        title: "The phases".to_owned(),
        content: html! {
            ol { @for statement in &STATEMENTS { li { (statement.what) } } }
        },
    }];
    for (index, series) in series(outcomes).iter().enumerate() {
        let letter = ["a", "b", "c"].get(index);
        let figure = letter.map_or(String::new(), |letter| format!(" (Figure 2{letter})"));
        sections.push(Section {
            title: format!("{}{figure}", title(series)),
            content: html! {
                (PreEscaped(scatter(series, phase_ms).draw()?))
                (seen(series))
            },
        });
    }
    Ok(sections)
}

fn scatter(series: &Series<'_>, phase_ms: u64) -> Scatter {
    let seconds = |phase: usize| phase as f64 * phase_ms as f64 / 1000.0;
    let phases = (0..PHASES).map(|phase| Phase {
        name: format!("phase {}", phase + 1),
        range: seconds(phase)..seconds(phase + 1),
    });
    let points = series.requests();
    let points = points.map(|request| (request.at_ns as f64 / 1e9, ms(request.delay_ns)));
    let bound = ms(series.bound_ns());
    let assumption = match series.protocol {
        Protocol::McIpc => "",
        Protocol::Fifo | Protocol::Priority => ", if nobody fails",
    };
    Scatter {
        x: "time of the request, s",
        y: "delay, ms",
        phases: phases.collect(),
        range: SHOWN,
        bound,
        bound_name: format!("bound: {bound:.0} ms{assumption}"),
        points: points.collect(),
    }
}

fn seen(series: &Series<'_>) -> Markup {
    html! {
        table {
            tr { th.name { "phase" } th { "requests" } th { "mean, ms" } th { "longest, ms" } th { "above the bound" } }
            @for phase in 1..=PHASES {
                @let seen = series.phase(phase);
                tr {
                    td.name { (phase) } td { (seen.requests) } td { (format!("{:.2}", seen.mean_ms())) }
                    td { (format!("{:.2}", seen.longest_ms())) } td { (seen.above) }
                }
            }
        }
    }
}

fn method() -> Markup {
    html! {
        p {
            "The runs are in parallel virtual time: the kernel that ships, and the driver of gates that ships, on a simulated "
            "machine whose cores have a clock each. What clients compute, and in which order that happens, is random by the "
            "seed. A delay is from a request to its answer. The bounds are the paper's, with an operation of 2 ms, all included: "
            "MC-IPC's is (1 + 2m) times that on m cores (theorem 1), FIFO-IPC's 14 times, one for each client, and PRIO-IPC's 4 "
            "times."
        }
        p {
            "The paper's other orders have a server on its own time, as in the first three plots; with the time of clients, "
            "a client that floods is served on its own budget, and whoever waits pays for the server. Reservations of low "
            "criticality have fixed priorities here, where the paper orders them by deadlines: T1 has none on its core. The "
            "server does not compute signatures: the operation is a length of time. What it would be on a machine, " code {
            "systems/signature-tests" } " measures."
        }
    }
}

fn csv(outcomes: &[Outcome]) -> String {
    let header = [
        "cores", "protocol", "time", "seed", "phase", "job", "at_ns", "delay_ns", "bound_ns",
    ];
    let lines = outcomes.iter().flat_map(|outcome| {
        let run = outcome.run;
        let requests = (1u64..).zip(&outcome.requests);
        requests.map(move |(job, request)| {
            (
                run.cores,
                run.protocol.argument(),
                run.time.argument(),
                run.seed,
                request.phase,
                job,
                request.at_ns,
                request.delay_ns,
                outcome.bound_ns,
            )
        })
    });
    values::text(header, lines)
}

fn figures(outcomes: &[Outcome]) -> Vec<Figure> {
    let all = series(outcomes).into_iter().flat_map(|series| {
        (1..=PHASES).map(move |phase| {
            let name = format!("{}, phase {phase}: longest, ms", title(&series));
            Figure::new(name, series.phase(phase).longest_ms())
        })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::super::runs::{Request, Run, Time};
    use super::*;

    /// One request in each phase, with delays in ms.
    fn outcome(of: (Protocol, Time), bound_ms: u64, delays: [u64; PHASES]) -> Outcome {
        let requests = (1..).zip(delays).map(|(phase, delay)| Request {
            phase,
            at_ns: phase as u64 * 1_000_000_000 - 1,
            delay_ns: delay * 1_000_000,
        });
        Outcome {
            run: Run {
                cores: PAPER_CORES,
                protocol: of.0,
                time: of.1,
                seed: 1,
            },
            bound_ns: bound_ms * 1_000_000,
            requests: requests.collect(),
        }
    }

    /// As in the paper.
    fn outcomes() -> [Outcome; 3] {
        [
            outcome(PAPER[0], 18, [5, 6, 9, 7, 7, 8, 9, 7]),
            outcome(PAPER[1], 28, [6, 8, 40, 9, 9, 20, 20, 300]),
            outcome(PAPER[2], 8, [5, 6, 6, 7, 100, 32, 60, 7]),
        ]
    }

    #[test]
    fn what_the_paper_saw_agrees_with_it() {
        let report = of(&outcomes(), 1_000).unwrap();
        assert_eq!(report.failures, Vec::<String>::new());
        let text = report.text();
        assert!(!text.contains("differs"), "{text}");
        assert!(text.contains("!300.00"), "{text}");
        assert_eq!(report.data[0].content.lines().count(), 1 + 3 * PHASES);
        let plots = report
            .sections
            .iter()
            .map(|of| of.content.0.matches("<svg").count());
        assert_eq!(plots.sum::<usize>(), 3);
    }

    #[test]
    fn a_delay_beyond_the_bound_of_mc_ipc_fails() {
        let mut late = outcomes();
        late[0].requests[5].delay_ns = 18_000_001;
        let report = of(&late, 1_000).unwrap();
        assert_eq!(report.failures.len(), 1, "{:?}", report.failures);
        assert!(
            report.failures[0].contains("in phase 6"),
            "{:?}",
            report.failures
        );
    }

    #[test]
    fn an_order_that_keeps_its_bound_where_the_paper_s_does_not_fails() {
        let mut shielded = outcomes();
        shielded[1].requests[7].delay_ns = 28_000_000;
        let report = of(&shielded, 1_000).unwrap();
        assert!(
            report.failures[0].contains("FIFO-IPC was not to keep"),
            "{:?}",
            report.failures
        );
        assert!(report.text().contains("differs: phase 8"));
    }

    /// One more than the paper's is no failure: it is told, with the reason.
    #[test]
    fn another_bound_that_is_exceeded_is_told() {
        let mut more = outcomes();
        more[2].requests[3].delay_ns = 9_000_000;
        let report = of(&more, 1_000).unwrap();
        assert_eq!(report.failures, Vec::<String>::new());
        let text = report.text();
        assert!(
            text.contains("differs: phase 4") && text.contains("one request more"),
            "{text}"
        );
    }
}
