//! The runtime's face for C: what `include/sandglass.h` declares, in the order of its sections.
//!
//! | section of the header | module |
//! | --- | --- |
//! | start, end | [`start`] (feature `program`), [`exit`] |
//! | environment | [`environment`] |
//! | messages, calls, notifications | [`message`], [`ipc`] |
//! | servers | [`server`] |
//! | time | [`clock`], [`hpet`] |
//! | threads | [`thread`] |
//! | heap | [`heap`] |
//! | console, log, watchdog | [`console`], [`logging`]; their [`format`] reads arguments as C passes them |
//! | objects: slots, threads, scheduling contexts, interrupts, ports | [`objects`], with [`error`] |
//! | policies | [`timers`], [`releases`], [`edf`], [`timeouts`] |
//! | trace | [`trace`] |
//!
//! What differs between architectures is in [`arch`].
//!
//! What C promises about its arguments is in the types of [`foreign`]; so the functions are safe. They do what
//! the runtime's do, and decide nothing.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod arch;
pub mod clock;
pub mod console;
pub mod edf;
pub mod environment;
pub mod error;
pub mod exit;
pub mod foreign;
pub mod format;
pub mod heap;
pub mod hpet;
pub mod ipc;
pub mod logging;
pub mod message;
pub mod objects;
pub mod releases;
pub mod server;
#[cfg(feature = "program")]
pub mod start;
pub mod thread;
pub mod timeouts;
pub mod timers;
pub mod trace;
