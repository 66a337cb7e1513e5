//! A frame over the turns of a time manager that is tampered with.

use super::{unnoticed_of, Tampering};
use crate::trace::check::Promises;
use crate::trace::history::History;
use crate::trace::record::{Event, Object, Record};

const TAMPERINGS: &[Tampering] = &[
    Tampering {
        name: "a window is left out",
        tamper: |_, records| {
            let [.., window] = windows(records)?;
            records.remove(window);
            Some(())
        },
        said: "more windows",
    },
    Tampering {
        name: "a window is given more than its length",
        tamper: |history, records| {
            let [window, ..] = windows(records)?;
            if let Event::Configure { budget, .. } = &mut records[window].event {
                *budget += history.per_us;
            }
            Some(())
        },
        said: "more windows",
    },
    Tampering {
        name: "a window has more than its length",
        tamper: |history, records| {
            let more = history.least_budget;
            change_charge(records, |consumed| *consumed += more)
        },
        said: "a window of",
    },
    Tampering {
        name: "a window is cut short",
        tamper: |_, records| change_charge(records, |consumed| *consumed /= 2),
        said: "a window of",
    },
    Tampering {
        name: "another partition's thread runs in a window",
        tamper: |history, records| {
            let [first, second] = windows(records)?;
            let context = configured(&records[first])?.0;
            let here = runners(history, &records[first..second], context);
            let (at, _) = *here.first()?;
            // A window of another partition, in which none of this one's threads runs.
            let begins = |at: usize| configured(&records[at]).is_some_and(|of| of.0 == context);
            let begins: Vec<usize> = (second..records.len()).filter(|&at| begins(at)).collect();
            let other = begins.windows(2).find_map(|window| {
                let there = runners(history, &records[window[0]..window[1]], context);
                let is_here = |other: &Object| here.iter().any(|(_, thread)| thread == other);
                let is_other = there.iter().all(|(_, thread)| !is_here(thread));
                there
                    .first()
                    .filter(|_| is_other)
                    .map(|(_, thread)| *thread)
            })?;
            if let Event::Switch { thread, .. } = &mut records[first + at].event {
                *thread = other;
            }
            Some(())
        },
        said: "runs in a window of",
    },
    Tampering {
        name: "a partition's thread runs on other time",
        tamper: |_, records| {
            let [first, second] = windows(records)?;
            let own = configured(&records[first])?.0;
            for record in &mut records[first..second] {
                if let Event::Switch { context, .. } | Event::Pays { context, .. } =
                    &mut record.event
                {
                    if *context == own {
                        *context += 64;
                    }
                }
            }
            Some(())
        },
        said: "and not on that of its partition",
    },
];

/// A context's new budget, ticks.
fn configured(record: &Record) -> Option<(Object, u64)> {
    match record.event {
        Event::Configure {
            context, budget, ..
        } => Some((context, budget)),
        _ => None,
    }
}

/// The first two windows of a frame in the middle of the trace. Windows are what ends by timeouts, and their context has its
/// largest budget at the beginning of a turn.
fn windows(records: &[Record]) -> Option<[usize; 2]> {
    let middle = records.len() / 2;
    let context = records.iter().rev().find_map(|record| match record.event {
        Event::Timeout { context, .. } => Some(context),
        _ => None,
    })?;
    let given: Vec<usize> = (middle..records.len())
        .filter(|&at| configured(&records[at]).is_some_and(|of| of.0 == context))
        .collect();
    let budget = |at: usize| configured(&records[at]).map_or(0, |of| of.1);
    let turn = given.iter().copied().map(budget).max()?;
    let begin = given.iter().position(|&at| budget(at) == turn)?;
    Some([*given.get(begin + 1)?, *given.get(begin + 2)?])
}

/// Switches to partitions' threads on the context, with these: not to the one that fills what partitions leave.
fn runners(history: &History, records: &[Record], of: Object) -> Vec<(usize, Object)> {
    let switches = records.iter().enumerate();
    let switches = switches.filter_map(|(at, record)| match record.event {
        Event::Switch {
            thread, context, ..
        } if context == of => Some((at, thread)),
        _ => None,
    });
    switches
        .filter(|(_, thread)| !history.name(*thread).ends_with("/filler"))
        .collect()
}

/// Changes the longest charge in a window.
fn change_charge(records: &mut [Record], change: impl Fn(&mut u64)) -> Option<()> {
    let [first, second] = windows(records)?;
    let (own, _) = configured(&records[first])?;
    let charges = records[first..second].iter_mut();
    let charges = charges.filter_map(|record| match &mut record.event {
        Event::Charge {
            context, consumed, ..
        } if *context == own => Some(consumed),
        _ => None,
    });
    change(charges.max_by_key(|consumed| **consumed)?);
    Some(())
}

/// Ways to tamper that nobody notices, or that cannot be tried.
pub fn unnoticed(history: &History, expected: &Promises) -> Vec<String> {
    unnoticed_of(TAMPERINGS, history, expected)
}
