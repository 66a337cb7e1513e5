//! Periodic tasks with implicit deadlines. The component `release-timer` releases them without
//! drift, by notifications; each counts its jobs and those that ended after their deadline on a
//! board, which all share.
//!
//! A task `t` has the notification `t.release`, the memory `board`, the memory `start`, which only
//! `release-timer` may write, and the parameters `number` (its place on the board) and `period` (µs). What the
//! board says is as true as all who may write it. Its jobs are marked in the execution trace; their
//! deadlines too, if it has the parameter `guaranteed = 1`: then a trace in which one is missed is
//! wrong.

#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::Notification;
use sandglass::trace::{self, Mark};
use sandglass::{time, Environment};

/// Most tasks of a board.
pub const TASKS: usize = 16;

/// When the first job of every task was released: what tasks can read. Who could write it would make every job
/// of all others due at once.
#[repr(transparent)]
pub struct Start(AtomicU64);

impl Start {
    /// The start in the memory of that name.
    ///
    /// # Panics
    /// There is no such memory.
    pub fn of(env: &Environment) -> &'static Self {
        let memory = env.memory("start");
        assert!(memory.len as usize >= size_of::<Self>(), "a page suffices");
        // SAFETY: the system maps it, page-aligned, for good; it is an atomic, for which every content is valid. It
        // is written by `set` only.
        unsafe { &*memory.as_mut_ptr().cast::<Self>() }
    }

    /// Ticks; `None` before the first release.
    pub fn get(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|&start| start != 0)
    }

    /// For the one component whose memory `start` can be written: a fault in others.
    pub fn set(&self, ticks: u64) {
        self.0.store(ticks, Relaxed);
    }
}

/// What timer and tasks share: all counters, which any of them may write.
#[repr(C)]
pub struct Board {
    pub tasks: [Jobs; TASKS],
}

/// The jobs of a task.
#[repr(C)]
pub struct Jobs {
    pub completed: AtomicU64,
    /// Completed after the deadline, which is the next job's release.
    pub late: AtomicU64,
    /// Longest time from release to completion, and the sum of all, ticks.
    pub longest: AtomicU64,
    pub total: AtomicU64,
}

impl Board {
    /// The board in the memory of that name.
    ///
    /// # Panics
    /// The memory is too small.
    pub fn of(env: &Environment) -> &'static Self {
        let memory = env.memory("board");
        assert!(memory.len as usize >= size_of::<Self>(), "a page suffices");
        // SAFETY: the system maps it writable, page-aligned, for good; it consists of atomics,
        // for which every content is valid.
        unsafe { &*memory.as_mut_ptr().cast::<Self>() }
    }
}

/// Works once in each period, for good. `work` is told the number of the job.
pub fn run(env: &'static Environment, mut work: impl FnMut(u64)) -> ! {
    let (board, start) = (Board::of(env), Start::of(env));
    let jobs = &board.tasks[env.parameter("number") as usize % TASKS];
    let release: Notification = env.capability(&format!("{}.release", env.name()));
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let period = tsc.us_to_ticks(env.parameter("period"));
    let guaranteed = env
        .find_parameter("guaranteed")
        .is_some_and(|value| value != 0);
    for number in 0.. {
        let released = loop {
            if let Some(start) = start.get() {
                let released = start + number * period;
                if time::ticks() >= released {
                    break released;
                }
            }
            release.wait();
        };
        trace::mark(Mark::Release {
            job: number,
            at: released,
        });
        if guaranteed {
            trace::mark(Mark::Deadline {
                job: number,
                at: released + period,
            });
        }
        work(number);
        trace::mark(Mark::End { job: number });
        let response = time::ticks() - released;
        jobs.late.fetch_add(u64::from(response > period), Relaxed);
        jobs.longest.fetch_max(response, Relaxed);
        jobs.total.fetch_add(response, Relaxed);
        jobs.completed.fetch_add(1, Relaxed);
    }
    unreachable!("no task lives for 2^64 periods")
}
