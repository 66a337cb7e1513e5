//! What the paper says of each phase (section VI-C), beside what was seen.

use super::super::report::{Agreement, Comparison};
use super::runs::{Outcome, Protocol, Series, PAPER, PAPER_CORES};

/// A phase, and what the paper says of it.
pub struct Statement {
    /// What happens.
    pub what: &'static str,
    pub says: &'static str,
    /// Whose bound is exceeded.
    pub exceeded: &'static [Protocol],
    /// Why ours may differ; shown if it does.
    why: &'static str,
}

pub const STATEMENTS: [Statement; super::runs::PHASES] = [
    Statement {
        what: "all is well",
        says: "below the bounds",
        exceeded: &[],
        why: "",
    },
    Statement {
        what: "a client of low criticality, with budget, floods",
        says: "visibly affected, below the bounds",
        exceeded: &[],
        why: "",
    },
    Statement {
        what: "64 clients of low criticality are launched",
        says: "FIFO-IPC's bound is exceeded",
        exceeded: &[Protocol::Fifo],
        why: "",
    },
    Statement {
        what: "R4, of the highest priority, floods",
        says: "no immediate ill effects",
        exceeded: &[],
        why: "a client that floods and is more urgent may have one request more before T1's than PRIO-IPC's bound counts",
    },
    Statement {
        what: "R2 floods, too",
        says: "PRIO-IPC: delays up to 100 ms, T1 is starved",
        exceeded: &[Protocol::Priority],
        why: "",
    },
    Statement {
        what: "R4 launches 15 more clients",
        says: "PRIO-IPC: up to 32 ms; FIFO-IPC elevated, below its bound",
        exceeded: &[Protocol::Priority],
        why: "",
    },
    Statement {
        what: "R2 floods, and the 15 are there",
        says: "PRIO-IPC: many jobs end too late",
        exceeded: &[Protocol::Priority],
        why: "",
    },
    Statement {
        what: "20 clients without reservations on each core",
        says: "FIFO-IPC's bound is exceeded, massively",
        exceeded: &[Protocol::Fifo],
        why: "",
    },
];

/// Of the paper's machine: whose bounds are exceeded in a phase, from 1.
pub fn exceeded(outcomes: &[Outcome], phase: usize) -> Vec<Series<'_>> {
    let all = PAPER.map(|of| Series::of(outcomes, PAPER_CORES, of));
    let exceeded = all
        .into_iter()
        .filter(|series| series.phase(phase).above > 0);
    exceeded.collect()
}

/// Each phase, and that MC-IPC's bound holds in all.
pub fn comparison(outcomes: &[Outcome]) -> Vec<Comparison> {
    let phases = (1..).zip(&STATEMENTS);
    let mut lines: Vec<_> = phases
        .map(|(phase, statement)| of_phase(outcomes, phase, statement))
        .collect();
    let mc_ipc = Series::of(outcomes, PAPER_CORES, PAPER[0]);
    let longest = (1..=STATEMENTS.len()).map(|phase| mc_ipc.phase(phase).longest_ns);
    let longest = longest.max().unwrap_or(0);
    lines.push(Comparison {
        what: "all phases".to_owned(),
        paper: "MC-IPC: below its bound of 18 ms in all cases".to_owned(),
        measured: format!(
            "at most {:.2} ms of {:.0} ms",
            super::runs::ms(longest),
            super::runs::ms(mc_ipc.bound_ns())
        ),
        verdict: Agreement::of(longest <= mc_ipc.bound_ns()),
        why: String::new(),
    });
    lines
}

fn of_phase(outcomes: &[Outcome], phase: usize, statement: &Statement) -> Comparison {
    let exceeded = exceeded(outcomes, phase);
    let protocols: Vec<Protocol> = exceeded.iter().map(|series| series.protocol).collect();
    let told = exceeded.iter().map(|series| {
        let seen = series.phase(phase);
        format!(
            "{}: up to {:.2} ms, {} of {} requests above {:.0} ms",
            series.protocol.name(),
            seen.longest_ms(),
            seen.above,
            seen.requests,
            super::runs::ms(series.bound_ns())
        )
    });
    let told: Vec<String> = told.collect();
    let agrees = protocols == statement.exceeded;
    Comparison {
        what: format!("phase {phase}: {}", statement.what),
        paper: statement.says.to_owned(),
        measured: if told.is_empty() {
            "below the bounds".to_owned()
        } else {
            told.join("; ")
        },
        verdict: Agreement::of(agrees),
        why: if agrees { "" } else { statement.why }.to_owned(),
    }
}
