//! Traces of real systems that are tampered with, so that the tests see that the checker notices.

pub mod gates;
pub mod supplied;
pub mod turns;
pub mod windows;

use std::collections::BTreeMap;

use sandglass_abi::trace::{Blocked, Gift};

use super::check::{check_with, Promises};
use super::history::History;
use super::record::{Event, Object, Record};

/// A way to tamper with records, and what the checker says then.
struct Tampering {
    name: &'static str,
    tamper: fn(&History, &mut Vec<Record>) -> Option<()>,
    said: &'static str,
}

const TAMPERINGS: &[Tampering] = &[
    Tampering {
        name: "a context consumes more than its budget",
        tamper: |history, records| {
            let (at, budget) = charge_of_budget(records)?;
            if let Event::Charge { consumed, .. } = &mut records[at].event {
                *consumed += budget + history.least_budget;
            }
            Some(())
        },
        said: "is over budget",
    },
    Tampering {
        name: "a thread that preempts another one is passed over",
        tamper: |history, records| {
            let at = preemption(history, records)?;
            let record = records[at];
            // The switch, and who pays then, of that instant.
            let of_switch = |event: &Event| {
                matches!(
                    event,
                    Event::Switch { .. } | Event::Pays { .. } | Event::Charge { .. }
                )
            };
            let mut kept = Vec::new();
            for (i, other) in records.iter().enumerate() {
                if i < at || other.time != record.time || !of_switch(&other.event) {
                    kept.push(*other);
                }
            }
            *records = kept;
            Some(())
        },
        said: "is ready on core",
    },
    Tampering {
        name: "a job does not end",
        tamper: |history, records| {
            let has_deadline = |thread: Object| history.facts(thread).deadline_us.is_some();
            let ends = |event: &Event| matches!(event, Event::Block { thread, why: Blocked::Notification } if has_deadline(*thread));
            let all = records.iter().enumerate();
            let ends: Vec<usize> = all
                .filter(|(_, record)| ends(&record.event))
                .map(|(at, _)| at)
                .collect();
            // One in the middle, when all have started and none is done.
            records.remove(*ends.get(ends.len() / 2)?);
            Some(())
        },
        said: "after its deadline",
    },
    Tampering {
        name: "a context that was lent does not return",
        tamper: |_, records| {
            let is_return = |event: &Event| matches!(event, Event::Return { .. });
            let at = records.iter().position(|record| is_return(&record.event))?;
            records.remove(at);
            Some(())
        },
        said: "never got it back",
    },
    Tampering {
        name: "a context returns that was not lent",
        tamper: |_, records| {
            let is_call = |event: &Event| {
                matches!(
                    event,
                    Event::Donate {
                        gift: Gift::Call,
                        ..
                    }
                )
            };
            let at = last(records, is_call)?;
            records.remove(at);
            Some(())
        },
        said: "does not have it",
    },
];

/// What the checker does not notice of the ways to tamper with `history`, in which all that they
/// need happens.
pub fn unnoticed(history: &History) -> Vec<String> {
    unnoticed_of(TAMPERINGS, history, &Promises::default())
}

/// The same of these ways, with what is described.
fn unnoticed_of(tamperings: &[Tampering], history: &History, promises: &Promises) -> Vec<String> {
    let mut unnoticed = Vec::new();
    for Tampering { name, tamper, said } in tamperings {
        let mut tampered = history.clone();
        if tamper(history, &mut tampered.records).is_none() {
            unnoticed.push(format!("{name}: nothing of the kind happens"));
            continue;
        }
        let found = check_with(&tampered, promises).violations;
        if !found.iter().any(|violation| violation.what.contains(said)) {
            unnoticed.push(format!("{name}: nothing `{said}` among {found:?}"));
        }
    }
    unnoticed
}

/// Position of the last record of which `is` holds.
fn last(records: &[Record], is: impl Fn(&Event) -> bool) -> Option<usize> {
    records.iter().rposition(|record| is(&record.event))
}

/// The last charge of a context with budget and period for time in which other cores were idle; its
/// position, and the budget, ticks.
fn charge_of_budget(records: &[Record]) -> Option<(usize, u64)> {
    let mut budgets: BTreeMap<Object, u64> = BTreeMap::new();
    // Since when each core is idle; `None` while it is not.
    let mut idle: BTreeMap<u8, Option<u64>> = BTreeMap::new();
    let mut found = None;
    for (at, record) in records.iter().enumerate() {
        match record.event {
            Event::Configure {
                context,
                budget,
                period: 1..,
                ..
            } => {
                budgets.insert(context, budget);
            }
            Event::Configure { context, .. } => {
                budgets.remove(&context);
            }
            Event::Switch { thread, .. } => {
                idle.insert(record.core, (thread == 0).then_some(record.time));
            }
            Event::Charge {
                context, consumed, ..
            } => {
                let from = record.time.saturating_sub(consumed);
                let alone = idle.iter().all(|(&core, since)| {
                    core == record.core || since.is_some_and(|since| since <= from)
                });
                let budget = budgets.get(&context).filter(|_| alone);
                found = budget.map(|&budget| (at, budget)).or(found);
            }
            _ => {}
        }
    }
    found
}

/// Where a thread that just woke takes the place of another one of lower priority, while other cores are
/// idle, and nothing else happens for longer than the longest kernel path.
fn preemption(history: &History, records: &[Record]) -> Option<usize> {
    // Who runs on each core, and with which priority.
    let mut running: BTreeMap<u8, (Object, u8)> = BTreeMap::new();
    let (mut woken, mut since) = (0, 0);
    records
        .iter()
        .enumerate()
        .find_map(|(i, record)| match record.event {
            Event::Wake { thread, .. } => {
                (woken, since) = (thread, record.time);
                None
            }
            Event::Switch {
                thread, priority, ..
            } => {
                let before = running.insert(record.core, (thread, priority));
                let (_, below) = before.unwrap_or_default();
                let alone = running
                    .iter()
                    .all(|(&core, &(other, _))| core == record.core || other == 0);
                let preempts =
                    thread == woken && since == record.time && priority > below && below > 0;
                let next = records[i + 1..]
                    .iter()
                    .find(|next| next.time > record.time)?;
                let is_long = next.time - record.time > history.least_budget;
                (alone && preempts && is_long).then_some(i)
            }
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    /// The example has no wait of the client for a signal but at the end of its jobs, which marks
    /// tell: so its end goes unnoticed by that.
    #[test]
    fn the_checker_notices_what_is_tampered_with() {
        let unnoticed = unnoticed(&example::history());
        let only = ["a job does not end"];
        let others = unnoticed
            .iter()
            .filter(|text| !only.iter().any(|name| text.starts_with(name)));
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());
    }
}
