//! What must hold in the emulator, and how it is shown beside the simulation.

use anyhow::Result;
use key_server_study as study;
use maud::{html, Markup, PreEscaped};

use super::super::super::report::{Data, Report, Section};
use super::super::super::scatter::{Phase, Scatter};
use super::super::runs::{ms, Protocol};
use super::system::FACTOR;
use super::{Outcome, Served};
use crate::beside::figures::Figure;
use crate::values;

/// What the plots show, ms of the paper.
const SHOWN: std::ops::Range<f64> = 0.2..400.0;
/// Cycles of a phase from which on queues have time to grow as long as the paper's: what is exceeded by then must be.
const ENOUGH: u64 = 4;

/// Most operations between a request of T1 and its answer, its own included: by MC-IPC whatever happens, by the others if nobody
/// fails.
const fn most(protocol: Protocol) -> u64 {
    match protocol {
        // One core in each of four clusters.
        Protocol::McIpc => sandglass_mc_ipc::bound::requests(1, 4),
        Protocol::Fifo => 4 + 2 * study::LOW_PERIODS_MS.len() as u64,
        Protocol::Priority => 4,
    }
}

/// In which phases others must be before T1 more often than that, as the simulation sees it, too, with a server on the time of its
/// clients. None by PRIO-IPC: a described gate has who asks more often than it says pay a toll, and T1 gets in between.
const fn exceeds(protocol: Protocol) -> &'static [usize] {
    match protocol {
        Protocol::McIpc | Protocol::Priority => &[],
        Protocol::Fifo => &[8],
    }
}

/// Of the requests of T1 in a phase: how many, and the longest delay, ns; the most operations.
fn seen(outcome: &Outcome, phase: usize) -> (usize, u64, u64) {
    outcome
        .observed(phase)
        .fold((0, 0, 0), |(count, longest, most), of| {
            (
                count + 1,
                longest.max(of.delay_ns()),
                most.max(of.operations),
            )
        })
}

/// As times of the paper are.
fn paper_ms(ns: u64) -> f64 {
    ms(ns) / FACTOR as f64
}

/// Adds the runs to a report.
///
/// # Errors
/// A plot cannot be drawn.
pub fn add(report: &mut Report, outcomes: &[Outcome]) -> Result<()> {
    report.failures.extend(outcomes.iter().flat_map(failures));
    report.table += &table(outcomes);
    report.sections.push(Section {
        title: "In the emulator".to_owned(),
        content: introduction(outcomes),
    });
    for outcome in outcomes {
        report.sections.push(Section {
            title: format!("{}, in the emulator", outcome.protocol.name()),
            content: html! {
                (PreEscaped(scatter(outcome).draw()?))
                (phases(outcome))
            },
        });
    }
    report.data.push(Data {
        name: "key-server-emulated.csv",
        content: csv(outcomes),
    });
    let figures = outcomes.iter().flat_map(|outcome| {
        let name = outcome.protocol.name();
        outcome.extent.phases().map(move |phase| {
            Figure::new(
                format!("{name}, in the emulator, phase {phase}: most operations"),
                seen(outcome, phase).2 as f64,
            )
        })
    });
    report.figures.extend(figures);
    Ok(())
}

/// What does not hold.
fn failures(outcome: &Outcome) -> Vec<String> {
    let name = format!("{}, in the emulator", outcome.protocol.name());
    let mut failures = wrong_answers(outcome, &name);
    let most = most(outcome.protocol);
    for phase in outcome.extent.phases() {
        let (count, _, operations) = seen(outcome, phase);
        if count == 0 {
            failures.push(format!("{name}: no request of T1 in phase {phase}"));
        }
        if outcome.protocol == Protocol::McIpc && operations > most {
            failures.push(format!(
                "{name}: in phase {phase}, the server was at {operations} operations between a request of T1 and its answer: at \
                 most {most} would be right"
            ));
        }
        let is_to_exceed =
            exceeds(outcome.protocol).contains(&phase) && outcome.extent.cycles >= ENOUGH;
        if is_to_exceed && operations <= most {
            failures.push(format!(
                "{name}: was not to keep its bound of {most} operations in phase {phase}, and did"
            ));
        }
    }
    failures
}

/// Answers that are missing, or wrong.
fn wrong_answers(outcome: &Outcome, name: &str) -> Vec<String> {
    let mut failures = Vec::new();
    for (number, (client, asked)) in outcome.clients.iter().enumerate() {
        let answered = outcome.of(number).count() as u64;
        if answered != *asked {
            failures.push(format!(
                "{name}: `{client}` made {asked} requests, and {answered} were answered"
            ));
        }
    }
    for of in outcome.served.iter().filter(|of| !of.is_right) {
        failures.push(format!(
            "{name}: `openssl` refuses signature {}, for `{}`",
            of.sequence, outcome.clients[of.client].0
        ));
    }
    let numbers = outcome.served.iter().map(|of| of.sequence);
    if !numbers.eq(1..=outcome.served.len() as u64) {
        failures.push(format!(
            "{name}: the numbers of {} signatures are not those from 1 on, each once",
            outcome.served.len()
        ));
    }
    let times = outcome.served.iter().map(|of| of.signed_ns);
    if !times.is_sorted() {
        failures.push(format!(
            "{name}: times and numbers of signatures are in different orders"
        ));
    }
    failures
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{:<60} {:>6}",
        "in the emulator: most operations until T1's answer", "bound"
    );
    for phase in 1..=study::PHASES {
        text += &format!(" {:>8}", format!("phase {phase}"));
    }
    text += "\n";
    for outcome in outcomes {
        let most = most(outcome.protocol);
        let name = format!("{}, {}", outcome.protocol.name(), signatures(outcome));
        text += &format!("{name:<60} {most:>6}");
        for phase in 1..=study::PHASES {
            let (count, _, operations) = seen(outcome, phase);
            let mark = if operations > most { "!" } else { "" };
            let shown = if count == 0 {
                "-".to_owned()
            } else {
                format!("{mark}{operations}")
            };
            text += &format!(" {shown:>8}");
        }
        text += "\n";
    }
    text
}

/// How many were verified.
fn signatures(outcome: &Outcome) -> String {
    let right = outcome.served.iter().filter(|of| of.is_right).count();
    format!("{right} of {} signatures verified", outcome.served.len())
}

fn introduction(outcomes: &[Outcome]) -> Markup {
    let clients = outcomes.first().map_or(0, |outcome| outcome.clients.len());
    html! {
        p {
            "The same system, described, on the kernel that ships, on four cores of the emulator in virtual time; all times are "
            (FACTOR) " times those of the paper. The server makes real signatures, by RSA with 2048 bits; each was verified by "
            code { "openssl" } ". Of " (clients) " clients, which are fewer than the paper's in phases 3 and 8, each recorded "
            "what it was answered."
        }
        p {
            "Cores take turns in the emulator, by one clock. So an operation takes as long as the others let it, between one "
            "and more than four times what it computes, and its length, on which all bounds rest, is not known: delays are shown, "
            "divided by " (FACTOR) ", beside the paper's bounds, and nothing is claimed of them. What is claimed is counted: "
            "operations that the server was at between a request of T1 and its answer."
        }
    }
}

fn scatter(outcome: &Outcome) -> Scatter {
    let length = (outcome.extent.cycles * study::CYCLE_MS) as f64 / 1000.0;
    let phases = outcome.extent.phases().enumerate();
    let phases = phases.map(|(number, phase)| Phase {
        name: format!("phase {phase}"),
        range: number as f64 * length..(number + 1) as f64 * length,
    });
    let points = outcome.of(0);
    let points = points.map(|of| (paper_ms(of.called_ns) / 1000.0, paper_ms(of.delay_ns())));
    let bound = (most(outcome.protocol) * study::OPERATION_MS) as f64;
    Scatter {
        x: "time of the request, s of the paper",
        y: "delay, ms of the paper",
        phases: phases.collect(),
        range: SHOWN,
        bound,
        bound_name: format!("the paper's bound: {bound:.0} ms"),
        points: points.collect(),
    }
}

fn phases(outcome: &Outcome) -> Markup {
    let most = most(outcome.protocol);
    html! {
        p { (signatures(outcome)) "." }
        table {
            tr {
                th.name { "phase" } th { "requests of T1" } th { "longest delay, ms of the paper" }
                th { "most operations meanwhile" } th { "bound" } th { "requests of all" }
            }
            @for phase in outcome.extent.phases() {
                @let (count, longest, operations) = seen(outcome, phase);
                @let all = outcome.served.iter().filter(|of| of.phase == phase).count();
                tr {
                    td.name { (phase) } td { (count) } td { (format!("{:.2}", paper_ms(longest))) }
                    td { (operations) } td { (most) } td { (all) }
                }
            }
        }
    }
}

fn csv(outcomes: &[Outcome]) -> String {
    let header = [
        "protocol",
        "client",
        "phase",
        "sequence",
        "called_ns",
        "signed_ns",
        "answered_ns",
        "operations",
        "verified",
    ];
    let lines = outcomes.iter().flat_map(|outcome| {
        outcome.served.iter().map(|of: &Served| {
            (
                outcome.protocol.argument(),
                outcome.clients[of.client].0.as_str(),
                of.phase,
                of.sequence,
                of.called_ns,
                of.signed_ns,
                of.answered_ns,
                of.operations,
                of.is_right,
            )
        })
    });
    values::text(header, lines)
}

#[cfg(test)]
mod tests {
    use super::super::Extent;
    use super::*;

    /// T1 has one request in each phase, with so many operations until its answer.
    fn outcome(protocol: Protocol, operations: [u64; study::PHASES]) -> Outcome {
        let served = (1..).zip(operations).map(|(phase, operations)| Served {
            client: 0,
            phase,
            called_ns: phase as u64 * 8_000_000_000,
            signed_ns: phase as u64 * 8_000_000_000 + 1,
            answered_ns: phase as u64 * 8_000_000_000 + 40_000_000,
            sequence: phase as u64,
            operations,
            is_right: true,
        });
        Outcome {
            protocol,
            extent: Extent {
                protocols: &[],
                first: 1,
                last: study::PHASES,
                cycles: ENOUGH,
            },
            clients: vec![("t1".to_owned(), study::PHASES as u64)],
            served: served.collect(),
        }
    }

    #[test]
    fn what_is_seen_is_as_claimed() {
        let mc_ipc = outcome(Protocol::McIpc, [9; 8]);
        let fifo = outcome(Protocol::Fifo, [1, 1, 20, 1, 1, 1, 1, 15]);
        let prio = outcome(Protocol::Priority, [4; 8]);
        for outcome in [&mc_ipc, &fifo, &prio] {
            assert_eq!(failures(outcome), Vec::<String>::new());
        }
        let text = table(&[mc_ipc.clone(), fifo.clone()]);
        assert!(text.contains("8 of 8 signatures verified"), "{text}");
        assert!(text.contains(" !15"), "{text}");
        let lines = csv(&[mc_ipc.clone(), fifo]).lines().count();
        assert_eq!(lines, 1 + 2 * study::PHASES);
        assert!(scatter(&mc_ipc).draw().unwrap().contains("<svg"));
    }

    #[test]
    fn whatever_does_not_hold_is_found() {
        let good = outcome(Protocol::McIpc, [9; 8]);
        let found = |change: fn(&mut Outcome)| {
            let mut bad = good.clone();
            change(&mut bad);
            let failures = failures(&bad);
            assert_eq!(failures.len(), 1, "{failures:?}");
            failures[0].clone()
        };
        assert!(found(|of| of.served[3].operations = 10).contains("in phase 4"));
        assert!(found(|of| of.clients[0].1 += 1).contains("9 requests, and 8"));
        assert!(found(|of| of.served[2].is_right = false).contains("refuses signature 3"));
        assert!(found(|of| of.served[7].sequence = 9).contains("each once"));
        assert!(found(|of| of.served[1].signed_ns = 0).contains("different orders"));
        assert!(found(|of| of.served[0].phase = 2).contains("no request of T1 in phase 1"));
        let kept = outcome(Protocol::Fifo, [14; 8]);
        assert!(failures(&kept)[0].contains("in phase 8, and did"));
    }
}
