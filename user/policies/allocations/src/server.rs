//! What a reservation is at run time: a constant-bandwidth server with one task (paper, section 2).
//!
//! A server works in *turns*. A turn has the whole budget, a release and a deadline; the scheduler lets the eligible
//! turn with the earliest deadline run. A task that does not ask for more than its parameters has a turn for each job.
//!
//! **Where this differs** (paper, section 2). The paper lets a task that comes back early keep what is left of its budget,
//! or gives it a new deadline at once, by the density `budget / deadline`. Both let a task demand more in short
//! intervals than its demand bound function, by which it was admitted, allows: with a deadline below the period, a
//! task that comes back as soon as it is done has the whole processor. Here a turn ends with the job that it is for,
//! and releases are a period apart or more. So turns that are released and due in any interval take no more than the
//! demand bound function of it, whatever the task does.

use crate::task::Task;

/// What happens to a task that asks for more than its reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It waits until the deadline of its turn has passed: for what must be limited.
    Hard,
    /// It goes on with a later deadline, when nobody with an earlier one asks for the processor.
    Soft,
}

/// One budget of a server.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// From then on it may run.
    pub eligible_at: u64,
    /// From then on it counts as demand: never before the last turn's release and a period. A soft server's may run
    /// before.
    pub release: u64,
    /// The release and the relative deadline.
    pub deadline: u64,
}

/// A constant-bandwidth server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    task: Task,
    kind: Kind,
    last: Option<Turn>,
}

impl Server {
    /// The server of a task that has not asked for anything.
    pub const fn new(task: Task, kind: Kind) -> Self {
        Self {
            task,
            kind,
            last: None,
        }
    }

    /// A job arrives at an idle server, or the budget of a turn is used up before its job is done: the next turn,
    /// with the whole budget. `now` does not go back.
    pub fn next_turn(&mut self, now: u64) -> Turn {
        let release = match self.last {
            None => now,
            Some(last) => now.max(last.release.saturating_add(self.task.period())),
        };
        let eligible_at = match (self.kind, self.last) {
            (Kind::Hard, Some(last)) => now.max(last.deadline),
            _ => now,
        };
        let turn = Turn {
            eligible_at,
            release,
            deadline: release.saturating_add(self.task.deadline()),
        };
        self.last = Some(turn);
        turn
    }

    /// The current server deadline: of the last turn. `None`: it never had one.
    pub fn deadline(&self) -> Option<u64> {
        self.last.map(|turn| turn.deadline)
    }

    pub const fn task(&self) -> Task {
        self.task
    }

    pub const fn kind(&self) -> Kind {
        self.kind
    }
}
