//! When it may be done: processor time as a resource (ABI page 04; thesis, chapters 6 and 7).
//!
//! * [`refills`]: the replenishment algorithm of a scheduling context.
//! * [`account`]: the clock, who pays for what, budget checks.
//! * [`context`]: binding, lending and postponing scheduling contexts.
//! * [`ready`], [`release`], [`core`]: the queues and the other state of a core.
//! * [`schedule`]: who runs next, and when the timer fires.
//! * [`remote`]: what concerns another core.
//! * [`domain`]: the domain schedule.
//!
//! Time is the raw counter of the machine, in ticks. Inside one event, `now` is the time of entry.

#![forbid(unsafe_code)]

pub mod account;
pub mod constants;
pub mod context;
pub mod core;
pub mod domain;
pub mod ready;
pub mod refills;
pub mod release;
pub mod remote;
pub mod schedule;

pub use constants::Constants;
pub use domain::DomainSchedule;
pub use refills::Refill;
