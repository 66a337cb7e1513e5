//! What the page draws. Times are µs since the beginning.

use std::collections::BTreeMap;

use sandglass_abi::trace::Gift;
use serde::Serialize;

use super::super::history::History;
use super::super::record::{Event, Mark, Object};
use super::super::timeline::{threads_of_contexts, Timeline};
use super::super::waits::Why;

#[derive(Serialize)]
pub struct Data {
    /// Length of the trace.
    pub end: f64,
    /// Threads, the highest priority first; then partitions; then gates, each with its clients.
    pub rows: Vec<Row>,
    /// Names of contexts, by the index that executions have.
    pub payers: Vec<String>,
    /// Time, row that gives, row that gets, whether it is given back.
    pub arrows: Vec<(f64, usize, usize, bool)>,
    /// Time, the mode that begins.
    pub modes: Vec<(f64, u64)>,
}

/// Number, release, deadline, end.
type Job = (u64, Option<f64>, Option<f64>, Option<f64>);

/// Of a gate, or of a client at a gate: from, to, what it is (0: waits, 1: waits without budget, 2: is served), who is served,
/// who pays; the latter two by their index among those that pay.
type Stage = (f64, f64, u8, Option<usize>, Option<usize>);

/// A thread, a partition, a gate, or a client at a gate.
#[derive(Serialize, Default)]
pub struct Row {
    pub name: String,
    /// Two lines of what is known of it.
    pub about: [String; 2],
    /// From, to, core, payer.
    pub runs: Vec<(f64, f64, u8, usize)>,
    /// From, to; 0: its turn, 1: its budget, 2: an answer.
    pub waits: Vec<(f64, f64, u8)>,
    /// In the order of release.
    pub jobs: Vec<Job>,
    /// Longest time from the release of a job to what comes last of it.
    pub longest: f64,
    /// Timeout faults and other faults.
    pub faults: Vec<(f64, &'static str)>,
    /// Time, what is left in µs, whether it was used until then: of the context with the row's name.
    pub budget: Vec<(f64, f64, bool)>,
    /// The whole budget.
    pub most: f64,
    /// Of a partition: from, to, planned end if it was to end before, number.
    pub windows: Vec<(f64, f64, f64, u8)>,
    /// In the order of time.
    pub stages: Vec<Stage>,
    /// Of a thread: time, and what it has from a time manager then.
    pub reservations: Vec<(f64, String)>,
    #[serde(skip)]
    pub(super) passive: bool,
}

impl Data {
    pub fn of(history: &History, timeline: &Timeline) -> Self {
        let us = |time: u64| history.ns(time) as f64 / 1000.0;
        let about = About::of(history);
        let mut threads = timeline.threads();
        threads.sort_by_key(|thread| std::cmp::Reverse(about.priority(*thread)));
        let row_of = |thread: Object| threads.iter().position(|&known| known == thread);
        let mut data = Self {
            end: us(history.end()),
            rows: threads.iter().map(|&of| about.row(history, of)).collect(),
            payers: Vec::new(),
            arrows: Vec::new(),
            modes: Vec::new(),
        };
        for run in &timeline.executions {
            let payer = data.payer(history.name(run.context));
            if let Some(row) = row_of(run.thread) {
                let stretch = (us(run.from), us(run.to), run.core, payer);
                data.rows[row].runs.push(stretch);
            }
        }
        for wait in &timeline.waits {
            if let Some(row) = row_of(wait.thread) {
                let stretch = (us(wait.from), us(wait.to), kind(wait.why));
                data.rows[row].waits.push(stretch);
            }
        }
        for job in &timeline.jobs {
            if let Some(row) = row_of(job.thread) {
                let times = [job.released, job.deadline, job.ended];
                let [released, deadline, ended] = times.map(|time| time.map(us));
                let job = (job.number, released, deadline, ended);
                data.rows[row].jobs.push(job);
            }
        }
        data.arrows = timeline
            .passings
            .iter()
            .filter_map(|passing| {
                let (from, to) = (row_of(passing.from)?, row_of(passing.to)?);
                Some((us(passing.time), from, to, passing.back))
            })
            .collect();
        data.budgets(history, timeline);
        data.instants(history, row_of);
        data.reservations(history, row_of);
        data.partitions(history, timeline);
        super::gates::add(&mut data, history, timeline);
        data.rows.iter_mut().for_each(Row::finish);
        data
    }

    /// The index of a context's name among those that pay.
    pub(super) fn payer(&mut self, name: String) -> usize {
        let known = self.payers.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.payers.push(name);
            self.payers.len() - 1
        })
    }

    fn budgets(&mut self, history: &History, timeline: &Timeline) {
        let us = |time: u64| history.ns(time) as f64 / 1000.0;
        for left in &timeline.budgets {
            let name = history.name(left.context);
            let mut rows = self.rows.iter_mut();
            // That on which a passive server started says nothing.
            let Some(row) = rows.find(|row| row.name == name && !row.passive) else {
                continue;
            };
            if let Some(&(time, before, _)) = row.budget.last() {
                let begin = us(left.time.saturating_sub(left.used));
                if left.used > 0 && begin > time {
                    row.budget.push((begin, before, false));
                }
            }
            let amount = history.us(left.amount);
            row.budget.push((us(left.time), amount, left.used > 0));
        }
    }

    fn reservations(&mut self, history: &History, row_of: impl Fn(Object) -> Option<usize>) {
        let threads = threads_of_contexts(history);
        for record in &history.records {
            let Event::Mark {
                subject,
                mark:
                    Mark::Reservation {
                        budget_us,
                        period_us,
                        deadline_us,
                        hard,
                    },
            } = record.event
            else {
                continue;
            };
            let time = |us: u64| lasting(us as f64);
            let what = match budget_us {
                0 => "no reservation".to_owned(),
                _ => format!(
                    "{} in {}, due in {}{}",
                    time(budget_us.into()),
                    time(period_us.into()),
                    time(deadline_us),
                    if hard { ", hard" } else { "" }
                ),
            };
            let thread = threads.get(&subject).copied();
            if let Some(row) = thread.and_then(&row_of) {
                let time = history.ns(record.time) as f64 / 1000.0;
                self.rows[row].reservations.push((time, what));
            }
        }
    }

    /// A row for each partition.
    fn partitions(&mut self, history: &History, timeline: &Timeline) {
        let us = |time: u64| history.ns(time) as f64 / 1000.0;
        let mut rows: BTreeMap<Object, (Row, u64)> = BTreeMap::new();
        for window in &timeline.windows {
            let (row, most) = rows.entry(window.context).or_default();
            let (from, to, planned) = (us(window.from), us(window.to), us(window.planned_end()));
            row.windows.push((from, to, planned, window.number));
            *most = window.overrun.max(*most);
        }
        self.rows
            .extend(rows.into_iter().map(|(context, (row, most))| {
                let windows = format!("partition, {} windows", row.windows.len());
                let overrun = format!("longest overrun {}", lasting(history.us(most)));
                Row {
                    name: history.name(context),
                    about: [windows, overrun],
                    ..row
                }
            }));
    }

    fn instants(&mut self, history: &History, row_of: impl Fn(Object) -> Option<usize>) {
        for record in &history.records {
            let time = history.ns(record.time) as f64 / 1000.0;
            let (thread, what) = match record.event {
                Event::Timeout { thread, .. } => (thread, "timeout fault"),
                Event::Fault { thread, .. } => (thread, "fault"),
                Event::Mark {
                    mark: Mark::Mode { to, .. },
                    ..
                } => {
                    self.modes.push((time, to));
                    continue;
                }
                _ => continue,
            };
            if let Some(row) = row_of(thread) {
                self.rows[row].faults.push((time, what));
            }
        }
    }
}

impl Row {
    /// Puts everything into the order in which the page looks for it.
    fn finish(&mut self) {
        let first = |job: &Job| job.1.or(job.2).or(job.3).unwrap_or(0.0);
        self.jobs.sort_by(|a, b| first(a).total_cmp(&first(b)));
        let length = |job: &Job| {
            let (_, _, deadline, ended) = *job;
            deadline.unwrap_or(0.0).max(ended.unwrap_or(0.0)) - first(job)
        };
        self.longest = self.jobs.iter().map(length).fold(0.0, f64::max);
        self.waits.sort_by(|a, b| a.0.total_cmp(&b.0));
        let left = self.budget.iter().map(|&(_, left, _)| left);
        self.most = left.fold(self.most.max(0.001), f64::max);
    }
}

fn kind(why: Why) -> u8 {
    match why {
        Why::Turn => 0,
        Why::Budget => 1,
        Why::Answer => 2,
    }
}

/// What is known of threads beside what they do.
struct About {
    /// The first of each thread.
    priorities: BTreeMap<Object, u8>,
    /// The context that each thread was bound to first.
    contexts: BTreeMap<Object, Object>,
    /// The last parameters of each context: budget and period in ticks; sporadic.
    parameters: BTreeMap<Object, (u64, u64, bool)>,
}

impl About {
    fn of(history: &History) -> Self {
        let bound = threads_of_contexts(history).into_iter();
        let mut about = Self {
            priorities: BTreeMap::new(),
            contexts: bound.map(|(context, thread)| (thread, context)).collect(),
            parameters: BTreeMap::new(),
        };
        for record in &history.records {
            match record.event {
                Event::Switch {
                    thread,
                    context,
                    priority,
                } if thread != 0 => {
                    about.priorities.entry(thread).or_insert(priority);
                    // The root task's thread is bound before the trace begins.
                    if !about.contexts.values().any(|&known| known == context) {
                        about.contexts.entry(thread).or_insert(context);
                    }
                }
                Event::Configure {
                    context,
                    budget,
                    period,
                    sporadic,
                    ..
                } => {
                    let parameters = (budget, period, sporadic);
                    about.parameters.insert(context, parameters);
                }
                Event::Donate {
                    context,
                    to,
                    gift: Gift::Bind,
                    ..
                } => {
                    about.contexts.entry(to).or_insert(context);
                }
                _ => {}
            }
        }
        about
    }

    fn priority(&self, thread: Object) -> u8 {
        self.priorities.get(&thread).copied().unwrap_or(0)
    }

    fn row(&self, history: &History, thread: Object) -> Row {
        let facts = history.facts(thread);
        let context = self.contexts.get(&thread);
        let parameters = context.and_then(|context| self.parameters.get(context));
        let time = |ticks| lasting(history.us(ticks));
        let (of_time, most) = match parameters {
            _ if facts.passive => ("passive: on its callers' time".to_owned(), 0.0),
            None => (String::new(), 0.0),
            Some(&(budget, 0, _)) => (
                format!("round robin, turns of {}", time(budget)),
                history.us(budget),
            ),
            Some(&(budget, period, sporadic)) => (
                format!(
                    "{} in {}{}",
                    time(budget),
                    time(period),
                    if sporadic { ", sporadic" } else { "" }
                ),
                history.us(budget),
            ),
        };
        let mut rank = format!("priority {}", self.priority(thread));
        if let Some(level) = facts.criticality {
            rank.push_str(&format!(", criticality {level}"));
        }
        Row {
            name: history.name(thread),
            about: [rank, of_time],
            most,
            passive: facts.passive,
            ..Row::default()
        }
    }
}

/// A duration for people.
pub(super) fn lasting(us: f64) -> String {
    let (amount, unit) = match us {
        us if us >= 1e6 => (us / 1e6, "s"),
        us if us >= 1e3 => (us / 1e3, "ms"),
        us => (us, "µs"),
    };
    let text = format!("{amount:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::super::super::example;
    use super::*;

    #[test]
    fn the_page_has_everything_that_the_timeline_has() {
        let history = example::history();
        let timeline = Timeline::of(&history);
        let data = Data::of(&history, &timeline);
        let sum = |of: fn(&Row) -> usize| data.rows.iter().map(of).sum::<usize>();
        assert_eq!(sum(|row| row.runs.len()), timeline.executions.len());
        assert_eq!(sum(|row| row.waits.len()), timeline.waits.len());
        assert_eq!(sum(|row| row.jobs.len()), timeline.jobs.len());
        assert!(sum(|row| row.jobs.len()) > 0);
        assert_eq!(data.arrows.len(), timeline.passings.len());
        let names: Vec<_> = data.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["urgent", "server", "client"]);
        let client = &data.rows[2];
        assert_eq!(client.about, ["priority 100", "2 ms in 10 ms"]);
        assert_eq!((client.most, client.longest), (2000.0, 10_000.0));
        let used = |points: &[(f64, f64, bool)]| points.iter().any(|&(_, _, used)| used);
        assert!(used(&client.budget));
    }

    #[test]
    fn partitions_have_rows_with_their_windows_and_overruns() {
        let history = example::windows::history();
        let data = Data::of(&history, &Timeline::of(&history));
        let row = |name: &str| data.rows.iter().find(|row| row.name == name).unwrap();
        let (flight, cabin) = (row("flight"), row("cabin"));
        assert_eq!((flight.windows.len(), cabin.windows.len()), (6, 3));
        assert_eq!(cabin.about[1], "longest overrun 52 µs");
        let overrun = |&(_, to, planned, _): &(f64, f64, f64, u8)| (to - planned).round() == 52.0;
        assert!(cabin.windows.iter().all(overrun), "{:?}", cabin.windows);
        assert_eq!(
            data.payers.iter().filter(|name| *name == "cabin").count(),
            1
        );
    }

    #[test]
    fn a_thread_s_row_says_what_it_has_reserved() {
        let history = example::turns::history();
        let data = Data::of(&history, &Timeline::of(&history));
        let said = &data.rows[0].reservations[0].1;
        assert_eq!(said, "1 ms in 10 ms, due in 5 ms, hard");
    }

    #[test]
    fn durations_have_the_unit_that_fits() {
        let shown = [0.5, 250.0, 1_500.0, 2_000_000.0].map(lasting);
        assert_eq!(shown, ["0.5 µs", "250 µs", "1.5 ms", "2 s"]);
    }
}
