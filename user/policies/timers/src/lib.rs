//! Timers for everybody: any number of one-shot and periodic timers, in absolute time without drift, over one device.
//!
//! - [`decide`]: which timer expires when, and what the device is set to: a state machine without system calls, on
//!   [`heap`]s with O(log n) operations that allocate nothing;
//! - [`protocol`]: what users and the service say to each other;
//! - [`service`]: the loop, a passive server: requests are paid for by who asks, expiries by a small context that is
//!   bound to the device's interrupt;
//! - [`finish`]: the handler that lets a request end whose caller has no time left;
//! - [`alarm`]: the device, set by the time-stamp counter;
//! - [`clock`]: what wakes a scheduler: the device, or a timer of the service;
//! - [`timer`]: the users' side, `Timer::described(env, "tick").wait_until(t)`.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod alarm;
pub mod clock;
pub mod decide;
pub mod finish;
pub mod heap;
pub mod protocol;
pub mod service;
pub mod timer;

pub use decide::{Armed, Refusal, Timing};
pub use timer::Timer;
