//! Turns of a time manager's clients are those of their reservations.
//!
//! Marks tell of reservations and turns; how much a client consumes in a turn is what the kernel charges. A turn has a
//! reservation; consumes no more than its budget; is released a period or more after the one before, and due at the
//! reservation's deadline; and one of a hard reservation begins when the one before is due, or later. So what a client
//! consumes in turns, in any period, is its reservation's budget or less. That turns end by their deadlines, [`deadlines`]
//! checks.
//!
//! [`deadlines`]: super::deadlines

use std::collections::BTreeMap;

use super::Findings;
use crate::trace::record::{Event, Mark, Object, Record};

/// µs.
#[derive(Clone, Copy)]
struct Reservation {
    budget_us: u64,
    period_us: u64,
    deadline_us: u64,
    hard: bool,
}

/// A turn, in ticks.
#[derive(Clone, Copy)]
struct Turn {
    number: u64,
    release: u64,
    deadline: Option<u64>,
    consumed: u64,
}

/// A client of a time manager.
#[derive(Default)]
struct Client {
    reservation: Option<Reservation>,
    turn: Option<Turn>,
    /// The last one of the same reservation.
    before: Option<Turn>,
}

pub fn check(findings: &mut Findings<'_>) {
    let mut clients: BTreeMap<Object, Client> = BTreeMap::new();
    for record in &findings.history.records {
        match record.event {
            Event::Mark { subject, mark } => follow(findings, &mut clients, record, subject, mark),
            Event::Charge {
                context, consumed, ..
            } => {
                let client = clients.get_mut(&context);
                if let Some(turn) = client.and_then(|client| client.turn.as_mut()) {
                    turn.consumed += consumed;
                }
            }
            _ => {}
        }
    }
    for (&context, client) in &clients {
        let last = findings.history.records.last();
        if let Some((last, turn)) = last.zip(client.turn) {
            ended(findings, last, context, client, turn);
        }
    }
}

fn follow(
    findings: &mut Findings<'_>,
    clients: &mut BTreeMap<Object, Client>,
    record: &Record,
    context: Object,
    mark: Mark,
) {
    if let Mark::Reservation {
        budget_us,
        period_us,
        deadline_us,
        hard,
    } = mark
    {
        let reservation = Reservation {
            budget_us: budget_us.into(),
            period_us: period_us.into(),
            deadline_us,
            hard,
        };
        let client = clients.entry(context).or_default();
        client.reservation = Some(reservation).filter(|of| of.budget_us > 0);
        client.before = None;
        return;
    }
    // Jobs of threads that have nothing to do with a time manager.
    let Some(client) = clients.get_mut(&context) else {
        return;
    };
    match mark {
        Mark::Release { job, at } => {
            let turn = Turn {
                number: job,
                release: at,
                deadline: None,
                consumed: 0,
            };
            begun(findings, record, context, client, turn);
            client.turn = Some(turn);
        }
        Mark::Deadline { at, .. } => {
            if let Some(turn) = &mut client.turn {
                turn.deadline = Some(at);
                due(findings, record, context, client.reservation, *turn, at);
            }
        }
        Mark::End { .. } => {
            if let Some(turn) = client.turn.take() {
                ended(findings, record, context, client, turn);
                client.before = Some(turn);
            }
        }
        _ => {}
    }
}

/// A turn begins.
fn begun(
    findings: &mut Findings<'_>,
    record: &Record,
    context: Object,
    client: &Client,
    turn: Turn,
) {
    findings.looked().turns += 1;
    let history = findings.history;
    let name = findings.name(context);
    let Some(reservation) = client.reservation else {
        let what = format!("turn {} of `{name}` is of no reservation", turn.number);
        findings.found(record.sequence, record.time, what);
        return;
    };
    let Some(before) = client.before else {
        return;
    };
    let earliest = before.release + reservation.period_us * history.per_us;
    if turn.release < earliest {
        let what = format!(
            "turn {} of `{name}` is released {:.3} µs after the one before, and the reservation's period is {} µs",
            turn.number,
            history.us(turn.release.saturating_sub(before.release)),
            reservation.period_us,
        );
        findings.found(record.sequence, record.time, what);
    }
    let due = before.deadline.filter(|_| reservation.hard);
    if let Some(due) = due.filter(|&due| record.time < due) {
        let what = format!(
            "turn {} of `{name}` begins {:.3} µs before the deadline of the one before, and the reservation is hard",
            turn.number,
            history.us(due - record.time),
        );
        findings.found(record.sequence, record.time, what);
    }
}

/// A turn's deadline is known.
fn due(
    findings: &mut Findings<'_>,
    record: &Record,
    context: Object,
    reservation: Option<Reservation>,
    turn: Turn,
    deadline: u64,
) {
    let history = findings.history;
    let Some(reservation) = reservation else {
        return;
    };
    if deadline != turn.release + reservation.deadline_us * history.per_us {
        let what = format!(
            "turn {} of `{}` is due {:.3} µs after its release, and the reservation's deadline is {} µs",
            turn.number,
            findings.name(context),
            history.us(deadline.saturating_sub(turn.release)),
            reservation.deadline_us,
        );
        findings.found(record.sequence, record.time, what);
    }
}

/// A turn ends, or the trace does.
fn ended(
    findings: &mut Findings<'_>,
    record: &Record,
    context: Object,
    client: &Client,
    turn: Turn,
) {
    let history = findings.history;
    let Some(reservation) = client.reservation else {
        return;
    };
    let budget = reservation.budget_us * history.per_us;
    let since = record
        .time
        .saturating_sub(turn.consumed.saturating_sub(budget));
    let still = findings.standstill.within(record.core, since, record.time);
    let slack = findings.longest_path() + still;
    if turn.consumed > budget + slack {
        let what = format!(
            "turn {} of `{}` consumed {:.3} µs; the reservation's budget is {} µs, and at most {:.3} µs of kernel path and \
             delay would be right beyond it",
            turn.number,
            findings.name(context),
            history.us(turn.consumed),
            reservation.budget_us,
            history.us(slack),
        );
        findings.found(record.sequence, record.time, what);
    }
}
