//! The executable specification of the Sandglass kernel.
//!
//! It says what every event does to the kernel's state, in the plainest way: the state is one value
//! ([`State`]), objects are entries of maps, queues are sorted vectors, time is arithmetic, and
//! there is no performance. Every rule cites the section of the ABI pages (`docs/src/abi`), of the thesis or of the
//! documented differences (`docs/src/reference/abi.md`) that it states. It was written from those,
//! not from the kernel; the `assurance` package runs both in lock step and compares the whole
//! state after every event.
//!
//! How to read it: [`state`] first; then [`event`], the one entry; then the system calls
//! (`syscall`), messages (`ipc`), time (`time`), capabilities (`cap`) and the invocations, one file
//! per object (`invoke`).
//!
//! What is of one architecture is in [`isa`], where the feature `aarch64` chooses it.
//!
//! What it leaves out: docs, "The executable specification".

#![forbid(unsafe_code)]

mod access;
pub mod cap;
pub mod error;
pub mod event;
pub mod invoke;
pub mod ipc;
pub mod isa;
pub mod object;
pub mod reply;
pub mod state;
pub mod syscall;
pub mod thread;
pub mod time;
pub mod vspace;

pub use state::State;
