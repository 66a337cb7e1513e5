//! The user-level runtime of Sandglass: everything a program needs to be ordinary Rust on the
//! kernel, and nothing that decides a policy.
//!
//! | layer | modules |
//! | --- | --- |
//! | system calls | [`sys`], [`message`], [`cap`], [`error`] |
//! | a program | [`entry`], [`console`], [`logging`], [`heap`], [`exit`], [`thread_block`], [`time`], [`alarm`] |
//! | what it starts with | [`boot`] (root task), [`env`] (component), [`described`] (of a described system) |
//! | managing others | [`process`], [`resources`], [`vspace`], [`image`], [`thread`], [`component`], [`spawning`] |
//! | servers | [`server`], [`fault`], [`timeout`], [`watchdog`] |
//! | what the trace shows | [`trace`] |
//! | the architecture | [`arch`] |
//! | devices | [`timer`], [`hpet`], [`serial`], [`uart`], [`screen`], [`firmware`] |
//!
//! # Building a program
//!
//! A program is a package with `#![no_std]`, `#![no_main]` and [`entry!`], the build dependency
//! `sandglass-build` whose `user_program` its build script calls, and
//! `[[bin]] test = false, bench = false` so that it is not built for the host's test harness. It
//! is built with
//!
//! ```text
//! cargo build --release -p <package> --target x86_64-unknown-linux-gnu
//! ```

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod alarm;
#[doc(hidden)]
pub mod arch;
pub mod board;
pub mod boot;
pub mod cap;
pub mod component;
pub mod console;
pub mod context;
pub mod described;
pub mod entry;
pub mod env;
pub mod error;
pub mod exit;
pub mod fault;
pub mod firmware;
pub mod heap;
pub mod hpet;
pub mod image;
pub mod logging;
mod memory_functions;
pub mod message;
pub mod process;
pub mod replies;
pub mod resources;
pub mod screen;
pub mod serial;
pub mod server;
pub mod spawning;
pub mod sys;
pub mod testing;
pub mod thread;
pub mod thread_block;
pub mod time;
pub mod timeout;
pub mod timer;
pub mod trace;
pub mod ttc;
pub mod uart;
pub mod vspace;
pub mod watchdog;

pub use boot::BootInfo;
pub use env::Environment;
pub use error::{Error, ErrorKind};
pub use message::{Message, Received};
pub use process::Process;
pub use resources::SetupError;

pub use log;
pub use sandglass_abi as abi;
