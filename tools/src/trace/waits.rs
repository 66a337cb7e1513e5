//! What threads wait for that do not run, but have work to do.

use std::collections::BTreeMap;

use sandglass_abi::trace::Blocked;

use super::history::History;
use super::record::{Event, Object, Record};

/// Why a thread that has work to do does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is ready; others run.
    Turn,
    /// Its budget is used up.
    Budget,
    /// It called a server, and is not answered, or not even heard.
    Answer,
}

/// A stretch of time in which a thread waited; ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub thread: Object,
    pub from: u64,
    pub to: u64,
    pub why: Why,
}

/// What is known of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    runs: bool,
    /// Whether it is not blocked.
    runnable: bool,
    calls: bool,
    /// Until when it waits for its refill.
    until: Option<u64>,
    /// Since when it is so.
    since: u64,
}

impl State {
    fn why(&self) -> Option<Why> {
        match self {
            Self { runs: true, .. } => None,
            Self { calls: true, .. } => Some(Why::Answer),
            Self {
                runnable: false, ..
            } => None,
            Self { until: Some(_), .. } => Some(Why::Budget),
            _ => Some(Why::Turn),
        }
    }
}

/// The waits of all threads, in the order of their ends.
pub fn of(history: &History) -> Vec<Wait> {
    let mut states = States::default();
    for record in &history.records {
        states.follow(record);
    }
    let threads: Vec<Object> = states.threads.keys().copied().collect();
    for thread in threads {
        states.change(thread, history.end(), |_| {});
    }
    states.waits
}

#[derive(Default)]
struct States {
    threads: BTreeMap<Object, State>,
    /// Who runs on each core.
    running: BTreeMap<u8, Object>,
    waits: Vec<Wait>,
}

impl States {
    fn follow(&mut self, record: &Record) {
        let time = record.time;
        match record.event {
            Event::Switch { thread, .. } => {
                let before = self.running.insert(record.core, thread).unwrap_or(0);
                self.change(before, time, |state| state.runs = false);
                self.change(thread, time, |state| {
                    (state.runs, state.runnable) = (true, true);
                    (state.calls, state.until) = (false, None);
                });
            }
            Event::Wake { thread, .. } => self.change(thread, time, |state| {
                (state.runnable, state.calls) = (true, false);
            }),
            Event::Block { thread, why } => self.change(thread, time, |state| {
                (state.runnable, state.until) = (false, None);
                state.calls = matches!(why, Blocked::Reply | Blocked::Send);
            }),
            Event::Wait { thread, until, .. } => {
                self.change(thread, time, |state| state.until = Some(until));
            }
            Event::Release { thread, .. } => {
                self.change(thread, time, |state| state.until = None);
            }
            _ => {}
        }
    }

    /// `change` happens to `thread` at `time`: what it waited for until then is noted.
    fn change(&mut self, thread: Object, time: u64, change: impl FnOnce(&mut State)) {
        if thread == 0 {
            return;
        }
        let state = self.threads.entry(thread).or_insert(State {
            since: time,
            ..State::default()
        });
        let before = *state;
        change(state);
        state.since = time;
        let Some(why) = before.why() else { return };
        // From when its refill has come, it waits for its turn.
        let refilled = match (why, before.until) {
            (Why::Budget, Some(until)) => until.clamp(before.since, time.max(before.since)),
            _ => before.since,
        };
        let parts = match why {
            Why::Budget => [(before.since, refilled, why), (refilled, time, Why::Turn)],
            _ => [(before.since, time, why), (time, time, why)],
        };
        for (from, to, why) in parts {
            if to > from {
                self.waits.push(Wait {
                    thread,
                    from,
                    to,
                    why,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{self, CLIENT, SERVER, URGENT};
    use super::*;

    const US: u64 = 1000;

    /// In each job the client waits for its server, which waits for its turn meanwhile.
    #[test]
    fn who_waits_for_whom_is_told() {
        let waits = of(&example::history());
        let sum = |thread, why| -> u64 {
            let of_thread = waits.iter().filter(|w| (w.thread, w.why) == (thread, why));
            of_thread.map(|wait| wait.to - wait.from).sum()
        };
        assert_eq!(sum(CLIENT, Why::Answer), 5 * (250 + 800 + 250) * US);
        assert_eq!(sum(SERVER, Why::Turn), 5 * 800 * US);
        assert_eq!(sum(URGENT, Why::Turn), 0);
        assert!(waits.iter().all(|wait| wait.why != Why::Budget));
    }

    /// Who waits for a refill that has come waits for his turn.
    #[test]
    fn a_wait_for_a_budget_ends_when_it_comes() {
        let mut records = example::records();
        let at = records
            .iter()
            .position(|record| matches!(record.event, Event::Switch { thread: URGENT, .. }))
            .unwrap();
        let record = records[at];
        records.drain(at..at + 3);
        records.insert(
            at,
            Record {
                event: Event::Wait {
                    thread: URGENT,
                    until: record.time + 300 * US,
                    context: example::URGENT_TIME,
                    priority: 250,
                },
                ..record
            },
        );
        let waits = of(&History::of_records(records, 0).unwrap());
        let of_urgent: Vec<_> = waits.iter().filter(|w| w.thread == URGENT).collect();
        assert_eq!(
            (of_urgent[0].why, of_urgent[0].to - of_urgent[0].from),
            (Why::Budget, 300 * US)
        );
        assert_eq!(
            (of_urgent[1].why, of_urgent[1].to - of_urgent[1].from),
            (Why::Turn, 500 * US)
        );
    }
}
