//! Earliest deadline first at user level (thesis 8.4.2, Listing 8.1).
//!
//! The scheduler is an active server above its tasks, which all have one priority of the kernel. It
//! waits for two things: a task whose job has ended, and the timer. Then it lets the job with the
//! earliest deadline run, and no other: a job that has not begun is a task that waits for a reply.
//!
//! - [`scheduler`]: who runs next, and when to decide again: a state machine without system calls, on
//!   [`queue`]s with O(log n) operations;
//! - [`clock`]: what wakes it, from the library of timers;
//! - [`driver`]: the loop that feeds it with calls, timeouts and the timer, and does what it decides;
//! - [`task`]: the side of a task, `Task::of(env, "edf").run(|job| ...)`;
//! - [`component`]: the scheduler as a component of a described system, told by its table.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod component;
pub mod driver;
pub mod queue;
pub mod scheduler;
pub mod task;

pub use sandglass_timers::clock;
pub use scheduler::{Decision, Event, Job, Late, Parameters, Scheduler, TaskId};
pub use task::{OwnJob, Task};
