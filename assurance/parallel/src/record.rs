//! What happened in a simulation.

use serde::{Deserialize, Serialize};

use crate::costs::Way;

/// The number of a task, in the order in which they were made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
pub struct Task(pub usize);

/// What a core does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// User code of `task` on the scheduling context that was made with `payer`.
    User {
        task: Task,
        payer: Task,
    },
    /// Waits for the lock.
    Waiting,
    Kernel(Way),
    /// Serves a remote call, on the way through user code.
    Serving,
    Idle,
}

/// A time in which a core does one thing, in ticks. `end` does not belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interval {
    pub core: usize,
    pub start: u64,
    pub end: u64,
    pub doing: Doing,
}

impl Interval {
    /// Length in ticks.
    pub fn ticks(&self) -> u64 {
        self.end - self.start
    }
}

/// A job was completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    pub task: Task,
    pub core: usize,
    /// When, in ticks.
    pub at: u64,
}

/// How a core spent its time, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    pub user: u64,
    pub waiting: u64,
    pub kernel: u64,
    pub serving: u64,
    pub idle: u64,
}

impl Spent {
    /// All of it.
    pub fn all(&self) -> u64 {
        self.user + self.waiting + self.kernel + self.serving + self.idle
    }

    fn add(&mut self, interval: &Interval) {
        let sum = match interval.doing {
            Doing::User { .. } => &mut self.user,
            Doing::Waiting => &mut self.waiting,
            Doing::Kernel(_) => &mut self.kernel,
            Doing::Serving => &mut self.serving,
            Doing::Idle => &mut self.idle,
        };
        *sum += interval.ticks();
    }
}

/// Everything that happened.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Of each core in the order of time, without gaps, from 0 on.
    pub intervals: Vec<Vec<Interval>>,
    pub jobs: Vec<Job>,
    /// Messages that were not what a script expected, in words.
    pub surprises: Vec<String>,
}

impl Record {
    pub(crate) fn new(cores: usize) -> Record {
        Record {
            intervals: vec![Vec::new(); cores],
            ..Record::default()
        }
    }

    /// `core` did something from the end of its last interval until `end`.
    pub(crate) fn passed(&mut self, core: usize, end: u64, doing: Doing) {
        let start = self.clock(core);
        assert!(start <= end, "the clock of core {core} goes back");
        if start == end {
            return;
        }
        let intervals = &mut self.intervals[core];
        match intervals.last_mut() {
            // Every way through the kernel is an interval of its own.
            Some(last) if last.doing == doing && !matches!(doing, Doing::Kernel(_)) => {
                last.end = end;
            }
            _ => intervals.push(Interval {
                core,
                start,
                end,
                doing,
            }),
        }
    }

    /// Until when it is known what `core` did.
    pub fn clock(&self, core: usize) -> u64 {
        self.intervals[core].last().map_or(0, |last| last.end)
    }

    /// How `core` spent its time.
    pub fn spent(&self, core: usize) -> Spent {
        let mut spent = Spent::default();
        for interval in &self.intervals[core] {
            spent.add(interval);
        }
        spent
    }

    /// Number of jobs of `task` that were completed.
    pub fn jobs_of(&self, task: Task) -> u64 {
        self.jobs.iter().filter(|job| job.task == task).count() as u64
    }

    /// Ticks of user code of `task`, on all cores.
    pub fn user_time_of(&self, task: Task) -> u64 {
        let is_its = |doing: &Doing| matches!(doing, Doing::User { task: who, .. } if *who == task);
        let all = self.intervals.iter().flatten();
        all.filter(|interval| is_its(&interval.doing))
            .map(Interval::ticks)
            .sum()
    }

    /// Times in which user code ran on the context of `payer`, on whichever core: (start, end) in
    /// the order of time.
    pub fn paid_by(&self, payer: Task) -> Vec<(u64, u64)> {
        let is_its =
            |doing: &Doing| matches!(doing, Doing::User { payer: who, .. } if *who == payer);
        let all = self.intervals.iter().flatten();
        let mut spans: Vec<_> = all
            .filter(|interval| is_its(&interval.doing))
            .map(|interval| (interval.start, interval.end))
            .collect();
        spans.sort_unstable();
        spans
    }

    /// The most ticks that user code ran on the context of `payer` in any window of `length` ticks.
    pub fn most_in_any_window(&self, payer: Task, length: u64) -> u64 {
        let spans = self.paid_by(payer);
        let mut before = vec![0];
        for (start, end) in &spans {
            before.push(before[before.len() - 1] + end - start);
        }
        // What ran up to `time`.
        let up_to = |time: u64| {
            let i = spans.partition_point(|span| span.0 < time);
            let rest = i
                .checked_sub(1)
                .map_or(0, |i| spans[i].1.saturating_sub(time));
            before[i] - rest
        };
        // Windows that start or end with a run are enough: no other contains more.
        let starts = spans.iter().map(|span| span.0);
        let ends = spans.iter().map(|span| span.1.saturating_sub(length));
        starts
            .chain(ends)
            .map(|from| up_to(from + length) - up_to(from))
            .max()
            .unwrap_or(0)
    }

    /// The longest time that a core spent in the kernel at a stretch, in ticks.
    pub fn longest_path(&self) -> u64 {
        self.longest(|doing| matches!(doing, Doing::Kernel(_)))
    }

    /// The longest time that a core waited for the lock, in ticks.
    pub fn longest_wait(&self) -> u64 {
        self.longest(|doing| *doing == Doing::Waiting)
    }

    fn longest(&self, is_wanted: impl Fn(&Doing) -> bool) -> u64 {
        let all = self.intervals.iter().flatten();
        let wanted = all.filter(|interval| is_wanted(&interval.doing));
        wanted.map(Interval::ticks).max().unwrap_or(0)
    }
}
