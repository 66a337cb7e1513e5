//! For how long a core may have stood still.
//!
//! The emulator executes several cores in turns on one clock. Time goes by only while some core
//! executes, or all are idle and nothing is due. So a core that has something to do, and does not do
//! it, stands still because another one executes: at most as long as any other was busy. On one core
//! it never does.

use std::collections::BTreeMap;

use crate::trace::history::History;
use crate::trace::record::{Event, Object, Record};
use crate::trace::timeline::Timeline;
use crate::trace::waits::{Wait, Why};

/// Calls within calls that are followed: a trace that was tampered with may have circles.
const DEEPEST: u32 = 64;

/// Disjoint stretches of time, in order; with each, the sum of those before it. Ticks.
#[derive(Debug, Default)]
struct Stretches(Vec<(u64, u64, u64)>);

impl Stretches {
    /// The union of `parts`.
    fn union(mut parts: Vec<(u64, u64)>) -> Self {
        parts.sort_unstable();
        let mut stretches: Vec<(u64, u64, u64)> = Vec::new();
        for (from, to) in parts {
            match stretches.last_mut() {
                Some((_, end, _)) if from <= *end => *end = to.max(*end),
                last => {
                    let sum = last.map_or(0, |(first, end, sum)| *sum + (*end - *first));
                    stretches.push((from, to, sum));
                }
            }
        }
        Self(stretches)
    }

    /// How much of them is before `time`.
    fn before(&self, time: u64) -> u64 {
        let next = self.0.partition_point(|&(from, _, _)| from < time);
        let last = next.checked_sub(1).map(|last| self.0[last]);
        last.map_or(0, |(from, to, sum)| sum + (time.min(to) - from))
    }

    /// What of them is between two times.
    fn clipped(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let begin = self.0.partition_point(|&(_, end, _)| end <= from);
        let stretches = self.0[begin..].iter();
        stretches
            .take_while(|&&(first, _, _)| first < to)
            .map(|&(first, end, _)| (first.max(from), end.min(to)))
            .collect()
    }

    /// How much of them is within.
    fn within(&self, from: u64, to: u64) -> u64 {
        self.before(to.max(from)) - self.before(from)
    }
}

/// When each core may have stood still.
#[derive(Debug, Default)]
pub struct Standstill {
    /// For each core, when any other was busy.
    others: BTreeMap<u8, Stretches>,
    /// When any core was busy.
    any: Stretches,
    /// The longest period that each context had.
    periods: BTreeMap<Object, u64>,
    /// The longest kernel path.
    path: u64,
}

impl Standstill {
    /// From the trace; `path` is the longest kernel path. Ticks.
    pub fn of(history: &History, path: u64) -> Self {
        let cores = history.cores();
        if cores.len() < 2 {
            return Self::default();
        }
        let busy: BTreeMap<u8, Vec<(u64, u64)>> = cores
            .iter()
            .map(|&core| (core, busy(history, core, path)))
            .collect();
        let union = |without: Option<u8>| {
            let parts = busy.iter().filter(|(core, _)| Some(**core) != without);
            Stretches::union(parts.flat_map(|(_, parts)| parts).copied().collect())
        };
        Self {
            others: cores
                .iter()
                .map(|&core| (core, union(Some(core))))
                .collect(),
            any: union(None),
            periods: periods(history),
            path,
        }
    }

    /// The longest that `core` may have stood still from one time to another, ticks.
    pub fn within(&self, core: u8, from: u64, to: u64) -> u64 {
        let others = self.others.get(&core);
        others.map_or(0, |others| others.within(from, to))
    }

    /// By how much `thread`'s work from one time to another may have been delayed because a core stood
    /// still: its own one; or any, while it waits for a server that does not work on its time, and so
    /// on its core. What a core stands still is charged like work, too: so are waits for a budget,
    /// its own or meanwhile a server's, of which more than a kernel path was used up so.
    pub fn of_thread(&self, timeline: &Timeline, thread: Object, from: u64, to: u64) -> u64 {
        let mut runs = timeline.executions.iter();
        let Some(first) = runs.find(|run| run.thread == thread) else {
            return self.any.within(from, to);
        };
        let Some(others) = self.others.get(&first.core) else {
            return 0;
        };
        let work = Work {
            standstill: self,
            timeline,
            context: first.context,
        };
        let mut parts = others.clipped(from, to);
        work.follow(thread, (from, to), DEEPEST, &mut parts);
        Stretches::union(parts).within(from, to)
    }

    /// What of a wait for a budget, between two times, may be due to a core that stood still: all, if
    /// more than a kernel path of what was used in the period before may have been that.
    fn excused(&self, timeline: &Timeline, wait: &Wait, from: u64, to: u64) -> Option<(u64, u64)> {
        let (begin, end) = (wait.from.max(from), wait.to.min(to));
        let runs = || {
            let runs = timeline.executions.iter();
            runs.filter(|run| run.thread == wait.thread && run.from < wait.from)
        };
        let period = self.periods.get(&runs().next()?.context)?;
        let since = wait.from.saturating_sub(*period);
        let still = runs()
            .filter(|run| run.to > since)
            .map(|run| self.within(run.core, run.from.max(since), run.to));
        (end > begin && still.sum::<u64>() > self.path).then_some((begin, end))
    }
}

/// The work of a job, wherever its context goes.
struct Work<'s> {
    standstill: &'s Standstill,
    timeline: &'s Timeline,
    context: Object,
}

impl Work<'_> {
    /// Adds to `parts` when `thread`, which works for the job between two times, may have waited for
    /// a core that stood still other than its own.
    fn follow(
        &self,
        thread: Object,
        (from, to): (u64, u64),
        deepest: u32,
        parts: &mut Vec<(u64, u64)>,
    ) {
        let waits = self.timeline.waits.iter();
        for wait in waits.filter(|wait| wait.thread == thread) {
            let (begin, end) = (wait.from.max(from), wait.to.min(to));
            if end <= begin {
                continue;
            }
            match wait.why {
                Why::Turn => {}
                Why::Budget => {
                    let excused = self.standstill.excused(self.timeline, wait, begin, end);
                    parts.extend(excused);
                }
                Why::Answer => {
                    let lent = self.timeline.passings.iter().find(|passing| {
                        (passing.context, passing.from, passing.back)
                            == (self.context, thread, false)
                            && (begin..end).contains(&passing.time)
                    });
                    let alone = lent.map_or(end, |passing| passing.time);
                    self.wait_elsewhere(begin, alone, parts);
                    if let (Some(passing), Some(deepest)) = (lent, deepest.checked_sub(1)) {
                        self.follow(passing.to, (passing.time, end), deepest, parts);
                    }
                }
            }
        }
    }

    /// Adds when any thread elsewhere may have been delayed.
    fn wait_elsewhere(&self, from: u64, to: u64, parts: &mut Vec<(u64, u64)>) {
        parts.extend(self.standstill.any.clipped(from, to));
        let waits = self.timeline.waits.iter();
        let budgets = waits.filter(|wait| wait.why == Why::Budget);
        parts.extend(
            budgets.filter_map(|wait| self.standstill.excused(self.timeline, wait, from, to)),
        );
    }
}

/// When `core` was busy: while it ran a thread, and for the longest kernel path after each thing that
/// it recorded. One that another core stopped executes until it says something itself.
fn busy(history: &History, core: u8, path: u64) -> Vec<(u64, u64)> {
    let mut parts = Vec::new();
    let mut since = Some(history.begin());
    let mut is_stopped = false;
    let end_at = |since: &mut Option<u64>, parts: &mut Vec<(u64, u64)>, time: u64| {
        parts.extend(since.take().map(|from| (from, time.max(from))));
    };
    for &Record {
        core: of,
        by,
        time,
        event,
        ..
    } in &history.records
    {
        if by == core {
            if is_stopped {
                end_at(&mut since, &mut parts, time);
                is_stopped = false;
            }
            parts.push((time, time + path));
        }
        match event {
            Event::Switch { thread: 0, .. } if of == core && by == core => {
                end_at(&mut since, &mut parts, time);
            }
            Event::Switch { thread: 0, .. } if of == core => is_stopped = true,
            Event::Switch { .. } if of == core => {
                is_stopped = false;
                since.get_or_insert(time);
            }
            _ => {}
        }
    }
    end_at(&mut since, &mut parts, history.end());
    parts
}

fn periods(history: &History) -> BTreeMap<Object, u64> {
    let mut periods = BTreeMap::new();
    for record in &history.records {
        if let Event::Configure {
            context, period, ..
        } = record.event
        {
            let longest = periods.entry(context).or_insert(0);
            *longest = period.max(*longest);
        }
    }
    periods
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_added_up() {
        let stretches = Stretches::union(vec![(50, 60), (10, 20), (15, 30), (30, 35)]);
        assert_eq!(stretches.within(0, 100), 35);
        assert_eq!(stretches.within(12, 20), 8);
        assert_eq!(stretches.within(32, 55), 8);
        assert_eq!(stretches.within(36, 50), 0);
        assert_eq!(stretches.within(70, 60), 0);
        assert_eq!(stretches.clipped(12, 52), [(12, 35), (50, 52)]);
        assert_eq!(stretches.clipped(36, 50), []);
    }
}
