//! Both levels together: whose window it is, and which of the partition's threads runs in it.

use crate::cyclic::Cyclic;
use crate::decision::{earlier, Overrun, PartitionId, Turn, Window};
use crate::local::{Local, Step, ThreadEvent, ThreadId};
use crate::periodic::Periodic;

/// Who has the processor: by periods and budgets, or by table.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a system has one, and nothing is allocated"
)]
pub enum Windows<'m> {
    Periodic(Periodic<'m>),
    Cyclic(Cyclic<'m>),
}

impl Windows<'_> {
    /// Who has the processor from `now` on, which does not go back. Nothing that a thread does is asked for: it could
    /// change nothing. O(1), and O(1) more for each release or window since it was asked last.
    #[inline]
    pub fn decide(&mut self, now: u64) -> Turn {
        match self {
            Self::Periodic(periodic) => periodic.decide(now),
            Self::Cyclic(cyclic) => cyclic.decide(now),
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The time has come that was asked for, or nothing in particular.
    Timer,
    /// Something happened to a thread of a partition. That of a partition that does not exist is ignored.
    Thread(PartitionId, ThreadEvent),
}

/// What to do until the next event.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whose window it is; `None`: nobody's.
    pub window: Option<Window>,
    /// Which of the partition's threads runs; `None`: none has a job, and the window passes.
    pub thread: Option<ThreadId>,
    /// When to decide again unless something else happens, in ticks. If that has passed, decide again before anything is
    /// done: decisions are taken in steps of bounded length.
    pub wake_at: Option<u64>,
    /// By whom the window that has just ended was overrun.
    pub overrun: Option<Overrun>,
    /// Scheduling jobs of the partitions that this took.
    pub jobs: u32,
}

/// Partitions and their threads.
#[derive(Debug)]
pub struct Hierarchy<'m> {
    windows: Windows<'m>,
    /// The threads of each partition.
    locals: &'m mut [Local<'m>],
    /// Whose window it is.
    running: Option<PartitionId>,
    /// When that was decided.
    since: u64,
}

impl<'m> Hierarchy<'m> {
    /// Nothing is decided yet. A partition that is not among `locals` has no threads.
    pub const fn new(windows: Windows<'m>, locals: &'m mut [Local<'m>]) -> Self {
        Self {
            windows,
            locals,
            running: None,
            since: 0,
        }
    }

    /// What to do now that `event` has happened. `now` does not go back. As [`Windows::decide`], and O(1) for the threads.
    #[inline]
    pub fn decide(&mut self, event: Event, now: u64) -> Decision {
        if let Event::Thread(partition, event) = event {
            self.note(partition, event);
        }
        self.charge(now);
        let Turn {
            window,
            wake_at,
            overrun,
            jobs,
        } = self.windows.decide(now);
        self.running = window.map(|window| window.partition);
        let (thread, local_wake_at) = self.step(now);
        Decision {
            window,
            thread,
            wake_at: earlier(wake_at, local_wake_at),
            overrun,
            jobs,
        }
    }

    /// Takes note of what happened to a thread; a decision is to follow. O(1).
    pub fn note(&mut self, partition: PartitionId, event: ThreadEvent) {
        if let Some(local) = self.locals.get_mut(partition.0) {
            local.note(event);
        }
    }

    /// Who has the processor, for what only one kind of it can be asked.
    pub const fn windows(&mut self) -> &mut Windows<'m> {
        &mut self.windows
    }

    #[inline]
    fn charge(&mut self, now: u64) {
        let ticks = now.saturating_sub(self.since);
        self.since = now;
        if let Some(local) = local_of(self.locals, self.running) {
            local.charge(ticks);
        }
    }

    #[inline]
    fn step(&mut self, now: u64) -> (Option<ThreadId>, Option<u64>) {
        let step = local_of(self.locals, self.running).map(|local| local.step(now));
        match step {
            None => (None, None),
            Some(Step::Again) => (None, Some(now)),
            Some(Step::Run { thread, wake_at }) => (thread, wake_at),
        }
    }
}

fn local_of<'a, 'm>(
    locals: &'a mut [Local<'m>],
    partition: Option<PartitionId>,
) -> Option<&'a mut Local<'m>> {
    locals.get_mut(partition?.0)
}
