//! Partitions at user level (Åsberg and Nolte, *Towards a User-Mode Approach to Partitioned Scheduling in the seL4
//! Microkernel*): applications with many threads get their share of the processor in windows of time, and their threads
//! run in these windows and nowhere else.
//!
//! What is decided, without a system call and without an allocation:
//!
//! - [`queue`]: bitmap queues, O(1);
//! - [`periodic`]: windows from periods, deadlines and budgets, by earliest deadline or by fixed priority;
//! - [`cyclic`]: windows from a table, in the manner of ARINC 653;
//! - [`local`]: the threads of a partition, periodic, sporadic and of best effort, by fixed priority;
//! - [`hierarchy`]: both levels together, `decide(event, now)`;
//! - [`decision`]: what they say.
//!
//! Windows depend on their parameters and on time. What a thread does is told to its partition only, so it moves no
//! window, not even its own partition's.
//!
//! And how that is done:
//!
//! - [`driver`]: the loop that asks [`hierarchy`] and gives a partition's one scheduling context to its thread;
//! - [`supplied`]: the loop for a frame in time that a time manager supplies;
//! - [`component`] and [`supply`]: the scheduler as a component of a described system, told by its table;
//! - [`thread`]: the side of a thread, `Member::of(endpoint).run(|| ...)`.
//!
//! All times are in ticks of whatever clock the caller has, or in granules: a number of ticks of which all periods are
//! multiples.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod component;
pub mod cyclic;
pub mod decision;
pub mod driver;
pub mod hierarchy;
pub mod local;
mod marks;
pub mod periodic;
pub mod queue;
pub mod supplied;
pub mod supply;
pub mod thread;

pub use decision::{Overrun, PartitionId, Refusal, Turn, Window};
pub use hierarchy::{Decision, Event, Hierarchy, Windows};
pub use local::{ThreadEvent, ThreadId};
pub use thread::{Arrivals, Member};
