//! What invocations of the scheduler cost.
//!
//! An *invocation* lasts from the last look at the clock by a thread before it, or if none ran from the time at which the
//! scheduler was to be woken, until the first look after it: with everything that the kernel, the interrupt and the
//! scheduler do, and with both context switches. Its *decision* is what the state machine takes; its *switch* is from
//! there to the first look: one thread is deprived of its context, another one gets one, and the kernel switches to it.
//! An invocation after which no thread runs has no end, and is not counted.
//!
//! Invocations are counted apart by what they are about: one scheduling job of partitions (a release, or a budget that is
//! used up), several at the same instant, or only threads within a partition.

use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

use sandglass::time;
use sandglass_partitions::driver::Observer;
use sandglass_partitions::{Decision, Event, Window};

use crate::lab::Set;
use crate::looks;

/// A stretch in which a partition's threads ran, in ticks from the start.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    pub partition: usize,
    pub from: u64,
    pub to: u64,
}

/// Mean and most of something.
#[derive(Clone, Copy, Default)]
struct Figure {
    count: u64,
    total: u64,
    most: u64,
}

impl Figure {
    fn add(&mut self, ticks: u64) {
        self.count += 1;
        self.total += ticks;
        self.most = self.most.max(ticks);
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.total / self.count.max(1), self.most)
    }
}

/// Of invocations of one class.
#[derive(Clone, Copy, Default)]
pub struct Figures {
    invocation: Figure,
    decision: Figure,
    switch: Figure,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            invocation,
            decision,
            switch,
        } = self;
        write!(f, "{} {invocation} {decision} {switch}", invocation.count)
    }
}

/// How classes are called.
const CLASSES: [&str; 3] = ["one", "several", "threads"];

/// An invocation that no thread has noticed yet, in ticks.
#[derive(Clone, Copy)]
struct Open {
    began: u64,
    /// What recording took, which is no part of it.
    recording: u64,
    deciding: u64,
    jobs: u32,
}

/// The decision before.
#[derive(Clone, Copy)]
struct Before {
    window: Option<Window>,
    wake_at: u64,
    /// Nobody runs until something happens.
    is_idle: bool,
    /// When it was recorded.
    recorded: u64,
}

/// How well windows keep their times.
#[derive(Clone, Copy, Default)]
pub struct Drift {
    pub windows: u64,
    /// Windows whose number is not that of the partition's last release.
    pub astray: u64,
    /// From a release to the beginning of the first window of its budget, in ticks, at most.
    pub latest: u64,
}

/// Memory is allocated when it is made; nothing is while threads run.
pub struct Recorder {
    start: u64,
    end: u64,
    before: Before,
    open: Option<Open>,
    figures: [Figures; CLASSES.len()],
    /// Of each partition: period and offset, in ticks, and the number of its last window.
    partitions: Vec<(u64, u64, Option<u64>)>,
    drift: Drift,
    ran: Vec<Ran>,
}

/// Stretches that are kept at most: the first ones.
const MOST_RAN: usize = 500;

impl Recorder {
    /// Of so many ticks from the start of the set.
    pub fn new(set: &Set<'_>, start: u64, length: u64) -> Self {
        // Nobody notices the decisions of an earlier set.
        let _ = looks::decided();
        let periods = set
            .parameters
            .iter()
            .map(|of| (of.period * set.unit, of.offset * set.unit, None));
        Self {
            start,
            end: start + length,
            before: Before {
                window: None,
                wake_at: start,
                is_idle: true,
                recorded: start,
            },
            open: None,
            figures: [Figures::default(); CLASSES.len()],
            partitions: periods.collect(),
            drift: Drift::default(),
            ran: Vec::with_capacity(MOST_RAN),
        }
    }

    /// By class.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, Figures)> + '_ {
        CLASSES.into_iter().zip(self.figures)
    }

    pub const fn drift(&self) -> Drift {
        self.drift
    }

    pub fn ran(&self) -> &[Ran] {
        &self.ran
    }

    /// The thread that ran has noticed the decision before, at this time.
    fn close(&mut self, noticed: u64) {
        if let Some(open) = self.open.take() {
            let class = match open.jobs {
                0 => 2,
                1 => 0,
                _ => 1,
            };
            let figures = &mut self.figures[class];
            figures
                .invocation
                .add(noticed - open.began - open.recording);
            figures.decision.add(open.deciding);
            figures.switch.add(noticed - self.before.recorded);
        }
        let room = self.ran.len() < MOST_RAN;
        if let Some(window) = self.before.window.filter(|_| room) {
            self.ran.push(Ran {
                partition: window.partition.0,
                from: noticed - self.start,
                to: looks::last() - self.start,
            });
        }
    }

    /// A new invocation, or the next decision of one that nobody has noticed.
    fn open(&mut self, noticed: Option<u64>, now: u64) -> Open {
        let began = match noticed {
            Some(_) => looks::last(),
            None if self.before.is_idle => self.before.wake_at.min(now),
            None => now,
        };
        let kept = self.open.take().filter(|_| !self.before.is_idle);
        kept.unwrap_or(Open {
            began,
            recording: 0,
            deciding: 0,
            jobs: 0,
        })
    }

    fn note_window(&mut self, now: u64, window: Window) {
        let (period, offset, last) = &mut self.partitions[window.partition.0];
        let since_start = now - self.start;
        self.drift.astray +=
            u64::from(since_start.saturating_sub(*offset) / *period != window.number);
        if last.replace(window.number) != Some(window.number) {
            self.drift.windows += 1;
            let late = since_start.saturating_sub(*offset + window.number * *period);
            self.drift.latest = self.drift.latest.max(late);
        }
    }
}

impl Observer for Recorder {
    fn decided(&mut self, now: u64, _event: Event, decision: &Decision) -> ControlFlow<()> {
        let decided = time::ticks();
        let noticed = looks::decided();
        if let Some(noticed) = noticed {
            self.close(noticed);
        }
        let mut open = self.open(noticed, now);
        open.deciding += decided - now;
        open.jobs += decision.jobs;
        if let Some(window) = decision.window {
            self.note_window(now, window);
        }
        let wake_at = decision.wake_at.unwrap_or(u64::MAX);
        self.before = Before {
            window: decision.window,
            wake_at,
            is_idle: decision.thread.is_none() && wake_at > now,
            recorded: 0,
        };
        self.open = Some(open);
        let goes_on = match now < self.end {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        // The clock last: what recording takes belongs to nothing.
        let recorded = time::ticks();
        self.before.recorded = recorded;
        if let Some(open) = &mut self.open {
            open.recording += recorded - decided;
        }
        goes_on
    }
}
