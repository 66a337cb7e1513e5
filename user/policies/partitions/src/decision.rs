//! What partition schedulers decide, whichever way they hand out time.

use core::fmt;

/// The number of a partition, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub usize);

/// A partition that has the processor. Times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub partition: PartitionId,
    /// Of the partition's release, or in a cyclic schedule of the frame; from 0. A window that is preempted has its
    /// number again when it continues.
    pub number: u64,
    /// When the budget is used up if nothing preempts the window before.
    pub until: u64,
}

/// Time that a partition has had beyond its budget, because the switch came late. It pays for that with its next budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    pub partition: PartitionId,
    /// Not 0.
    pub ticks: u64,
}

/// What to do until the next decision.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whose turn it is; `None`: nobody's.
    pub window: Option<Window>,
    /// When to decide again, in ticks; `None`: never.
    pub wake_at: Option<u64>,
    /// By whom the window that has just ended was overrun.
    pub overrun: Option<Overrun>,
    /// How many scheduling jobs this took: releases, and budgets that were used up (paper, section 5.3). The cost grows with them,
    /// and with nothing else.
    pub jobs: u32,
}

/// The earlier of two times, of which each may be never.
pub(crate) const fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one < other { one } else { other }),
        (Some(one), None) => Some(one),
        (None, other) => other,
    }
}

/// Why a set of partitions cannot be scheduled. Partitions, schedules, windows and threads are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The granule is 0 ticks.
    Granule,
    /// The queues have room for fewer than there are.
    Room { needed: usize, has: usize },
    /// The period is 0 granules, or longer than the queues span.
    Period { partition: usize, longest: u64 },
    /// The first release is later than the queues span.
    Offset { partition: usize, longest: u64 },
    /// The deadline is 0 granules or after the period.
    Deadline { partition: usize, longest: u64 },
    /// The budget is 0 ticks, or more than there is before the deadline.
    Budget { partition: usize, longest: u64 },
    /// Deadlines can be further apart than the queue spans, in granules.
    Spread { apart: u64, span: u64 },
    /// There is no schedule.
    NoSchedule,
    /// The frame is 0 ticks, or there is no window in it.
    EmptyFrame { schedule: usize },
    /// The window is of a partition that does not exist.
    NoSuchPartition { schedule: usize, window: usize },
    /// The window has 0 ticks, begins before the one before it has ended, or ends after the frame.
    Placed {
        schedule: usize,
        window: usize,
        earliest: u64,
        latest: u64,
    },
    /// The interval of a periodic or sporadic thread is 0 granules or longer than the queue spans.
    Interval { thread: usize, longest: u64 },
    /// The slice of threads of best effort is 0 ticks.
    Slice,
}

impl core::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Granule => write!(f, "the granule must have at least 1 tick"),
            Self::Room { needed, has } => {
                write!(f, "the queues have room for {has}, and {needed} are needed")
            }
            Self::Period { partition, longest } => write!(
                f,
                "partition {partition}: the period must be from 1 to {longest} granules"
            ),
            Self::Offset { partition, longest } => write!(
                f,
                "partition {partition}: the offset must be at most {longest} granules"
            ),
            Self::Deadline { partition, longest } => write!(
                f,
                "partition {partition}: the deadline must be from 1 to {longest} granules, the period"
            ),
            Self::Budget { partition, longest } => write!(
                f,
                "partition {partition}: the budget must be from 1 to {longest} ticks, the deadline"
            ),
            Self::Spread { apart, span } => write!(
                f,
                "deadlines can be {apart} granules apart: the queue must have as many slots, and has {span}"
            ),
            Self::NoSchedule => write!(f, "a cyclic table must have at least one schedule"),
            Self::EmptyFrame { schedule } => write!(
                f,
                "schedule {schedule}: the frame must have at least 1 tick and one window"
            ),
            Self::NoSuchPartition { schedule, window } => write!(
                f,
                "schedule {schedule}, window {window}: there is no such partition"
            ),
            Self::Placed {
                schedule,
                window,
                earliest,
                latest,
            } => write!(
                f,
                "schedule {schedule}, window {window}: it must have at least 1 tick, between {earliest}, the end of \
                 the window before it, and {latest}, the end of the frame"
            ),
            Self::Interval { thread, longest } => write!(
                f,
                "thread {thread}: the period or interval must be from 1 to {longest} granules"
            ),
            Self::Slice => write!(f, "the slice of threads of best effort must have at least 1 tick"),
        }
    }
}
