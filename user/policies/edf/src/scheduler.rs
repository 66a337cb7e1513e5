//! The decisions of earliest deadline first: a state machine without a system call.
//!
//! Every task has one job at a time. Job k is released at `start + offset + k * period`, whatever
//! happened before: releases do not drift. Its deadline is `deadline` later. The job whose deadline is
//! the earliest runs; of equal deadlines, that of the task with the lower number.
//!
//! All times are in ticks of whatever clock the caller has.

use alloc::vec::Vec;

use crate::queue::Queue;

/// The number of a task, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// What is known of a task beforehand, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// From one release to the next; not 0.
    pub period: u64,
    /// From a release to the deadline: the period (implicit) or less (constrained).
    pub deadline: u64,
    /// From the start to the first release.
    pub offset: u64,
}

/// What becomes of the releases that a job which ends late has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// They happen at once, one after the other: no job is lost. What the theory of EDF assumes. But those that pass
    /// while a job is [blocked](Event::Blocked) are skipped: the theory knows no such job, and all of them at once
    /// would keep the others from their deadlines.
    CatchUp,
    /// They are skipped: the next job is the first that is still to come.
    Skip,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The time has come that was asked for, or nothing in particular.
    Timer,
    /// The job of a task is done.
    Completed(TaskId),
    /// The budget of a task ran out before its job was done. It continues as the task's next job.
    Overran(TaskId),
    /// The job that is to run does not: its task waits for something else than its scheduler, or is gone. It keeps
    /// no other from running, and continues by itself if it can; its job is not over before one of the others says
    /// so.
    Blocked(TaskId),
    /// A task will not run any more.
    Removed(TaskId),
}

/// One job of a task; times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub task: TaskId,
    /// From 0. Of jobs that were skipped the numbers are missing.
    pub number: u64,
    pub release: u64,
    pub deadline: u64,
}

/// What to do until the next event.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The job to run; `None`: none is released.
    pub run: Option<Job>,
    /// When to call again unless something else happens: at the next release, or when the deadline
    /// of the job that runs has passed.
    pub wake_at: Option<u64>,
}

#[derive(Clone, Debug)]
struct Task {
    parameters: Parameters,
    /// Number and release of the job that is released, or else of the next one.
    job: u64,
    release: u64,
    /// The job is released, and not at its end.
    is_ready: bool,
    /// The job did not run when it was to.
    is_blocked: bool,
    /// The deadline of the job has been missed, and counted.
    is_late: bool,
    misses: u64,
}

impl Task {
    const fn deadline(&self) -> u64 {
        self.release.saturating_add(self.parameters.deadline)
    }
}

/// The scheduler. Every task is in at most one of the queues: in `releases` before the release of its
/// next job, in `deadlines` while its job is ready and not blocked; a removed one is in none.
#[derive(Clone, Debug)]
pub struct Scheduler {
    late: Late,
    tasks: Vec<Task>,
    releases: Queue,
    deadlines: Queue,
}

impl Scheduler {
    /// The tasks at their start, at the time `start`; nothing is decided yet.
    pub fn new(tasks: &[Parameters], late: Late, start: u64) -> Self {
        let mut releases = Queue::new(tasks.len());
        let tasks: Vec<_> = tasks
            .iter()
            .enumerate()
            .map(|(index, &parameters)| {
                let release = start.saturating_add(parameters.offset);
                releases.insert(release, TaskId(index));
                Task {
                    parameters,
                    job: 0,
                    release,
                    is_ready: false,
                    is_blocked: false,
                    is_late: false,
                    misses: 0,
                }
            })
            .collect();
        Self {
            late,
            deadlines: Queue::new(tasks.len()),
            releases,
            tasks,
        }
    }

    /// What to do now that `event` has happened. O(log n) for each job that is released by it; `now`
    /// does not go back.
    ///
    /// # Panics
    /// The event names no task of this scheduler.
    pub fn step(&mut self, now: u64, event: Event) -> Decision {
        match event {
            Event::Timer => {}
            Event::Completed(task) | Event::Overran(task) => self.end(now, task),
            Event::Blocked(task) => self.block(task),
            Event::Removed(task) => self.remove(task),
        }
        self.release_due(now);
        self.decide(now)
    }

    /// How many jobs of a task have missed their deadlines.
    ///
    /// # Panics
    /// There is no such task.
    pub fn misses(&self, task: TaskId) -> u64 {
        self.tasks[task.0].misses
    }

    /// A task whose job is not released has nothing to end.
    fn end(&mut self, now: u64, id: TaskId) {
        let task = &mut self.tasks[id.0];
        if !task.is_ready {
            return;
        }
        if now > task.deadline() && !task.is_late {
            task.misses += 1;
        }
        let period = task.parameters.period.max(1);
        let next = task.release.saturating_add(period);
        let skipped = match self.late {
            Late::CatchUp if !task.is_blocked => 0,
            _ => now.saturating_sub(next).div_ceil(period),
        };
        task.job += 1 + skipped;
        task.release = next.saturating_add(skipped.saturating_mul(period));
        task.is_ready = false;
        task.is_blocked = false;
        task.is_late = false;
        self.deadlines.remove(id);
        self.releases.insert(self.tasks[id.0].release, id);
    }

    /// The job of a task does not run: it keeps no other from running. A task whose job is not released has none.
    fn block(&mut self, id: TaskId) {
        self.deadlines.remove(id);
        let task = &mut self.tasks[id.0];
        task.is_blocked = task.is_ready;
    }

    /// Does without a task from now on.
    ///
    /// # Panics
    /// There is no such task.
    pub fn remove(&mut self, id: TaskId) {
        self.releases.remove(id);
        self.deadlines.remove(id);
        self.tasks[id.0].is_ready = false;
    }

    /// At most one release for each task.
    fn release_due(&mut self, now: u64) {
        while let Some((release, id)) = self.releases.first() {
            if release > now {
                return;
            }
            self.releases.remove(id);
            let task = &mut self.tasks[id.0];
            task.is_ready = true;
            self.deadlines.insert(task.deadline(), id);
        }
    }

    fn decide(&mut self, now: u64) -> Decision {
        let next_release = self.releases.first().map(|(release, _)| release);
        let Some((deadline, id)) = self.deadlines.first() else {
            return Decision {
                run: None,
                wake_at: next_release,
            };
        };
        let task = &mut self.tasks[id.0];
        if now > deadline && !task.is_late {
            task.is_late = true;
            task.misses += 1;
        }
        let missed_at = (!task.is_late).then_some(deadline.saturating_add(1));
        Decision {
            run: Some(Job {
                task: id,
                number: task.job,
                release: task.release,
                deadline,
            }),
            wake_at: [next_release, missed_at].into_iter().flatten().min(),
        }
    }
}
