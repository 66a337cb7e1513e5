//! The Sandglass microkernel: capabilities over memory, communication and processor time.
//!
//! The kernel is a function, [`event::handle`], of its state and an event. The same code runs on
//! the bare machine and, as this library, on any host over [`arch::hosted`].
//!
//! Layout, and the direction of calls: `event -> syscall -> object -> {cap, ipc, time} -> mem`;
//! the machine is reached only through [`arch::Platform`]. The data layout of an object stands
//! with its invocations in `object/`, whoever works on it.

#![no_std]
// `new` is const, and the kernel has no use for another word for it.
#![allow(clippy::new_without_default)]

#[cfg(not(target_os = "none"))]
extern crate std;

#[macro_use]
pub mod cells;
#[macro_use]
mod never;
#[macro_use]
pub mod trace;

pub mod arch;
pub mod boot;
pub mod cap;
pub mod cores;
pub mod debug;
pub mod event;
#[cfg(not(target_os = "none"))]
pub mod inspect;
pub mod invoke;
pub mod ipc;
pub mod list;
pub mod mem;
pub mod object;
pub mod syscall;
pub mod thread;
pub mod time;

mod kernel;

pub use cores::{CoreId, Cores, CORES};
pub use kernel::{Kernel, View};
