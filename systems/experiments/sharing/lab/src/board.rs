//! What the tasks leave for the conductor.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::Environment;

/// The tasks, by the number of their bit.
pub const TASKS: [&str; 4] = ["high", "middle", "low", "lowest"];

/// The servers.
pub const SERVERS: [&str; 2] = ["bus", "store"];

/// Times in ticks of the time-stamp counter. Each field has one writer at a time.
#[repr(C)]
pub struct Board {
    /// Of each task: when its job was released.
    pub released: [AtomicU64; TASKS.len()],
    /// Of each task: when its job was done; 0 while it is not.
    pub done: [AtomicU64; TASKS.len()],
    /// Of each task: ticks from its first request to the answer to its last.
    pub requests: [AtomicU64; TASKS.len()],
    /// Times that somebody's work was interrupted by another's in this round.
    pub preemptions: AtomicU64,
    /// Empty requests that the next job of the high task makes instead of its work.
    pub probes: AtomicU64,
    /// What the probes took: least, sum, most.
    pub probed: [AtomicU64; 3],
    /// Of each server: threads that it has made, and what the most expensive one cost.
    pub spawned: [AtomicU64; SERVERS.len()],
    pub spawn_ticks: [AtomicU64; SERVERS.len()],
}

impl Board {
    pub fn of(env: &Environment) -> &'static Self {
        // SAFETY: the system maps a page, zeroed, which everybody uses through this type.
        unsafe { &*env.memory("board").as_mut_ptr().cast() }
    }

    /// Before a round.
    pub fn clear(&self) {
        for done in self.done.iter().chain(&self.requests) {
            done.store(0, Relaxed);
        }
        self.preemptions.store(0, Relaxed);
    }
}
