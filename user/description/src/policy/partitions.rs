//! What a partition scheduler is told: `[partitions]`, `[[partition]]` and `[[frame]]` of a description.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Table;

/// Most partitions, and most threads of a partition.
pub const MOST_PARTITIONS: usize = 16;
pub const MOST_THREADS: usize = 16;
/// Most granules in a time of a partition or of its threads: the scheduler's queues have so many slots.
pub const MOST_GRANULES: u64 = 1024;

/// A scheduler, its partitions and their threads. Times in µs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    /// Of all of them.
    pub core: u32,
    pub form: Form,
    pub partitions: Vec<Partition>,
    /// For how long a thread of best effort runs if another one waits.
    pub slice_us: u64,
    /// How long a request in service may still take; `None`: no thread calls a server.
    pub bound_us: Option<u64>,
    /// Who gives the scheduler its time; `None`: it has all of the core.
    pub manager: Option<String>,
}

/// Of a frame in time that is supplied: most windows. In each of them the time manager may have to say once that nobody
/// runs.
pub const MOST_WINDOWS: usize = 64;
/// Of a frame in time that is supplied: what the scheduler's own thread takes, µs.
pub const SUPPLY_US: u64 = 100;

impl Frame {
    /// What all windows take together, µs.
    pub fn windows_us(&self) -> u64 {
        self.windows.iter().map(|window| window.length_us).sum()
    }

    /// What is reserved for it if its time is supplied, in each of its lengths, µs.
    pub fn supply_us(&self) -> u64 {
        self.windows_us() + SUPPLY_US
    }
}

impl Table for Partitions {
    const NAME: &'static str = "partitions.table";
}

/// Whose window it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// That of the partition with the earliest deadline.
    Deadlines,
    /// That of the partition with the highest priority.
    Priorities,
    /// As one of these tables says, the first one from the start.
    Frames(Vec<Frame>),
}

/// A major frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    pub length_us: u64,
    pub windows: Vec<Window>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// By number.
    pub partition: u32,
    /// From the beginning of the frame.
    pub at_us: u64,
    pub length_us: u64,
}

/// A partition; its times are 0 if its windows are in frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    pub name: String,
    pub period_us: u64,
    pub deadline_us: u64,
    pub offset_us: u64,
    pub budget_us: u64,
    pub priority: u8,
    pub threads: Vec<Thread>,
    /// Its threads call others than the scheduler.
    pub calls_servers: bool,
    /// What timeout faults on its time report.
    pub badge: u64,
}

/// A thread: that of a component, `NAME.tcb`, which starts on `NAME.context`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    pub name: String,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    Periodic {
        priority: u8,
        period_us: u64,
        offset_us: u64,
    },
    Sporadic {
        priority: u8,
        interval_us: u64,
    },
    BestEffort,
}

impl Kind {
    /// The times that are multiples of the partition's granule.
    pub fn times(self) -> impl Iterator<Item = u64> {
        let times = match self {
            Self::Periodic {
                period_us,
                offset_us,
                ..
            } => [period_us, offset_us],
            Self::Sporadic { interval_us, .. } => [interval_us, 0],
            Self::BestEffort => [0, 0],
        };
        times.into_iter()
    }
}

impl Partition {
    /// The times of the partition that are multiples of the scheduler's granule.
    pub fn times(&self) -> impl Iterator<Item = u64> {
        [self.period_us, self.deadline_us, self.offset_us].into_iter()
    }
}

/// The granule of these times: the longest time of which they are multiples; 1 if all are 0.
pub fn granule(times: impl Iterator<Item = u64>) -> u64 {
    times.fold(0, greatest_common_divisor).max(1)
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Under which names the scheduler finds what it works with. The endpoint where its threads call has its own name.
pub mod names {
    use alloc::format;
    use alloc::string::String;

    /// Its timer of the service.
    pub const TIMER: &str = "timer";
    /// In place of it: the HPET's registers, and the ports of the PIT. No builder gives these.
    pub const REGISTERS: &str = "hpet";
    pub const PIT: &str = "pit";

    /// The thread between the partitions' threads and the servers; what it waits for, and what signals that; and where it
    /// says that no server works.
    pub const WATCHER: &str = "watcher";
    pub const WAKE: &str = "watcher.wake";
    pub const WAKES: &str = "watcher.wakes";
    pub const IDLE: &str = "watcher.idle";

    /// If its time is supplied: its own thread, for its main one asks for time; the thread that runs when no other of a
    /// partition can; and where these two call.
    pub const SCHEDULER: &str = "scheduler";
    pub const FILLER: &str = "filler";
    pub const TURNS: &str = "turns";
    pub const FILLS: &str = "fills";

    /// What wakes the scheduler of this name if its time is supplied.
    pub fn wakes(scheduler: &str) -> String {
        format!("{scheduler}.wakes")
    }

    /// One for each thread, and one more to receive with; if time is supplied, also for the filler and the main thread.
    pub fn reply(index: usize) -> String {
        format!("job.{index}.reply")
    }

    /// Under which a thread finds its scheduler.
    pub const AT_THREADS: &str = "partition";

    /// Under which a component finds where it reports arrivals for `thread`.
    pub fn arrivals(thread: &str) -> String {
        format!("{thread}.arrivals")
    }
}

/// Who sent a message to the scheduler, as its badge says. Threads are counted through all partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The clock's notification: badge 1.
    Clock,
    /// The watcher: no server works. Or the time manager, if time is supplied: nobody runs on it. That is a flag, to which
    /// the clock's may be added.
    Idle,
    /// A thread whose job is done.
    Done(usize),
    /// Somebody, for a thread.
    Arrival(usize),
    /// A thread with which its window has ended, if time is supplied.
    Ended(usize),
}

impl Sender {
    pub const fn badge(self) -> u64 {
        match self {
            Self::Clock => 1,
            Self::Idle => 2,
            Self::Done(thread) => 4 * thread as u64 + 4,
            Self::Arrival(thread) => 4 * thread as u64 + 5,
            Self::Ended(thread) => 4 * thread as u64 + 6,
        }
    }

    pub const fn of(badge: u64) -> Self {
        let Some(rest) = badge.checked_sub(4) else {
            return if badge & Self::Idle.badge() != 0 {
                Self::Idle
            } else {
                Self::Clock
            };
        };
        let thread = (rest / 4) as usize;
        match rest % 4 {
            0 => Self::Done(thread),
            1 => Self::Arrival(thread),
            _ => Self::Ended(thread),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn badges_name_their_senders() {
        let senders = [
            Sender::Clock,
            Sender::Idle,
            Sender::Done(0),
            Sender::Arrival(0),
            Sender::Ended(0),
            Sender::Done(4095),
            Sender::Arrival(4095),
            Sender::Ended(4095),
        ];
        for sender in senders {
            assert_eq!(Sender::of(sender.badge()), sender);
        }
        let both = Sender::Idle.badge() | Sender::Clock.badge();
        assert_eq!(Sender::of(both), Sender::Idle);
    }

    #[test]
    fn a_granule_divides_all_times() {
        assert_eq!(granule([6_000, 0, 4_000].into_iter()), 2_000);
        assert_eq!(granule([0, 0].into_iter()), 1);
    }
}
