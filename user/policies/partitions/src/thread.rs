//! The side of a thread in a partition.

use sandglass::cap::Endpoint;
use sandglass::{Environment, Message};
use sandglass_description::policy::partitions::names;

/// A thread that runs in its partition's windows.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    scheduler: Endpoint,
}

impl Member {
    /// The thread of a described system.
    ///
    /// # Panics
    /// No `[[partition]]` of the description names this component.
    pub fn described(env: &Environment) -> Self {
        Self::of(env.capability(names::AT_THREADS))
    }

    /// The thread that the scheduler which waits there knows by the badge of this endpoint.
    pub const fn of(scheduler: Endpoint) -> Self {
        Self { scheduler }
    }

    /// Says that the thread is ready, or its job done, and waits for its next job: the next release of a periodic thread,
    /// or the next arrival for a sporadic one or one of best effort.
    #[inline]
    pub fn next(self) {
        self.scheduler.call(Message::EMPTY);
    }

    /// Does its jobs, for good.
    pub fn run(self, mut job: impl FnMut()) -> ! {
        loop {
            self.next();
            job();
        }
    }
}

/// Where arrivals for a sporadic thread, or one of best effort, are reported.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    scheduler: Endpoint,
}

impl Arrivals {
    /// For this thread of a described system, which names this component among those that report its arrivals.
    ///
    /// # Panics
    /// It does not.
    pub fn described(env: &Environment, thread: &str) -> Self {
        Self::of(env.capability(&names::arrivals(thread)))
    }

    /// For the thread that the scheduler which waits there knows by the badge of this endpoint.
    pub const fn of(scheduler: Endpoint) -> Self {
        Self { scheduler }
    }

    /// Something has arrived. Several arrivals that no job has begun for are one.
    #[inline]
    pub fn report(self) {
        self.scheduler.call(Message::EMPTY);
    }
}
