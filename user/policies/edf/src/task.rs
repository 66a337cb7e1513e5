//! The side of a task.

use sandglass::cap::Endpoint;
use sandglass::{Environment, Message};

use crate::scheduler::Job;

/// A job, as its task is told; times are ticks of the time-stamp counter
/// ([`sandglass::time::ticks`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnJob {
    /// From 0. Of jobs that were skipped the numbers are missing.
    pub number: u64,
    pub release: u64,
    pub deadline: u64,
}

/// A task that is scheduled by its deadlines.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    scheduler: Endpoint,
}

impl Task {
    /// Name under which the task of a described system finds its scheduler.
    pub const SCHEDULER: &'static str = "edf";

    /// The task of a described system.
    ///
    /// # Panics
    /// No `[[edf]]` of the description names this component.
    pub fn described(env: &Environment) -> Self {
        Self::of(env.capability(Self::SCHEDULER))
    }

    /// A task of the scheduler that waits at this endpoint.
    pub const fn of(scheduler: Endpoint) -> Self {
        Self { scheduler }
    }

    /// Says that the task is ready, or its job done, and waits until the next job may run.
    #[inline]
    pub fn next(self) -> OwnJob {
        own_job(self.scheduler.call(Message::EMPTY))
    }

    /// Does its jobs, for good.
    pub fn run(self, mut job: impl FnMut(OwnJob)) -> ! {
        loop {
            job(self.next());
        }
    }
}

/// What a task is answered when `job`, its own, may run.
pub(crate) const fn answer(job: Job) -> Message {
    Message::new(0, [job.number, job.release, job.deadline])
}

/// What such an answer says.
fn own_job(answer: Message) -> OwnJob {
    OwnJob {
        number: answer.word(0),
        release: answer.word(1),
        deadline: answer.word(2),
    }
}
