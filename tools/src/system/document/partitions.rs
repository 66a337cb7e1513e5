//! The tables of partitions: who schedules them, what they are, and their frames.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::quantity::Micros;
use super::super::spanned::Spanned;
use super::{Integer, Text};

/// The scheduler of all partitions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Partitioning {
    /// Name of the scheduler.
    pub name: Text,
    /// Whose window it is.
    pub order: Spanned<PartitionOrder>,
    /// Of the scheduler, above the threads of all partitions.
    pub priority: Integer,
    /// Of the scheduler and all partitions; 0 by default.
    pub core: Option<Integer>,
    /// For how long a thread of best effort runs if another one waits; `1ms` by default.
    pub slice: Option<Spanned<Micros>>,
    /// How long a request to a server may still take when its partition's window ends.
    pub finish: Option<Spanned<Micros>>,
    /// The time manager whose client the scheduler is: windows are lengths of the time that it supplies. Without it, the
    /// scheduler has all of the core.
    pub time: Option<Text>,
}

/// Whose window it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionOrder {
    /// That of the partition with the earliest deadline.
    Deadlines,
    /// That of the partition with the highest priority.
    Priorities,
    /// As a `[[frame]]` says.
    Frames,
}

/// Threads that share windows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Partition {
    /// Its name.
    pub name: Text,
    /// Time between releases.
    pub period: Option<Spanned<Micros>>,
    /// From a release; the period by default.
    pub deadline: Option<Spanned<Micros>>,
    /// From the start to the first release; 0 by default.
    pub offset: Option<Spanned<Micros>>,
    /// Time in each period.
    pub budget: Option<Spanned<Micros>>,
    /// With `order = "priorities"`: 0 to 255, the highest.
    pub priority: Option<Integer>,
    /// Its threads.
    pub threads: Spanned<Vec<PartitionThread>>,
}

/// A thread of a partition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PartitionThread {
    /// The component whose main thread it is.
    pub component: Text,
    /// When its jobs begin.
    pub kind: Spanned<ThreadKind>,
    /// Within the partition: 0 to 255, the highest; not of best effort.
    pub priority: Option<Integer>,
    /// Of a periodic thread: time between releases.
    pub period: Option<Spanned<Micros>>,
    /// Of a periodic thread: from the start to the first release; 0 by default.
    pub offset: Option<Spanned<Micros>>,
    /// Of a sporadic thread: shortest time between the beginnings of jobs.
    pub interval: Option<Spanned<Micros>>,
    /// Components that report arrivals for it, if it is sporadic or of best effort.
    #[serde(default)]
    pub arrivals: Vec<Text>,
}

/// When jobs of a thread begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadKind {
    /// Every period.
    Periodic,
    /// When something arrives for it.
    Sporadic,
    /// Always, when no other thread of the partition can run.
    BestEffort,
}

/// A major frame: a table of windows that repeats.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Frame {
    /// Its name.
    pub name: Text,
    /// After which it repeats.
    pub length: Spanned<Micros>,
    /// In order of time.
    pub windows: Spanned<Vec<FrameWindow>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FrameWindow {
    /// The partition.
    pub partition: Text,
    /// From the beginning of the frame.
    pub at: Spanned<Micros>,
    /// How long it lasts.
    pub length: Spanned<Micros>,
}
