//! Turns of a time manager that are tampered with.

use std::collections::BTreeMap;

use super::{unnoticed_of, Tampering};
use crate::trace::check::Promises;
use crate::trace::history::History;
use crate::trace::record::{Event, Mark, Object, Record};

const TAMPERINGS: &[Tampering] = &[
    Tampering {
        name: "a turn takes more than its reservation's budget",
        tamper: |_, records| {
            let turn = turns(records)
                .into_iter()
                .find_map(|(begin, end, context)| {
                    (begin..end).find(|&at| is_charge_of(&records[at].event, context))
                })?;
            if let Event::Charge { consumed, .. } = &mut records[turn].event {
                *consumed += 3_600_000_000;
            }
            Some(())
        },
        said: "; the reservation's budget is",
    },
    Tampering {
        name: "a turn has no reservation",
        tamper: |_, records| {
            let context = turns(records).first()?.2;
            for record in records {
                let Event::Mark { subject, mark } = &mut record.event else {
                    continue;
                };
                if let (true, Mark::Reservation { budget_us, .. }) = (*subject == context, mark) {
                    *budget_us = 0;
                }
            }
            Some(())
        },
        said: "is of no reservation",
    },
    Tampering {
        name: "a turn is released too soon",
        tamper: |history, records| {
            let second = second(records)?;
            if let Event::Mark {
                mark: Mark::Release { at, .. },
                ..
            } = &mut records[second].event
            {
                *at -= history.per_us * 10_000;
            }
            Some(())
        },
        said: "is released",
    },
    Tampering {
        name: "a turn has a later deadline",
        tamper: |_, records| {
            let is_due = |event: &Event, context: Object| matches!(event, Event::Mark { subject, mark: Mark::Deadline { .. } } if *subject == context);
            let (begin, end, context) = *turns(records).first()?;
            let due = (begin..end).find(|&at| is_due(&records[at].event, context))?;
            if let Event::Mark {
                mark: Mark::Deadline { at, .. },
                ..
            } = &mut records[due].event
            {
                *at += 1;
            }
            Some(())
        },
        said: "is due",
    },
];

/// What the checker does not notice.
pub fn unnoticed(history: &History) -> Vec<String> {
    unnoticed_of(TAMPERINGS, history, &Promises::default())
}

const fn is_charge_of(event: &Event, of: Object) -> bool {
    matches!(event, Event::Charge { context, .. } if *context == of)
}

/// The turns of clients with reservations that begin and end: positions of both marks, and the context.
fn turns(records: &[Record]) -> Vec<(usize, usize, Object)> {
    let mut begun: BTreeMap<Object, Option<usize>> = BTreeMap::new();
    let mut turns = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let Event::Mark { subject, mark } = record.event else {
            continue;
        };
        match mark {
            Mark::Reservation { budget_us: 1.., .. } => {
                begun.entry(subject).or_default();
            }
            Mark::Release { .. } => {
                begun.entry(subject).and_modify(|begun| *begun = Some(at));
            }
            Mark::End { .. } => {
                let begin = begun.get_mut(&subject).and_then(Option::take);
                turns.extend(begin.map(|begin| (begin, at, subject)));
            }
            _ => {}
        }
    }
    turns
}

/// The release of a turn that follows another one of its client.
fn second(records: &[Record]) -> Option<usize> {
    let turns = turns(records);
    let mut second = turns.iter().enumerate().filter_map(|(index, turn)| {
        let mut before = turns[..index].iter();
        before.any(|before| before.2 == turn.2).then_some(turn.0)
    });
    second.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::check::check;
    use crate::trace::example;

    #[test]
    fn the_checker_accepts_turns_and_notices_what_is_tampered_with() {
        let history = example::turns::history();
        let verdict = check(&history);
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.looked.turns, 4);
        assert_eq!(unnoticed(&history), Vec::<String>::new());
    }

    #[test]
    fn a_turn_of_a_hard_reservation_that_begins_before_the_last_one_is_due_is_found() {
        let mut history = example::turns::history();
        for record in &mut history.records {
            if let Event::Mark {
                mark: Mark::Reservation { deadline_us, .. },
                ..
            } = &mut record.event
            {
                *deadline_us = 15_000;
            }
            if let Event::Mark {
                mark: Mark::Deadline { at, .. },
                ..
            } = &mut record.event
            {
                *at += 10_000_000;
            }
        }
        let found = check(&history).violations;
        let says = |text: &str| found.iter().any(|violation| violation.what.contains(text));
        assert!(says("and the reservation is hard"), "{found:?}");
    }
}
