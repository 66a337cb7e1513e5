//! When it may be done: processor time as a resource (ABI page 04; thesis, chapters 6 and 7).
//!
//! * [`refills`]: the replenishment algorithm of a scheduling context.
//! * [`account`]: the clock, who pays for what, budget checks.
//! * [`context`]: binding, lending and postponing scheduling contexts.
//! * [`schedule`]: who runs next, and when the timer fires.
//! * [`turn`]: what an event has changed about who runs next.
//! * [`remote`]: what concerns another core.
//! * [`fpu`]: whose registers are in the FPU.
//!
//! Time is the raw counter of the machine, in ticks. Within one event, `now` is the time of entry.

#![forbid(unsafe_code)]

pub mod account;
pub mod context;
pub mod fpu;
pub mod refills;
pub mod remote;
pub mod schedule;
pub mod turn;

pub use account::Preempted;
pub use refills::Refills;
pub use turn::Turn;
