//! What a user-level EDF scheduler is told: `[[edf]]` of a description.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Table;

/// A scheduler and its tasks. Times in µs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edf {
    /// Of scheduler and tasks.
    pub core: u32,
    pub late: Late,
    pub overrun: Overrun,
    pub tasks: Vec<Task>,
}

impl Table for Edf {
    const NAME: &'static str = "edf.table";
}

/// What becomes of releases that a late job has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    #[default]
    CatchUp,
    Skip,
}

/// What is done about a task whose budget runs out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overrun {
    #[default]
    Suspend,
    Stop,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The component; its thread is `NAME.tcb`, its scheduling context `NAME.context`.
    pub name: String,
    pub period_us: u64,
    pub deadline_us: u64,
    pub offset_us: u64,
    /// Of a job, in preemptive mode; in cooperative mode none is enforced.
    pub budget_us: Option<u64>,
    /// What timeout faults on its time report, also after the scheduler has filled it: servers'
    /// timeout handlers tell their clients apart by it.
    pub timeout_badge: u64,
    /// It calls others than the scheduler, who may answer when its budget has run out.
    pub calls_servers: bool,
}

/// Under which names the scheduler finds what it works with. The endpoint where its tasks call has
/// its own name.
pub mod names {
    use alloc::format;
    use alloc::string::String;

    /// The HPET's registers, and its interrupt.
    pub const REGISTERS: &str = "hpet";
    pub const TIMER: &str = "timer";
    /// Ports of the PIT, which shares the HPET's input of the I/O APIC.
    pub const PIT: &str = "pit";

    /// The thread below the tasks; what it waits for, and what signals that; and where it says that no task
    /// can run.
    pub const BELOW: &str = "below";
    pub const WAKE: &str = "below.wake";
    pub const WAKES: &str = "below.wakes";
    pub const IDLE: &str = "below.idle";

    /// One for each task, and one more.
    pub fn reply(index: usize) -> String {
        format!("job.{index}.reply")
    }
}

/// Who sent a message to the scheduler, as its badge says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The timer's notification: badge 1, or-ed into nothing else.
    Timer,
    /// The thread below the tasks: none of them can run.
    Idle,
    /// A task, by its number, that has ended its job.
    Call(usize),
    /// The kernel, about the task's budget or another fault of it.
    Fault(usize),
}

impl Sender {
    pub const fn badge(self) -> u64 {
        match self {
            Self::Timer => 1,
            Self::Idle => 2,
            Self::Call(task) => 2 * task as u64 + 4,
            Self::Fault(task) => 2 * task as u64 + 5,
        }
    }

    pub const fn of(badge: u64) -> Self {
        match badge.checked_sub(4) {
            None if badge == Self::Idle.badge() => Self::Idle,
            None => Self::Timer,
            Some(rest) if rest % 2 == 0 => Self::Call((rest / 2) as usize),
            Some(rest) => Self::Fault((rest / 2) as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn badges_name_their_senders() {
        for sender in [
            Sender::Timer,
            Sender::Idle,
            Sender::Call(0),
            Sender::Fault(0),
            Sender::Call(7),
        ] {
            assert_eq!(Sender::of(sender.badge()), sender);
        }
    }
}
