//! The Sandglass microkernel: capabilities over memory, communication and processor time.
//!
//! The kernel is a function, [`event::handle`], of its state and an event. The same code runs on
//! the bare machine and, as this library, on any host over [`arch::hosted`].
//!
//! The source is a house of rooms, data below and behaviour above, listed in `kernel/rooms.toml` from the
//! top to the bottom: a file names its own room and those below it, and nothing above. `./sandglass check`
//! holds it to that, and `docs/src/architecture/map.md` shows it. The machine is reached only through
//! [`arch::Platform`], and what user level sees of an architecture stands in [`arch::abi`].
//!
//! Whoever has a [`Kernel`] may change its state; whoever has only the [`View`] may not.

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
pub mod fast;
#[cfg(not(target_os = "none"))]
pub mod inspect;
pub mod invoke;
pub mod ipc;
pub mod mem;
pub mod object;
pub mod syscall;
pub mod thread;
pub mod time;

mod kernel;

pub use cores::{CoreId, Cores, CORES};
pub use kernel::{Kernel, View};
