//! Windows of partitions that are tampered with.

use super::{unnoticed_of, Tampering};
use crate::trace::check::Promises;
use crate::trace::history::History;
use crate::trace::record::{Event, Mark, Object, Record};
use crate::trace::timeline::Timeline;
use crate::trace::windows::{self, Window};

const TAMPERINGS: &[Tampering] = &[
    Tampering {
        name: "a window begins late",
        tamper: |history, records| {
            let window = two(history)?[1];
            put_off(records, window.from - 1, history.per_us * 500);
            Some(())
        },
        said: "after its time; at most",
    },
    Tampering {
        name: "a window begins too soon",
        tamper: |history, records| {
            // The one before ends by its own decision, not by the window's.
            let all = windows::of(history);
            let window = all.windows(2).find(|pair| pair[0].to < pair[1].from)?[1];
            let begin = mark_of(records, window)?;
            if let Event::Mark {
                mark: Mark::Window { at, until, .. },
                ..
            } = &mut records[begin].event
            {
                *at -= history.per_us * 100;
                *until -= history.per_us * 100;
            }
            Some(())
        },
        said: "before its time",
    },
    Tampering {
        name: "a mark names another time",
        tamper: |history, records| {
            let window = two(history)?[1];
            let begin = mark_of(records, window)?;
            records[begin].time += history.per_us * 100;
            Some(())
        },
        said: "says that it decided at",
    },
    Tampering {
        name: "a window is another partition's",
        tamper: |history, records| {
            let [before, window] = two(history)?;
            let begin = mark_of(records, window)?;
            if let Event::Mark { subject, .. } = &mut records[begin].event {
                *subject = before.context;
            }
            Some(())
        },
        said: "begins, but it is to be that of",
    },
    Tampering {
        name: "a window has another number",
        tamper: |history, records| {
            let begin = mark_of(records, two(history)?[1])?;
            if let Event::Mark {
                mark: Mark::Window { number, .. },
                ..
            } = &mut records[begin].event
            {
                *number += 1;
            }
            Some(())
        },
        said: "has the number",
    },
    Tampering {
        name: "a window is to be longer than its budget",
        tamper: |history, records| {
            let begin = mark_of(records, two(history)?[1])?;
            if let Event::Mark {
                mark: Mark::Window { until, .. },
                ..
            } = &mut records[begin].event
            {
                *until += 1;
            }
            Some(())
        },
        said: "is to last",
    },
    Tampering {
        name: "a partition has more than its budget",
        tamper: |history, records| {
            // It has the next window as well, and nothing is said of that.
            let [before, window] = two(history)?;
            records.retain(|record| !is_said_at(&record.event, window.from));
            for record in records {
                let is_in = (window.from..window.to).contains(&record.time);
                if let (true, Event::Switch { context, .. } | Event::Pays { context, .. }) =
                    (is_in, &mut record.event)
                {
                    if *context == window.context {
                        *context = before.context;
                    }
                }
            }
            Some(())
        },
        said: "µs for its budget of",
    },
    Tampering {
        name: "a partition runs outside of its windows",
        tamper: |history, records| {
            // Somebody else's time, or nobody's, between windows.
            let all = windows::of(history);
            let ended = all.windows(2).find(|pair| pair[0].to < pair[1].from)?[0];
            let of_partition = ran(history, ended.from, ended.until, |run| {
                run.1 == ended.context
            })?;
            let instead = records
                .iter_mut()
                .find_map(|record| match &mut record.event {
                    Event::Switch {
                        thread, context, ..
                    } if record.time > ended.to => Some((thread, context)),
                    _ => None,
                });
            let (thread, context) = instead?;
            (*thread, *context) = of_partition;
            Some(())
        },
        said: "has no window then",
    },
    Tampering {
        name: "a partition's thread runs on the time of another one",
        tamper: |history, records| {
            let [before, window] = two(history)?;
            let own = ran(history, window.from, window.until, |run| {
                run.1 == window.context
            })?
            .0;
            let is_own = |record: &Record| matches!(record.event, Event::Switch { thread, .. } if thread == own);
            let at = records
                .iter()
                .position(|record| record.time > window.from && is_own(record))?;
            let time = records[at].time;
            for record in records[at..].iter_mut().take_while(|of| of.time == time) {
                if let Event::Switch { context, .. } | Event::Pays { context, .. } =
                    &mut record.event
                {
                    *context = before.context;
                }
            }
            Some(())
        },
        said: "and not on that of its partition",
    },
    Tampering {
        name: "a partition's own thread runs after its window",
        tamper: |history, records| {
            let served = windows::of(history)
                .into_iter()
                .find(|window| window.overrun > history.least_budget)?;
            let timeline = Timeline::of(history);
            let runs = timeline.executions.iter();
            let mut server = runs.filter(|run| run.context == served.context);
            let server = server.rfind(|run| run.from < served.to && run.to > served.until)?;
            // What ran first in it: a thread of the partition.
            let own = ran(history, served.from, served.until, |run| {
                run.1 == served.context
            })?
            .0;
            for record in records {
                if let Event::Switch { thread, .. } = &mut record.event {
                    if *thread == server.thread && record.time == server.from {
                        *thread = own;
                    }
                }
            }
            Some(())
        },
        said: "only a server may",
    },
    Tampering {
        name: "an overrun is not charged",
        tamper: |_, records| {
            let at = records
                .iter()
                .position(|record| is_overrun(&record.event))?;
            records.remove(at);
            Some(())
        },
        said: "that is not charged",
    },
    Tampering {
        name: "an overrun is charged to another partition",
        tamper: |history, records| {
            let [before, window] = two(history)?;
            let at = records
                .iter()
                .position(|record| is_overrun(&record.event) && record.time >= window.from)?;
            if let Event::Mark { subject, .. } = &mut records[at].event {
                debug_assert_eq!(*subject, before.context);
                *subject = window.context;
            }
            Some(())
        },
        said: "are charged to that of",
    },
    Tampering {
        name: "an overrun is charged without one",
        tamper: |history, records| {
            let last = windows::of(history).pop()?;
            let at = mark_of(records, last)?;
            let overrun = Event::Mark {
                subject: last.context,
                mark: Mark::Overrun {
                    at: last.from - 1,
                    ticks: 1,
                },
            };
            let record = Record {
                event: overrun,
                ..records[at]
            };
            records.insert(at, record);
            Some(())
        },
        said: "and no window ends then",
    },
    Tampering {
        name: "the plan begins anew",
        tamper: |_, records| {
            let is_origin = |event: &Event| {
                matches!(
                    event,
                    Event::Mark {
                        mark: Mark::Origin { .. },
                        ..
                    }
                )
            };
            let at = records.iter().position(|record| is_origin(&record.event))?;
            records.insert(at, records[at]);
            Some(())
        },
        said: "and has counted before",
    },
];

/// What the checker does not notice.
pub fn unnoticed(history: &History, promises: &Promises) -> Vec<String> {
    unnoticed_of(TAMPERINGS, history, promises)
}

/// Two windows of different partitions, of which one follows the other at once, and is not the last one.
fn two(history: &History) -> Option<[Window; 2]> {
    let all = windows::of(history);
    let mut pairs = all[..all.len().checked_sub(1)?].windows(2);
    let follows = |pair: &&[Window]| {
        pair[0].to == pair[1].from && pair[0].context != pair[1].context && pair[0].overrun > 0
    };
    let pair = pairs.find(follows)?;
    Some([pair[0], pair[1]])
}

/// Position of the mark with which a window begins.
fn mark_of(records: &[Record], window: Window) -> Option<usize> {
    let begins = |event: &Event| matches!(event, Event::Mark { subject, mark: Mark::Window { at, .. } } if *subject == window.context && *at == window.from);
    records.iter().position(|record| begins(&record.event))
}

const fn is_overrun(event: &Event) -> bool {
    matches!(
        event,
        Event::Mark {
            mark: Mark::Overrun { .. },
            ..
        }
    )
}

/// Whether it is a mark about what was decided then.
fn is_said_at(event: &Event, decided: u64) -> bool {
    matches!(event, Event::Mark { mark: Mark::Window { at, .. } | Mark::Overrun { at, .. }, .. } if *at == decided)
}

/// The first thread and context of which `is` holds that ran from then on and before the end.
fn ran(
    history: &History,
    from: u64,
    to: u64,
    is: impl Fn((Object, Object)) -> bool,
) -> Option<(Object, Object)> {
    let timeline = Timeline::of(history);
    let runs = timeline.executions.iter();
    let within = runs.filter(|run| run.from >= from && run.from < to);
    let mut found = within.map(|run| (run.thread, run.context));
    found.find(|&run| is(run))
}

/// Everything after a time happens later by so many ticks.
fn put_off(records: &mut [Record], after: u64, by: u64) {
    let later = |time: &mut u64| {
        if *time > after {
            *time += by;
        }
    };
    for record in records {
        later(&mut record.time);
        let Event::Mark { mark, .. } = &mut record.event else {
            continue;
        };
        match mark {
            Mark::Window { at, until, .. } => {
                if *at > after {
                    *until += by;
                }
                later(at);
            }
            Mark::WindowEnd { at } | Mark::Overrun { at, .. } => later(at),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::check::check_with;
    use crate::trace::example;

    #[test]
    fn the_checker_accepts_windows_and_notices_what_is_tampered_with() {
        let (history, promises) = (example::windows::history(), example::windows::promises());
        let verdict = check_with(&history, &promises);
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.looked.partition_windows, 9);
        assert_eq!(unnoticed(&history, &promises), Vec::<String>::new());
    }

    /// Anybody can make marks: those of others than the scheduler say nothing of windows.
    #[test]
    fn only_the_scheduler_s_marks_count() {
        let (mut history, promises) = (example::windows::history(), example::windows::promises());
        let [before, window] = two(&history).expect("two windows");
        let own = ran(&history, window.from, window.until, |_| true).expect("somebody runs");
        let is_own = |record: &Record| matches!(record.event, Event::Switch { thread, .. } if thread == own.0);
        let at = history
            .records
            .iter()
            .position(is_own)
            .expect("it is chosen");
        let mark = Mark::Window {
            number: before.number,
            at: window.from,
            until: before.until,
        };
        let event = Event::Mark {
            subject: before.context,
            mark,
        };
        let record = history.records[at + 1];
        history.records.insert(at + 2, Record { event, ..record });
        assert_eq!(check_with(&history, &promises).violations, []);
    }
}
